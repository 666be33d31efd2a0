"""Exact tests over items: could a difference between two models on the same items be chance?

Source: none of the replicated papers, which do not test their differences in this way; Hatchery adds the tests. For
single runs, the test is McNemar's (1947). An item is a minimal pair or a row of a fine-tuning task; the calling
analysis reads the models' answers to the items.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.analysis.aggregates import NORMAL_95, mean_and_deviation
from hatchery.analysis.analyses.analysis import AnalysisSettings, Findings, Numbers, Study
from hatchery.analysis.analyses.paired_test_sentences import Nouns, answer, has_single, is_beyond_chance, notes_of
from hatchery.analysis.comparability import BETWEEN_TWO
from hatchery.analysis.settings import labels_of, models_in_order
from hatchery.errors import ConfigError
from hatchery.rendering.table import Cell, Column, Content, Group, Table
from hatchery.settings.problems import alternatives

if TYPE_CHECKING:
    import numpy as np

EVERY_TWO_UP_TO = 4


@dataclass(frozen=True, kw_only=True)
class PairedTestsSettings(AnalysisSettings):
    """Settings of tests between models, on the items that all of these models answered."""

    against: str | None = None
    """Model with which all other models are compared; in a study, as `experiment/model`. If `null`, every two models
    are compared or, if there are more than four models, all other models are compared with the first model.
    """


def check(settings: PairedTestsSettings, study: Study) -> None:
    """Raise ConfigError if `against` is not the name of a model of the study."""
    models = models_in_order(study.runs)
    if settings.against is not None and settings.against not in models:
        raise ConfigError(
            f"against: got {settings.against!r}, expected one of the compared "
            f"models{alternatives(settings.against, models)}"
        )


@dataclass(frozen=True)
class Answers:
    """A model's answers to the items of a suite or task: `right` bool [runs, items] is True for correct answers.

    `trainings` int64 [runs] contains, for each run, the index of the pretrained model (seed) that the run evaluates or
    fine-tunes. `failed` bool [runs] is True for failed runs, and None if runs cannot fail.
    """

    right: "np.ndarray"
    trainings: "np.ndarray"
    failed: "np.ndarray | None" = None

    @property
    def runs(self) -> int:
        """Number of the model's runs."""
        return len(self.right)

    @property
    def correct(self) -> "np.ndarray":
        """Return the number of runs that answer each item correctly, int64 [items]."""
        return self.right.sum(axis=0)

    @property
    def shares(self) -> "np.ndarray":
        """Return the fraction of runs that answer each item correctly, float64 [items]."""
        return self.correct / self.runs

    @property
    def deviation(self) -> float | None:
        """Return the standard deviation of the accuracy over runs; None for a single run."""
        return float(self.right.mean(axis=1).std(ddof=1)) if self.runs > 1 else None

    @property
    def seeds(self) -> int:
        """Number of pretraining seeds of the model's runs."""
        return len(set(self.trainings.tolist()))

    @property
    def deviation_over_seeds(self) -> float | None:
        """Standard deviation of the accuracy over pretraining seeds; None for one seed.

        The accuracy of a seed is the mean over its runs.
        """
        accuracies = self.right.mean(axis=1)
        means = [float(accuracies[self.trainings == one].mean()) for one in sorted(set(self.trainings.tolist()))]
        return mean_and_deviation(means)[1]

    @property
    def n_failed(self) -> int:
        """Number of the model's failed runs."""
        return 0 if self.failed is None else int(self.failed.sum())

    def without_failed(self) -> "Answers":
        """Return the answers of the runs that did not fail, or of all runs if all failed."""
        if self.failed is None or self.failed.all():
            return self
        return Answers(self.right[~self.failed], self.trainings[~self.failed])


