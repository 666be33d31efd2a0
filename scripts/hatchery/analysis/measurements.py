"""Measurements of single runs, read from the outputs of pretraining and of every evaluation.

Fractions become percent here and in `finetuning_measurements`, and the name of the metric says so: `accuracy_percent`,
`f1_percent`, `mcc_percent` (a Matthews correlation times 100, as the organisers of BabyLM print it). Quantities
without an upper bound keep their own unit: `loss_nats`, `perplexity`. With what a blind guess scores, which does not
see what it is about, a model that knows something can be told: of two sentences it has 50 % right, of classes those
with the most frequent label, and its Matthews correlation is 0.

Source of the numbers of models that translate: "A Natural Bias for Language Generation Models", Sections 4.1 and 4.2.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hatchery.analysis.tidy_tables import Row
from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, read_records
from hatchery.errors import EvaluationError
from hatchery.evaluation.perplexity.rows import (
    FREQUENCY_FILE,
    PERPLEXITY_FILE,
    WORDS_FILE,
    FrequencyRow,
    SplitScore,
    WordScore,
)
from hatchery.settings.base import Share
from hatchery.translation.metrics import METRICS, area_under_curve

PRETRAINING_SUITE = "pretraining"
PERPLEXITY_SUITE = "perplexity"
TRANSLATION_SUITE = "translation"
DEVELOPMENT = "development"
PHENOMENON_AVERAGE = "phenomenon_average"
PARADIGM_AVERAGE = "paradigm_average"
ACCURACY = "accuracy_percent"
ACCURACY_TIES_CORRECT = "accuracy_ties_correct_percent"
ACCURACY_LEVELS: tuple[Literal["paradigm", "phenomenon", "suite"], ...] = ("paradigm", "phenomenon", "suite")
ACCURACY_COLUMNS = {ACCURACY: "accuracy", ACCURACY_TIES_CORRECT: "accuracy_ties_correct"}
OF_PAIRS = 50.0
"""What a blind guess has of minimal pairs, in percent."""
Kind = Literal["pretraining", "perplexity", "translation", "minimal_pairs", "finetuning"]
Level = Literal["split", "bin", "paradigm", "phenomenon", "suite", "average", "task"]


_OF_MOST: Row = {"failed": "", "primary": True, "main": True, "origin": ""}


def measured(
    place: Mapping[str, Any],
    manifest: Manifest,
    kind: Kind,
    suite: str,
    task: str,
    level: Level,
    metric: str,
    value: float | None,
    **more: Any,
) -> Row:
    """A row of the tidy table: of the run that `place` says, from the outputs of `manifest`; `more` are other columns.

    `value` is in the unit of `metric`, None where the run gave no number (it diverged, say). `failed` is empty, or why
    there is none, or in which way training collapsed: then the value is that of a constant answer.
    """
    key = {"kind": kind, "suite": suite, "task": task, "level": level, "metric": metric}
    return {**place, **_OF_MOST, **key, "value": value, **more, "manifest": manifest.digest}


@dataclass(frozen=True)
class _AccuracyRow(Record):
    level: Literal["paradigm", "phenomenon", "suite"]
    name: str
    pairs: int
    accuracy: Share
    accuracy_ties_correct: Share


def development_measurements(
    place: Mapping[str, Any],
    manifest: Manifest,
    curve: Iterable[Mapping[str, Any]],
    unigram_loss: float | None = None,
) -> list[Row]:
    """The last development loss (nats per predicted token) and perplexity; none when the model was not trained.

    `curve` are the rows of the run's `metrics.jsonl`, `unigram_loss` is that of the unigram distribution.
    """
    evaluated = [row for row in curve if row.get("development_loss") is not None]
    if not evaluated:
        return []
    values = {
        "loss_nats": evaluated[-1]["development_loss"],
        "perplexity": evaluated[-1].get("development_perplexity"),
    }
    return [
        measured(
            *(place, manifest, "pretraining", PRETRAINING_SUITE, DEVELOPMENT, "split", metric, value),
            blind_guess=_unigram(metric, unigram_loss),
        )
        for metric, value in values.items()
        if value is not None
    ]


def perplexity_measurements(
    place: Mapping[str, Any], manifest: Manifest, unigram_loss: Callable[[str], float | None] = lambda split: None
) -> list[Row]:
    """The metrics of every held-out split, those of its words behind them, from `perplexity.csv` and `words.csv`.

    `unigram_loss` gives that of the unigram distribution on a split. A perplexity beyond float64 is None and failed; so
    is nothing else here. Where it was asked for, also the log-probability of tokens by their frequency: bins and
    slopes.
    """
    measurements = []
    words: dict[str, WordScore] = {}
    if manifest.listed(WORDS_FILE):
        words = {row.split: row for row in read_records(manifest.file(WORDS_FILE), WordScore, ("split",), True)}
    for row in read_records(manifest.file(PERPLEXITY_FILE), SplitScore, ("split",)):
        unigram = unigram_loss(row.split)
        values = row.values() | (words[row.split].values() if row.split in words else {})
        for metric, number in values.items():
            value = None if math.isinf(number) else number
            measurements.append(
                measured(
                    *(place, manifest, "perplexity", PERPLEXITY_SUITE, row.split, "split", metric, value),
                    failed="infinite" if value is None else "",
                    items=row.labelled_tokens,
                    blind_guess=_unigram(metric, unigram),
                )
            )
    if manifest.listed(FREQUENCY_FILE):
        found_bins = read_records(manifest.file(FREQUENCY_FILE), FrequencyRow, ("split", "lowest", "metric"))
        measurements += [_of_frequency(place, row, manifest) for row in found_bins]
    return measurements


def _unigram(metric: str, loss: float | None) -> float | None:
    """What the unigram distribution has of a metric, if it has loss nats per token."""
    known = {} if loss is None else {"loss_nats": loss, "perplexity": math.exp(loss)}
    return known.get(metric)


def _of_frequency(place: Mapping[str, Any], row: FrequencyRow, manifest: Manifest) -> Row:
    return measured(
        *(place, manifest, "perplexity", PERPLEXITY_SUITE, row.task),
        *("split" if row.lowest is None else "bin", row.metric, row.value),
        sampling_deviation=row.standard_error,
        items=row.tokens,
    )


def minimal_pair_measurements(place: Mapping[str, Any], suite: str, manifest: Manifest) -> list[Row]:
    """Accuracy in percent of every paradigm, phenomenon and the suite, and two averages, from `accuracy.csv`.

    Each with ties counted as wrong and as right. `phenomenon_average` weighs phenomena equally (the tables of BabyLM
    2023), `paradigm_average` weighs paradigms equally (the original BLiMP, LTG-BERT, Table 8); on identical predictions
    they may differ by more than a point.
    """
    path = manifest.file("accuracy.csv")
    rows = read_records(path, _AccuracyRow, ("level", "name"))
    measurements: list[Row] = []

    def add(level: Level, task: str, metric: str, value: float, deviation: float, items: int) -> None:
        more = {"sampling_deviation": deviation, "items": items, "blind_guess": OF_PAIRS}
        measurements.append(measured(place, manifest, "minimal_pairs", suite, task, level, metric, value, **more))

    if any(row.pairs == 0 for row in rows):
        raise EvaluationError(f"{path}: an accuracy over 0 pairs")
    by_level: dict[str, list[_AccuracyRow]] = {
        level: [row for row in rows if row.level == level] for level in ACCURACY_LEVELS
    }
    for metric, column in ACCURACY_COLUMNS.items():
        for level in ACCURACY_LEVELS:
            for row in by_level[level]:
                add(level, row.name, metric, *_accuracy(row, column))
        for task, averaged in ((PHENOMENON_AVERAGE, "phenomenon"), (PARADIGM_AVERAGE, "paradigm")):
            values = [_accuracy(row, column) for row in by_level[averaged]]
            if not values:
                raise EvaluationError(f"{path}: there is no row of level {averaged}")
            mean = math.fsum(value for value, _, _ in values) / len(values)
            deviation = math.sqrt(math.fsum(deviation**2 for _, deviation, _ in values)) / len(values)
            add("average", task, metric, mean, deviation, sum(items for _, _, items in values))
    return measurements


def _accuracy(row: _AccuracyRow, column: str) -> tuple[float, float, int]:
    """Accuracy and its binomial standard deviation, both in percent, and the pairs.

    The deviation is that of two more right and two more wrong pairs (Agresti and Coull, 1998), so that a few pairs that
    are all right leave some doubt.
    """
    accuracy: float = getattr(row, column)
    pairs = row.pairs + 4
    share = (accuracy * row.pairs + 2) / pairs
    return 100 * accuracy, 100 * math.sqrt(share * (1 - share) / pairs), row.pairs


def of_metric(metric: str, majority_accuracy: float | None) -> float | None:
    """What a blind guess has of a metric of a task, a fraction, if known; `majority_accuracy` is that of the task."""
    return {"accuracy": majority_accuracy, "mcc": 0.0}.get(metric)


@dataclass(frozen=True)
class _ScoreRow(Record):
    test: str
    corpus: str
    split: str
    pairs: int
    metric: str
    score: float
    signature: str


def translation_measurements(place: Mapping[str, Any], manifest: Manifest) -> list[Row]:
    """BLEU and chrF in points of every test set, from `scores.csv`."""
    return [
        measured(
            *(place, manifest, "translation", TRANSLATION_SUITE, row.test, "split", row.metric, row.score),
            items=row.pairs,
        )
        for row in read_records(manifest.file("scores.csv"), _ScoreRow, ("test", "metric"))
    ]


def learning_measurements(
    place: Mapping[str, Any], manifest: Manifest, curve: Iterable[Mapping[str, Any]], alc_steps: int
) -> list[Row]:
    """Highest development score, and the area under its curve over the first steps; none without such scores.

    `curve` are the rows of the run's `metrics.jsonl`. The area is given where the curve goes from the model before its
    first step to `alc_steps` or beyond, and its task says how many steps they are, as in `first_20000_steps`.
    """
    rows, found = list(curve), []
    for metric in METRICS:
        points = [
            (row["step"], row[f"development_{metric}"]) for row in rows if row.get(f"development_{metric}") is not None
        ]
        values = {(DEVELOPMENT, f"best_{metric}"): max(score for _, score in points)} if points else {}
        if early := _first_steps(points, alc_steps):
            values[early_task(alc_steps), f"alc_{metric}"] = area_under_curve(early)
        found += [
            measured(place, manifest, "pretraining", PRETRAINING_SUITE, task, "split", name, value)
            for (task, name), value in values.items()
        ]
    return found


def early_task(steps: int) -> str:
    """What stands in the tables for the first so many steps of a training."""
    return f"first_{steps}_steps"


def _first_steps(points: Iterable[tuple[int, float]], last: int) -> list[tuple[float, float]]:
    """The points from step 0 to exactly the step `last`, between two measurements on the line; none if not reached."""
    ordered = sorted(points)
    if not ordered or ordered[0][0] > 0 or ordered[-1][0] < last:
        return []
    kept: list[tuple[float, float]] = [point for point in ordered if point[0] <= last]
    if kept[-1][0] < last:
        (before, low), (after, high) = kept[-1], ordered[len(kept)]
        kept.append((last, low + (high - low) * (last - before) / (after - before)))
    return kept
