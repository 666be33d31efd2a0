"""Rows of `measurements.parquet` for perplexity. Only accuracies are in percent; the other metrics have other units."""

import math
from collections.abc import Callable

from hatchery.artifacts.manifests import Manifest
from hatchery.evaluation.basis import asked_of, basis, shortened, window_of
from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured
from hatchery.evaluation.perplexity.rows import (
    BITS_PER_BYTE,
    FREQUENCY_FILE,
    PERPLEXITY_FILE,
    WORDS_FILE,
    FrequencyRow,
    SplitScore,
    WordScore,
    split_of_bin,
)
from hatchery.evaluation.settings import PerplexitySettings, is_imported
from hatchery.evaluation.trained_objective import baseline_objective, measured_objective, objective_of_model
from hatchery.typed import build, stage_body
from hatchery.units import bits_per_byte

PERPLEXITY_SUITE = "perplexity"


def perplexity_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return the metrics of every held-out split from `perplexity.csv`, and the split's metrics per word from
    `words.csv`.

    An infinite value, such as a perplexity above the largest float64, becomes None, and `failed` names the reason. The
    split's other metrics keep their values. Bits per byte are computed only if the number of bytes of the predicted
    text is known. If frequency.csv exists, its rows are added: mean log-probabilities of tokens of similar frequency,
    and slopes of the log-probability over the log-frequency.
    """
    found = list[TidyRow]()
    settings, bases = _trained_otherwise(evaluated), _bases(evaluated)
    words: dict[str, WordScore] = {}
    if evaluated.has(WORDS_FILE):
        words = {row.split: row for row in evaluated.records(WORDS_FILE, WordScore, ("split",), True)}
    for row in evaluated.records(PERPLEXITY_FILE, SplitScore, ("split",)):
        unigram = evaluated.unigram_loss(row.split)
        values = row.values() | (words[row.split].values() if row.split in words else {})
        per_byte = evaluated.tokens_per_byte(row.split)
        if row.split in words and (n_bytes := evaluated.n_bytes(row.split)):
            # A score per word exists only if every token of the split was predicted. Then `labelled_tokens` is the
            # number of tokens of the split.
            per_byte = row.labelled_tokens / n_bytes
        if per_byte is not None:
            values[BITS_PER_BYTE] = bits_per_byte(row.loss_nats, per_byte)
        for metric, number in values.items():
            value = None if math.isinf(number) else number
            found.append(
                measured(
                    *(PERPLEXITY_SUITE, row.split, "split", metric, value),
                    failed="infinite" if value is None else "",
                    items=row.labelled_tokens,
                    blind_guess=unigram_guess(metric, unigram, per_byte),
                    settings=settings,
                    basis=bases(row.split, metric),
                )
            )
    return found + [
        row | {"basis": bases(split_of_bin(row["task"]), row["metric"])} for row in _of_frequency(evaluated)
    ]


PER_TEXT = (BITS_PER_BYTE, *WordScore.metrics())
"""Metrics that divide a loss by a length of the text in words or bytes, so that models with different tokenizers are
comparable.
"""
TRAINED_ON = "trained on "
"""Beginning of the text in the column `settings` if the model was trained with other masks than those of the
evaluation.
"""


def _bases(evaluated: Evaluated) -> Callable[[str, str], str]:
    """Return a function that maps a split and a metric to the metric's comparison basis, a text that must be equal for
    two values to be compared. The basis is empty if the evaluation's manifest lacks the settings of the stage
    `measure_perplexity`.
    """
    manifest, model = evaluated.manifest, evaluated.model
    if "masking" not in manifest.settings:
        return lambda split, metric: ""
    settings = _asked(manifest)
    if is_imported(model):
        objective = baseline_objective(settings, model.settings["architecture"]).settings
    else:
        objective = measured_objective(settings, model).settings
    part = "" if settings.sequences is None else f", {settings.sequences} sequences of seed {settings.seed}"
    # An imported model contains its tokenizer, so its digest also identifies the tokenizer.
    tokenizer = shortened(model.digest if is_imported(model) else model.inputs.get("tokenizer"))

    def of(split: str, metric: str) -> str:
        return basis(
            asked=asked_of(objective, settings.seed),
            tokenizer="" if metric in PER_TEXT else tokenizer,
            text=f"{split} of {evaluated.text(split)}{part}",
            window=window_of(objective, settings.sequence_length),
        )

    return of


def _asked(manifest: Manifest) -> PerplexitySettings:
    """Return the settings of a perplexity evaluation from its manifest. The settings define the prediction targets of
    every split. Their field `splits` is always `dev`, not the measured splits.
    """
    told = {"sequence_length": 128, **stage_body(manifest.settings), "splits": ["dev"]}
    return build(PerplexitySettings, told, str(manifest.path))


def _trained_otherwise(evaluated: Evaluated) -> str:
    """Return a description of the masks with which the model was trained, if the kind of these masks or the proportion
    of masked tokens differs from the common masks, which the evaluation uses for all models. Otherwise return an empty
    text.
    """
    settings, model = evaluated.manifest.settings, evaluated.model
    if settings.get("masking") != "common" or "objective" not in model.settings:
        return ""
    own = objective_of_model(model)
    if own.asked_as not in ("masked", "hybrid"):
        return ""
    asked = measured_objective(_asked(evaluated.manifest), model).settings
    same = all(getattr(own, key) == getattr(asked, key) for key in ("kind", "hidden_share"))
    return "" if same else f"{TRAINED_ON}{asked_of(own).partition(' (')[0]}"


def unigram_guess(metric: str, loss: float | None, per_byte: float | None = None) -> float | None:
    """Return a unigram baseline's value of a metric; None if unknown. `loss` is the baseline's loss in nats per token,
    and `per_byte` is the number of tokens per byte of the text.
    """
    known = {} if loss is None else {"loss_nats": loss, "perplexity": math.exp(loss)}
    if loss is not None and per_byte is not None:
        known[BITS_PER_BYTE] = bits_per_byte(loss, per_byte)
    return known.get(metric)


def _of_frequency(evaluated: Evaluated) -> list[TidyRow]:
    if not evaluated.has(FREQUENCY_FILE):
        return []
    return [
        measured(
            *(PERPLEXITY_SUITE, row.task, "split" if row.lowest is None else "bin", row.metric, row.value),
            sampling_deviation=row.standard_error,
            items=row.tokens,
        )
        for row in evaluated.records(FREQUENCY_FILE, FrequencyRow, ("split", "lowest", "metric"), True)
    ]
