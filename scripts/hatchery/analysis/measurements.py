"""Measurements during pretraining, read from its learning curve: held-out loss, and scores of development text.

The measurements of evaluations are read elsewhere (`Result` of each kind). For comparison, a number comes with the
score of a blind guess, which ignores its input. Source of the measures for translation models: "A Natural Bias for
Language Generation Models", Sections 4.1 and 4.2.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from hatchery.artifacts.manifests import Manifest
from hatchery.evaluation.basis import asked_of, basis, shortened, window_of
from hatchery.evaluation.evaluation import TidyRow, measured
from hatchery.evaluation.perplexity.measurements import unigram_guess
from hatchery.evaluation.perplexity.rows import BITS_PER_BYTE
from hatchery.training.settings import pretrain_settings
from hatchery.translation.metrics import METRICS, area_under_curve

PRETRAINING_SUITE = "pretraining"
DEVELOPMENT = "development"
PER_TOKEN = ("loss_nats", "perplexity")
DEVELOPMENT_BITS = "development_bits_per_byte"
"""Column of learning curves that is computed here and not in `metrics.jsonl`."""


def development_measurements(
    curve: Iterable[Mapping[str, Any]], unigram_loss: float | None = None, per_byte: float | None = None
) -> list[TidyRow]:
    """Return the last development loss (nats per predicted token) and perplexity; empty for an untrained model.

    `curve` are the rows of the run's `metrics.jsonl`, with bits per byte if known; `unigram_loss` is the loss of the
    unigram distribution in nats, `per_byte` the number of predicted tokens per byte.
    """
    evaluated = [row for row in curve if row.get("development_loss") is not None]
    if not evaluated:
        return []
    values = {
        "loss_nats": evaluated[-1]["development_loss"],
        "perplexity": evaluated[-1].get("development_perplexity"),
        BITS_PER_BYTE: evaluated[-1].get(DEVELOPMENT_BITS),
    }
    return [
        measured(
            *(PRETRAINING_SUITE, DEVELOPMENT, "split", metric, value),
            blind_guess=unigram_guess(metric, unigram_loss, per_byte),
        )
        for metric, value in values.items()
        if value is not None
    ]


def development_basis(manifest: Manifest, text: str, metric: str) -> str:
    """Return the basis (conditions of comparability) of a metric of development text that was measured during the
    training of `manifest`."""
    settings = pretrain_settings(manifest.settings)
    objective = settings.objective
    return basis(
        asked=asked_of(objective),
        # Bits per byte and scores of translations refer to text, not to tokens, so they are comparable across
        # tokenizers.
        tokenizer=shortened(manifest.inputs.get("tokenizer")) if metric in PER_TOKEN else "",
        text=f"{settings.evaluation_sequences} development sequences of {text}",
        window=window_of(objective, settings.sequence_length),
        precision=settings.precision,
        selection="" if settings.early_stopping is None else "training stopped by this text",
    )


def learning_measurements(curve: Iterable[Mapping[str, Any]], alc_steps: int) -> list[TidyRow]:
    """Return the highest translation score of development text, and the area under its learning curve; empty without
    scores.

    `curve` are the rows of the run's `metrics.jsonl`. The area covers the first `alc_steps` steps, and is computed if
    the curve begins at step 0 and reaches at least this step. The column `task` of the area contains the number of
    steps, as in `first_20000_steps`.
    """
    rows, found = list(curve), []
    for metric in METRICS:
        points = [
            (row["step"], row[f"development_{metric}"]) for row in rows if row.get(f"development_{metric}") is not None
        ]
        values = {(DEVELOPMENT, f"best_{metric}"): max(score for _, score in points)} if points else {}
        if early := _first_steps(points, alc_steps):
            values[early_task(alc_steps), f"alc_{metric}"] = area_under_curve(early)
        found += [measured(PRETRAINING_SUITE, task, "split", name, value) for (task, name), value in values.items()]
    return found


def early_task(steps: int) -> str:
    """Return the value of the column `task` for measures over the first `steps` steps of a training."""
    return f"first_{steps}_steps"


def _first_steps(points: Iterable[tuple[int, float]], last: int) -> list[tuple[float, float]]:
    """Return the points from step 0 to step `last`, where the score is interpolated linearly; empty if the curve does
    not reach `last`."""
    ordered = sorted(points)
    if not ordered or ordered[0][0] > 0 or ordered[-1][0] < last:
        return []
    kept: list[tuple[float, float]] = [point for point in ordered if point[0] <= last]
    if kept[-1][0] < last:
        (before, low), (after, high) = kept[-1], ordered[len(kept)]
        kept.append((last, low + (high - low) * (last - before) / (after - before)))
    return kept
