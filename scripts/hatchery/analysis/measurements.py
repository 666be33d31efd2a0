"""Measurements of single runs, read from the outputs of pretraining and of every evaluation.

Fractions become percent here and in `finetuning_measurements`, and the name of the metric says so: `accuracy_percent`,
`f1_percent`, `mcc_percent` (a Matthews correlation times 100, as the organisers of BabyLM print it). Quantities
without an upper bound keep their own unit: `loss_nats`, `perplexity`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.pretraining_outputs import read_curve
from hatchery.analysis.settings import Cell
from hatchery.errors import EvaluationError
from hatchery.storage.csv_tables import Row, read_rows
from hatchery.storage.manifests import Manifest, read_manifest

PRETRAINING_SUITE = "pretraining"
PERPLEXITY_SUITE = "perplexity"
PHENOMENON_AVERAGE = "phenomenon_average"
PARADIGM_AVERAGE = "paradigm_average"
ACCURACY = "accuracy_percent"
ACCURACY_TIES_CORRECT = "accuracy_ties_correct_percent"
ACCURACY_LEVELS = ("paradigm", "phenomenon", "suite", "suite_by_phenomenon")
DIGEST_LENGTH = 12


@dataclass(frozen=True)
class Measurement:
    """One number of one run.

    `value` is in the unit of `metric`, and None where the run failed so badly that it has none. `failed` is empty or
    the reason. `sampling_deviation`, in the same unit, is the binomial standard deviation that the finite number of
    test items gives a single run. What follows is for fine-tuning alone: the seed and the peak learning rate of the
    run; `origin`, the task that the model was tuned on; whether `main` rows were scored, by which the task is judged,
    and not a further set or another task; whether the metric is the `primary` one, which stands for the task in
    averages; and the accuracy of the most frequent label in percent.
    """

    cell: Cell
    suite: str
    task: str
    metric: str
    value: float | None
    manifest: str
    finetuning_seed: int | None = None
    failed: str = ""
    sampling_deviation: float | None = None
    primary: bool = True
    learning_rate: float | None = None
    origin: str = ""
    main: bool = True
    majority_percent: float | None = None

    @property
    def finetuned(self) -> bool:
        """Whether the number comes from a fine-tuned model."""
        return self.finetuning_seed is not None


def read_verified(path: str | Path) -> Manifest:
    """Read a manifest and compare its outputs with their checksums. Raises ManifestError when one differs."""
    manifest = read_manifest(path)
    manifest.verify()
    return manifest


def development_measurements(cell: Cell, manifest: Manifest) -> list[Measurement]:
    """The last development loss (nats per masked token) and perplexity; none when the model was not trained."""
    evaluated = [point for point in read_curve(manifest) if point.development_loss is not None]
    if not evaluated:
        return []
    values = {
        "loss_nats": evaluated[-1].development_loss,
        "perplexity": evaluated[-1].development_perplexity,
    }
    return [
        Measurement(cell, PRETRAINING_SUITE, "development", metric, value, manifest.digest[:DIGEST_LENGTH])
        for metric, value in values.items()
        if value is not None
    ]


def perplexity_measurements(cell: Cell, manifest: Manifest) -> list[Measurement]:
    """Loss (nats per masked token), perplexity and accuracy of every held-out split, from `perplexity.csv`.

    A perplexity beyond float64 is None and failed; so is nothing else here.
    """
    columns = ("split", "loss_nats", "perplexity", "accuracy", "pseudo_perplexity")
    measurements = []
    for row in read_rows(manifest.file("perplexity.csv"), columns, key=("split",)):
        values: dict[str, float | None] = {
            "loss_nats": row.number("loss_nats", 0.0),
            "perplexity": _finite(row, "perplexity"),
            ACCURACY: 100 * row.number("accuracy", 0.0, 1.0),
        }
        if row.text("pseudo_perplexity"):
            values["pseudo_perplexity"] = _finite(row, "pseudo_perplexity")
        for metric, value in values.items():
            digest, failed = manifest.digest[:DIGEST_LENGTH], "infinite" if value is None else ""
            task = row.text("split")
            measurements.append(Measurement(cell, PERPLEXITY_SUITE, task, metric, value, digest, failed=failed))
    return measurements


def _finite(row: Row, column: str) -> float | None:
    return None if row.text(column) == "inf" else row.number(column, 1.0)


def minimal_pair_measurements(
    cell: Cell, suite: str, manifest: Manifest, column: str = "accuracy", metric: str = ACCURACY
) -> list[Measurement]:
    """Accuracy in percent of every phenomenon, and its two averages, from `accuracy.csv`.

    `phenomenon_average` weighs phenomena equally (the tables of BabyLM 2023), `paradigm_average` weighs paradigms
    equally (the original BLiMP, LTG-BERT Table 8); on identical predictions they may differ by more than a point.
    """
    path = manifest.file("accuracy.csv")
    rows = read_rows(path, ("level", "name", "pairs", "correct", "ties", column), key=("level", "name"))
    accuracies: dict[str, list[tuple[str, float, float]]] = {level: [] for level in ACCURACY_LEVELS}
    for row in rows:
        accuracies[row.text("level", ACCURACY_LEVELS)].append((row.text("name"), *_accuracy(row, column)))
    measurements = []

    def add(task: str, value: float, deviation: float) -> None:
        digest = manifest.digest[:DIGEST_LENGTH]
        measurements.append(Measurement(cell, suite, task, metric, value, digest, sampling_deviation=deviation))

    for name, value, deviation in accuracies["phenomenon"]:
        add(name, value, deviation)
    for task, level in ((PHENOMENON_AVERAGE, "phenomenon"), (PARADIGM_AVERAGE, "paradigm")):
        values = accuracies[level]
        if not values:
            raise EvaluationError(f"{path}: there is no row of level {level}")
        mean = math.fsum(value for _, value, _ in values) / len(values)
        deviation = math.sqrt(math.fsum(deviation**2 for _, _, deviation in values)) / len(values)
        add(task, mean, deviation)
    return measurements


def ties_correct_measurements(manifests: Mapping[Cell, Manifest], suite: str) -> list[Measurement]:
    """The two averages of a suite with ties counted as right, as the pipelines of BabyLM count identical sentences.

    None at all where no model has a tie: they would repeat the averages. Where one has, every model gets them, so that
    the numbers of a column are comparable.
    """
    averages = (PHENOMENON_AVERAGE, PARADIGM_AVERAGE)
    strict, generous = (
        [
            measurement
            for cell, manifest in manifests.items()
            for measurement in minimal_pair_measurements(cell, suite, manifest, column, metric)
            if measurement.task in averages
        ]
        for column, metric in (("accuracy", ACCURACY), ("accuracy_ties_correct", ACCURACY_TIES_CORRECT))
    )
    tied = any(one.value != other.value for one, other in zip(strict, generous, strict=True))
    return generous if tied else []


def _accuracy(row: Row, column: str) -> tuple[float, float]:
    """Accuracy and its binomial standard deviation sqrt(p (1 - p) / pairs), both in percent."""
    accuracy = row.number(column, 0.0, 1.0)
    pairs = row.count("pairs")
    if pairs == 0:
        raise EvaluationError(f"{row.where}: an accuracy over 0 pairs")
    return 100 * accuracy, 100 * math.sqrt(accuracy * (1 - accuracy) / pairs)