def manifests_of(study: Study, kind: str) -> dict[str, dict[str, list[Path]]]:
    """Return the manifests of all evaluations of the kind `kind`, by suite or task and then by model. Models are in the
    order of the study.

    External models come last. Suites whose items have no correct answer are left out.
    """
    from hatchery.artifacts.manifests import read_manifest
    from hatchery.evaluation.minimal_pairs.measurements import CORRELATION_FILE

    runs = {run.name: run.model for run in study.runs}
    found: dict[str, dict[str, list[Path]]] = {}
    for name, path in study.manifests(kind).items():
        run, _, items = name.rpartition(":")
        found.setdefault(items, {}).setdefault(runs.get(run, run), []).append(path)
    order = {model: place for place, model in enumerate(models_in_order(study.runs))}
    return {
        items: {model: models[model] for model in sorted(models, key=lambda model: order.get(model, len(order)))}
        for items, models in found.items()
        if not read_manifest(next(iter(models.values()))[0]).listed(CORRELATION_FILE)
    }


def findings(
    settings: PairedTestsSettings,
    study: Study,
    answered: Mapping[str, Mapping[str, Answers]],
    nouns: Nouns,
    left_out: Sequence[str] = (),
) -> Findings:
    """Return findings with a row for each suite or task and each pair of models: the test of the difference between the
    accuracies of the two models. `left_out` are notes on suites or tasks that were not compared.
    """
    from hatchery.rendering.escaping import readable

    rows = [
        row
        for items, models in answered.items()
        for model, against in _compared(settings, list(models))
        for row in [
            {nouns.group: items, "model": model, "against": against, **_row(models[model], models[against], nouns)}
        ]
    ]
    corrected = holm([row["p_value"] for row in rows])
    rows = [row | {"p_corrected": round(p_value, 6)} for row, p_value in zip(rows, corrected, strict=True)]
    if not rows:
        return Findings(notes=[nouns.nothing, *left_out])
    numbers = ("accuracy of the first model", "accuracy of the second model", "difference", "95 % interval")
    headings = (*numbers, f"{nouns.items} won", f"{nouns.items} lost", "p", "p, corrected")
    columns = [Column("models", words=True), *map(Column, headings)]
    labels = labels_of(study.runs)
    groups = [
        Group([_line(row, labels, nouns) for row in rows if row[nouns.group] == items], readable(items))
        for items in dict.fromkeys(row[nouns.group] for row in rows)
    ]
    alone = all(has_single(row) for row in rows)
    title = f"{nouns.title}, {BETWEEN_TWO}" if alone else nouns.title
    notes = [*notes_of(rows, nouns), *left_out]
    return Findings(rows, [Table(columns, groups, title)], notes, answer(rows, labels, nouns))


