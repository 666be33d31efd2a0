"""Two experiments side by side: the settings in which they differ, and their scores with intervals.

The interval of a difference is Welch's 95 % interval. The standard error of a mean is the standard deviation over runs,
divided by the square root of the number of pretraining seeds. With one seed, the number of runs replaces the number of
seeds. For a single run, the standard error is due to the sampling of the test items. With this error, the interval is
too wide if both models were scored on the same items; the analysis `minimal_pair_tests` compares the models item by
item.

If a standard error is unknown, there is no interval. If scores are not comparable, no difference is shown.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.analysis.comparability import BETWEEN_TWO, ONE_SEED, not_compared
from hatchery.analysis.scores import Scores, name_of, read_scores
from hatchery.analysis.settings import labels_of
from hatchery.analysis.summary_rows import SummaryRow, decimals_of
from hatchery.evaluation.basis import differing
from hatchery.experiment.project import Project
from hatchery.rendering.setting_texts import differences, shorten
from hatchery.rendering.table import Cell, Column, Group, Table
from hatchery.training.stages.pretrain import pretraining_settings
from hatchery.typed import plain

LEVEL = 0.95
# Keys of an experiment that do not affect results (`base`, `description`, `published`), or whose differences are listed
# by model (`pretraining`, `runs`).
_TOLD_ELSEWHERE = {"base", "description", "pretraining", "published", "runs"}


@dataclass(frozen=True)
class Estimate:
    """A difference of means with its 95 % interval; `low` and `high` are None if the standard error of either mean is
    unknown.

    `of_models` is True if each of the two compared models has several pretraining seeds.
    """

    difference: float
    low: float | None = None
    high: float | None = None
    of_models: bool = True

    @property
    def leaves_out_zero(self) -> bool:
        """True if the 95 % interval of the difference excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    @property
    def is_clear(self) -> bool:
        """True if the models differ: the 95 % interval of the difference excludes 0, and its computation accounts for
        the variation over pretraining seeds.
        """
        return self.of_models and self.leaves_out_zero


def difference_of(one: SummaryRow, other: SummaryRow) -> Estimate:
    """Return the mean of `other` minus the mean of `one`, with the 95 % interval of this difference. Each row must have
    a mean."""
    assert one.mean is not None and other.mean is not None
    difference, of_models = other.mean - one.mean, min(one.seeds, other.seeds) > 1
    noise = [_noise(row) for row in (one, other)]
    if None in noise:
        return Estimate(difference, of_models=of_models)
    variances, freedoms = zip(*((error**2, freedom) for error, freedom in filter(None, noise)), strict=True)
    total = math.fsum(variances)
    if not total:
        return Estimate(difference, difference, difference, of_models)
    from scipy.stats import t

    freedom = total**2 / math.fsum(own**2 / of for own, of in zip(variances, freedoms, strict=True))
    reach = float(t.ppf((1 + LEVEL) / 2, freedom)) * math.sqrt(total)
    return Estimate(difference, difference - reach, difference + reach, of_models)


def _noise(row: SummaryRow) -> tuple[float, float] | None:
    """Return (standard error, degrees of freedom) of a row's mean; None if the standard error is unknown."""
    if row.std is not None and row.n > 1:
        # Fine-tuning runs of one pretraining are not independent samples of a model, so the sample size is the number
        # of seeds. With a single seed, the interval covers only the variation over fine-tuning runs.
        independent = row.seeds if row.seeds > 1 else row.n
        return row.std / math.sqrt(independent), independent - 1
    # The mean over hundreds of items is approximately normal. In the t distribution, this corresponds to practically
    # infinite degrees of freedom.
    return None if row.sampling_deviation is None else (row.sampling_deviation, 1e6)


def side_by_side(project: Project, experiments: tuple[str, str], results: Path, everything: bool = False) -> Table:
    """Return a table of the settings that differ between two experiments, and of the scores of models that both have.
    If `everything` is True, all scores are shown. Otherwise, averages are shown, and other scores only if the interval
    of their difference excludes 0.

    Raises ConfigError for an unknown or invalid experiment, and ManifestError for an altered table.
    """
    for name in experiments:
        project.require("experiment", name, "compare")
        project.check("experiment", name)
    columns = [Column("", words=True), *(Column(name, words=True) for name in experiments), Column("difference")]
    settings = Group([*_setting_rows(project, experiments)], "Settings that differ")
    notes, numbers = list[str](), Group([], "Numbers")
    if not settings.rows:
        notes.append("The experiments have equal settings.")
    if missing := [name for name in experiments if not (results / name / "summary.parquet").is_file()]:
        notes.append(f"There are no results of {' and '.join(missing)} yet: make run EXPERIMENT={missing[0]}")
    else:
        scores = [
            read_scores(results / name / "summary.parquet", labels_of(project.seeded_runs(name)))
            for name in experiments
        ]
        rows, left_out, incomparable, single = _number_rows(scores, everything)
        numbers = Group(rows, f"Numbers, {BETWEEN_TWO}" if single == len(rows) else "Numbers")
        notes.append(
            f"In brackets: the {100 * LEVEL:.0f} % interval of the difference. Bold: the interval excludes 0, "
            "and both models have several pretraining seeds. If one of the two means is from a single run "
            "with unknown noise, there is no interval."
        )
        notes += [ONE_SEED] if single else []
        notes += not_compared(incomparable)
        notes += (
            [
                "Number of scores that are not shown, because their differences may be noise or because the scores "
                f"are not comparable: {left_out}. `make diff` with ALL=1 and `hatchery compare` with --all show these "
                "scores."
            ]
            if left_out
            else []
        )
        notes += _only_on_one_side(experiments, [score.models for score in scores])
    groups = [group for group in (settings, numbers) if group.rows]
    return Table(columns, groups, " and ".join(experiments), notes=notes)


