"""Measurements of single runs, read from the outputs of pretraining, minimal-pair scoring and fine-tuning.

Fractions become percent here and nowhere else, and the name of the metric says so: `accuracy_percent`,
`f1_percent`, `mcc_percent` (a Matthews correlation times 100, as the organisers of BabyLM print it). Quantities
without an upper bound keep their own unit: `loss_nats`, `perplexity`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hatchery.analysis.pretraining_outputs import read_curve
from hatchery.analysis.settings import Cell, SummarySettings, cells_by_name, match_cells, match_evaluations
from hatchery.analysis.tables import Row, read_rows
from hatchery.errors import EvaluationError, ManifestError
from hatchery.storage.manifests import Manifest, read_manifest

PRETRAINING_SUITE = "pretraining"
FINETUNING_SUITE = "finetuning"
PHENOMENON_AVERAGE = "phenomenon_average"
PARADIGM_AVERAGE = "paradigm_average"
ACCURACY_LEVELS = ("paradigm", "phenomenon", "suite", "suite_by_phenomenon")
FAILURES = ("", "majority_class", "nan", "zero_mcc")
CORRELATIONS = ("mcc", "pearson", "spearman")
DIGEST_LENGTH = 12


@dataclass(frozen=True)
class Measurement:
    """One number of one run.

    `value` is in the unit of `metric`, and None where the run failed so badly that it has none. `finetuning_seed` is
    None where nothing was fine-tuned. `failed` is empty or the reason. `sampling_deviation`, in the same unit, is the
    binomial standard deviation that the finite number of test items gives a single run. `primary` marks the metric
    that stands for its task in averages.
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


def read_measurements(
    settings: SummarySettings,
    pretraining: Mapping[str, Path],
    minimal_pairs: Mapping[str, Path],
    finetuning: Mapping[str, Path],
) -> list[Measurement]:
    """All measurements of an experiment, from manifests named `CELL`, `CELL:SUITE` and `CELL:TASK`.

    Raises ConfigError when the inputs are not those that the settings ask for, ManifestError when a file is not what
    its manifest says or an evaluation belongs to another model, EvaluationError when a table is invalid.
    """
    cells = cells_by_name(settings.cells)
    models: dict[str, Manifest] = {}
    measurements: list[Measurement] = []
    for name, path in match_cells(pretraining, settings.cells, "--pretraining").items():
        models[name] = read_verified(path)
        measurements += development_measurements(cells[name], models[name])
    for (name, suite), path in match_evaluations(
        minimal_pairs, settings.cells, settings.suites, "--minimal-pairs"
    ).items():
        manifest = _evaluation_of(path, models[name])
        measurements += minimal_pair_measurements(cells[name], suite, manifest)
    for (name, task), path in match_evaluations(finetuning, settings.cells, settings.tasks, "--finetuning").items():
        manifest = _evaluation_of(path, models[name])
        measurements += finetuning_measurements(cells[name], task, manifest)
    return measurements


def read_verified(path: str | Path) -> Manifest:
    """Read a manifest and compare its outputs with their checksums. Raises ManifestError when one differs."""
    manifest = read_manifest(path)
    manifest.verify()
    return manifest


def _evaluation_of(path: Path, model: Manifest) -> Manifest:
    manifest = read_verified(path)
    if model.digest not in manifest.inputs.values():
        raise ManifestError(f"{path}: this evaluation was not made from the model of {model.path}; run it again")
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


def minimal_pair_measurements(cell: Cell, suite: str, manifest: Manifest) -> list[Measurement]:
    """Accuracy in percent of every phenomenon, and its two averages, from `accuracy.csv`.

    `phenomenon_average` weighs phenomena equally (the tables of BabyLM 2023), `paradigm_average` weighs paradigms
    equally (the original BLiMP, LTG-BERT Table 8); on identical predictions they may differ by more than a point.
    """
    path = manifest.file("accuracy.csv")
    rows = read_rows(path, ("level", "name", "pairs", "correct", "ties", "accuracy"), key=("level", "name"))
    accuracies: dict[str, list[tuple[str, float, float]]] = {level: [] for level in ACCURACY_LEVELS}
    for row in rows:
        accuracies[row.text("level", ACCURACY_LEVELS)].append((row.text("name"), *_accuracy(row)))
    measurements = []

    def add(task: str, value: float, deviation: float) -> None:
        digest = manifest.digest[:DIGEST_LENGTH]
        measurements.append(
            Measurement(cell, suite, task, "accuracy_percent", value, digest, sampling_deviation=deviation)
        )

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


def _accuracy(row: Row) -> tuple[float, float]:
    """Accuracy and its binomial standard deviation sqrt(p (1 - p) / pairs), both in percent."""
    accuracy = row.number("accuracy", 0.0, 1.0)
    pairs = row.count("pairs")
    if pairs == 0:
        raise EvaluationError(f"{row.where}: an accuracy over 0 pairs")
    return 100 * accuracy, 100 * math.sqrt(accuracy * (1 - accuracy) / pairs)


def finetuning_measurements(cell: Cell, task: str, manifest: Manifest) -> list[Measurement]:
    """One measurement per seed and metric, from `results.csv`.

    A seed counts as failed for all its metrics as soon as one row says so: a classifier that answers with one class
    has collapsed, whatever F1 that happens to give. The first metric of the task's settings is its primary one.
    """
    path = manifest.file("results.csv")
    rows = read_rows(path, ("seed", "metric", "value", "failed"), key=("seed", "metric"))
    failures: dict[int, str] = {}
    for row in rows:
        if reason := row.text("failed", FAILURES):
            failures.setdefault(row.count("seed"), reason)
    primary = _primary_metric(manifest, [row.text("metric") for row in rows])
    measurements = []
    for row in rows:
        seed, metric = row.count("seed"), row.text("metric")
        failed = failures.get(seed, "")
        value = None if failed == "nan" else 100 * row.number("value", -1.0 if metric in CORRELATIONS else 0.0, 1.0)
        measurements.append(
            Measurement(
                cell=cell,
                suite=FINETUNING_SUITE,
                task=task,
                metric=f"{metric}_percent",
                value=value,
                manifest=manifest.digest[:DIGEST_LENGTH],
                finetuning_seed=seed,
                failed=failed,
                primary=metric == primary,
            )
        )
    return measurements


def _primary_metric(manifest: Manifest, metrics: list[str]) -> str:
    try:
        primary = str(manifest.settings["task"]["metrics"][0])
    except (KeyError, IndexError, TypeError) as error:
        raise ManifestError(f"{manifest.path}: the settings do not list task.metrics") from error
    if primary not in metrics:
        raise EvaluationError(f"{manifest.file('results.csv')}: there is no row of the task's first metric, {primary}")
    return primary