def _compared(settings: PairedTestsSettings, models: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the compared pairs of models, as (model, reference model)."""
    if settings.against is None and len(models) <= EVERY_TWO_UP_TO:
        yield from ((model, other) for other, model in combinations(models, 2))
        return
    against = settings.against or models[0]
    yield from ((model, against) for model in models if model != against and against in models)


def _row(model: Answers, against: Answers, nouns: Nouns) -> Numbers:
    differences = model.shares - against.shares
    spread = NORMAL_95 * differences.std() / len(differences) ** 0.5
    deviations = _deviations(model, against, nouns)
    # Multiply each difference of two accuracies by both numbers of runs. The results are integers, so equal differences
    # compare as equal.
    whole = model.correct * against.runs - against.correct * model.runs
    row: Numbers = {
        nouns.items: len(differences),
        nouns.runs: model.runs,
        f"against_{nouns.runs}": against.runs,
        "seeds": model.seeds,
        "against_seeds": against.seeds,
        "accuracy_percent": _percent(model.shares.mean()),
        "against_accuracy_percent": _percent(against.shares.mean()),
        "difference": _percent(differences.mean()),
        "low": _percent(differences.mean() - spread),
        "high": _percent(differences.mean() + spread),
        **deviations,
        f"{nouns.items}_for": int((whole > 0).sum()),
        f"{nouns.items}_against": int((whole < 0).sum()),
        "p_value": round(sign_flip_p(whole), 6),
    }
    if model.failed is None:
        return row
    sound, other = model.without_failed(), against.without_failed()
    without = [value for value in _deviations(sound, other, nouns).values() if value is not None]
    return row | {
        "failed": model.n_failed,
        "against_failed": against.n_failed,
        "difference_without_failed": _percent(sound.shares.mean() - other.shares.mean()),
        "deviation_without_failed": max(without, default=None),
    }


def _deviations(model: Answers, against: Answers, nouns: Nouns) -> dict[str, float | None]:
    """Return the standard deviation over runs, and the standard deviation over pretraining seeds, of the difference
    between two models' accuracies, in percentage points.
    """
    from hatchery.analysis.published_values import combined_deviation

    found = {
        f"deviation_over_{nouns.runs}": combined_deviation(model.deviation, against.deviation, None),
        "deviation_over_seeds": combined_deviation(model.deviation_over_seeds, against.deviation_over_seeds, None),
    }
    return {name: None if value is None else _percent(value) for name, value in found.items()}


def _percent(share: float) -> float:
    return round(100 * float(share), 4) + 0.0


def _line(row: Mapping[str, Any], labels: Mapping[str, str], nouns: Nouns) -> list[Content]:
    from hatchery.analysis.summary_rows import summarised_text

    model, against = (labels.get(row[key], row[key]) for key in ("model", "against"))
    over_runs = row[f"deviation_over_{nouns.runs}"]
    said = (("failed", "failed"), ("against_failed", "of the other model failed"))
    failed = [f"{row[key]} {text}" for key, text in said if row.get(key)]
    deviation = "" if over_runs is None else f"{over_runs:.1f}"
    return [
        f"{model} against {against}",
        summarised_text(row["accuracy_percent"]),
        summarised_text(row["against_accuracy_percent"]),
        Cell(f"{row['difference']:+.1f}", deviation, ", ".join(failed), bold=is_beyond_chance(row, nouns.runs)),
        f"{row['low']:+.1f} to {row['high']:+.1f}",
        f"{row[f'{nouns.items}_for']:,}",
        f"{row[f'{nouns.items}_against']:,}",
        *(f"{p_value:.3f}" if p_value >= 0.001 else "< 0.001" for p_value in (row["p_value"], row["p_corrected"])),
    ]


def sign_flip_p(differences: "np.ndarray") -> float:
    """Return the two-sided p value of the sum of integer `differences` [n] under random signs; 1 if all differences are
    0.

    This is Fisher's exact test of paired differences. If all differences are -1, 0 or 1, as for two single runs, the
    test equals McNemar's test.
    """
    import numpy as np
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    # Divide all differences by their greatest common divisor. The p value stays the same, and fewer sums are possible.
    unit = np.gcd.reduce(sizes)
    # Under the null hypothesis, each difference is positive with probability 0.5. Compute the distribution of the sum
    # of the positive differences by convolution.
    chances = np.ones(1)
    for size, count in zip(sizes // unit, counts, strict=True):
        positive = np.zeros(size * count + 1)
        positive[::size] = binom.pmf(np.arange(count + 1), count, 0.5)
        chances = fftconvolve(chances, positive) if len(chances) > 1 else positive
    sums = 2 * np.arange(len(chances)) - (len(chances) - 1)
    extreme = chances[np.abs(sums) >= abs(int(differences.sum()) // unit)].sum()
    return min(1.0, max(0.0, float(extreme)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for multiple tests (Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure").

    If all null hypotheses are true, the probability that any corrected p value is below 0.05 is at most 0.05.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected


Read = Callable[[Path], "tuple[Any, np.ndarray, np.ndarray | None]"]
"""Function that reads a manifest and returns the items, the answers bool [runs, items], and the failed runs bool [runs]
(None if runs cannot fail)."""


def read_answers(models: Mapping[str, Sequence[Path]], read: Read, items: str) -> dict[str, Answers]:
    """Return the answers of each model; models without answers are left out. Raises EvaluationError if models answered
    different items.
    """
    import numpy as np

    from hatchery.errors import EvaluationError

    expected, first = None, None
    answered = {}
    for model, paths in models.items():
        right, failed, trainings = [], [], list[int]()
        for training, path in enumerate(paths):
            asked, answers, collapsed = read(path)
            if not len(answers):
                continue
            if expected is None:
                expected, first = asked, path
            elif not asked.equals(expected):
                raise EvaluationError(
                    f"{path}: the {items} differ from the {items} of {first}, expected the same {items}"
                )
            right.append(answers)
            trainings += [training] * len(answers)
            failed += [] if collapsed is None else [collapsed]
        if right:
            collapsed = np.concatenate(failed) if failed else None
            answered[model] = Answers(np.concatenate(right), np.array(trainings), collapsed)
    return answered