def _setting_rows(project: Project, experiments: tuple[str, str]) -> Iterator[Sequence[str]]:
    first, second = (_common_settings(project, name) for name in experiments)
    for found in differences(first, second):
        yield _setting_row("", found)
    runs = [_settings_of_models(project, name) for name in experiments]
    shared = [model for model in runs[0] if model in runs[1]]
    of_models: dict[Any, list[str]] = {}
    for model in shared:
        for found in differences(runs[0][model], runs[1][model]):
            of_models.setdefault(found, []).append(model)
    for found, models in of_models.items():
        yield _setting_row("" if models == shared else f"{', '.join(models)}: ", found)


def _setting_row(of: str, found: Any) -> list[str]:
    sides = ("none" if value is None else shorten(value) for value in (found.old, found.new))
    return [of + found.key, *([found.counts, ""] if found.counts else sides), ""]


def _common_settings(project: Project, name: str) -> dict[str, Any]:
    block = project.experiment(name)
    # An inline corpus has the name of its experiment, so names do not show if two corpora are equal. Compare the
    # contents of corpus and tokenizer.
    content = {kind: plain(project.block(kind, getattr(block, kind))) for kind in ("corpus", "tokenizer")}
    return {
        key: {own: inner for own, inner in value.items() if own != "description"} if key in content else value
        for key, value in (plain(block) | content).items()
        if key not in _TOLD_ELSEWHERE
    }


def _settings_of_models(project: Project, name: str) -> dict[str, dict[str, Any]]:
    """Return the pretraining settings of each model. The value of the key `seed` is the list of the model's seeds."""
    found: dict[str, dict[str, Any]] = {}
    for run in project.seeded_runs(name):
        settings = found.setdefault(run.model, {**plain(pretraining_settings(project, name, run.name)), "seed": []})
        settings["seed"].append(run.seed)
    return found


def _number_rows(
    scores: Sequence[Scores], everything: bool
) -> tuple[list[Sequence[str | Cell]], int, dict[str, dict[str, list[str]]], int]:
    """Return (rows of the table of scores, number of omitted rows, incomparable scores, number of rows in which a model
    has a single pretraining seed).

    Incomparable scores are grouped by name. Each group states the conditions that differ.
    """
    one, other = scores
    headline = {(measure.suite, measure.task, measure.metric) for score in scores for measure in score.headline()}
    both = set(one.keys()) & set(other.keys())
    keys = sorted(both, key=one.keys().index)
    rows: list[Sequence[str | Cell]] = []
    incomparable: dict[str, dict[str, list[str]]] = {}
    left_out = single = 0
    for model in (model for model in one.models if model in other.models):
        for key in keys:
            pair = one.row(model, *key), other.row(model, *key)
            if pair[0] is None or pair[1] is None or pair[0].mean is None or pair[1].mean is None:
                continue
            estimate, digits = difference_of(pair[0], pair[1]), decimals_of(key[2])
            different = differing(row.basis for row in pair if row is not None)
            if not (everything or key in headline or (estimate.leaves_out_zero and not different)):
                left_out += bool(estimate.difference)
                continue
            single += not estimate.of_models
            if different:
                incomparable[name_of(key)] = different
            sides = [
                Cell(f"{row.mean:.{digits}f}", "" if row.std is None else f"{row.std:.{digits}f}")
                for row in (pair[0], pair[1])
            ]
            last = Cell("-") if different else _difference_cell(estimate, digits)
            rows.append([f"{one.label(model)}: {name_of(key)}", *sides, last])
    return rows, left_out, incomparable, single


def _difference_cell(estimate: Estimate, digits: int) -> Cell:
    interval = "" if estimate.low is None else f"{estimate.low:+.{digits}f} to {estimate.high:+.{digits}f}"
    return Cell(f"{estimate.difference:+.{digits}f}", remark=interval, bold=estimate.is_clear)


def _only_on_one_side(experiments: Iterable[str], models: Sequence[Sequence[str]]) -> Iterator[str]:
    for name, own, others in zip(experiments, models, reversed(models), strict=True):
        if alone := [model for model in own if model not in others]:
            yield f"Only in {name}: {', '.join(alone)}."


def shown(table: Table) -> str:
    """Return the table as text for a terminal, with its notes."""
    return "\n".join([table.markdown(aligned=True), *(f"\n{note}" for note in table.notes)]) + "\n"
