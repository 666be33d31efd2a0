"""Two experiments side by side: settings that differ, and differences of numbers with intervals."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hatchery.analysis.summary_rows import SummaryRow, write_parquet
from hatchery.artifacts.checksums import write_checksums
from hatchery.experiment.project import Project
from hatchery.views.side_by_side import _only_on_one_side, difference_of, shown, side_by_side


def row(task: str, mean: float, std: float | None, n: int, sampling: float | None = None) -> SummaryRow:
    made = SummaryRow("demo", "ltg_bert", "demo", task, "accuracy_percent", mean, std, n, 0, mean, 0, *[None] * 6, "")
    return replace(made, published_source="", verdict="", sampling_deviation=sampling, seeds=n)


def test_the_interval_is_that_of_welch() -> None:
    one, other = np.array([60.0, 64.0, 65.0]), np.array([70.0, 71.0, 75.0, 76.0])
    rows = [row("a", float(x.mean()), float(x.std(ddof=1)), len(x)) for x in (one, other)]
    expected = stats.ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    found = difference_of(*rows)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.is_clear
    single = difference_of(row("a", 60.0, None, 1, 3.0), row("a", 64.0, None, 1, 4.0))
    assert (single.low, single.high) == pytest.approx((4 - 1.96 * 5, 4 + 1.96 * 5), abs=1e-3)
    assert not single.is_clear
    assert difference_of(row("a", 60.0, None, 1), row("a", 64.0, 1.0, 3)).low is None
    exact = difference_of(row("a", 60.0, 0.0, 3), row("a", 64.0, 0.0, 3))
    assert (exact.difference, exact.low, exact.high, exact.is_clear) == (4.0, 4.0, 4.0, True)


def test_models_of_only_one_of_two_experiments_are_named() -> None:
    assert list(_only_on_one_side(("a", "b"), [["x", "y", "w"], ["y", "z"]])) == ["Only in a: x, w.", "Only in b: z."]


def test_runs_of_one_pretraining_are_no_further_models() -> None:
    one, other = row("a", 60.0, 1.0, 6), row("a", 70.0, 2.0, 6)
    # Six runs of two pretraining seeds each: standard errors over two seeds, and Welch's degrees of freedom.
    found = difference_of(*(replace(each, seeds=2) for each in (one, other)))
    variances = (1 / 2, 4 / 2)
    reach = stats.t.ppf(0.975, sum(variances) ** 2 / sum(each**2 for each in variances)) * math.sqrt(sum(variances))
    assert (found.low, found.high) == pytest.approx((10 - reach, 10 + reach))
    # Runs of one pretraining seed do not show the variation between seeds, so no difference is clear.
    for seeds in ((1, 1), (1, 3), (3, 1)):
        single = difference_of(*(replace(each, seeds=n) for each, n in zip((one, other), seeds, strict=True)))
        assert single.leaves_out_zero and not single.is_clear


def test_settings_and_numbers_that_differ_stand_in_one_table(configuration: Path, tmp_path: Path) -> None:
    (configuration / "experiments/other.yaml").write_text(
        "base: demo\ndescription: another rate\nruns:\n  ltg_bert: {pretraining: {optimizer: {learning_rate: 0.001}}}\n"
    )
    project, results = Project(configuration), tmp_path / "results"
    names = ("demo", "other")
    without = shown(side_by_side(project, names, results))
    assert [line.split("|")[1:4] for line in without.splitlines() if "learning_rate" in line] == [
        [" ltg_bert: optimizer.learning_rate ", " 0.01 ", " 0.001 "]
    ]
    assert without.count("|") == 5 * 4, "nothing else differs"
    assert "The experiments have equal settings." in shown(side_by_side(project, ("demo", "demo"), results))
    assert "There are no results of demo and other yet: make run EXPERIMENT=demo" in without
    rows = [row("clear", 60.0, 1.0, 3), row("noise", 60.0, 9.0, 3), row("same", 60.0, 1.0, 3)]
    # Equal numbers are neither shown nor counted.
    others = [*(replace(one, mean=(one.mean or 0) + 5) for one in rows[:2]), rows[2]]
    for name, numbers in (("demo", rows), ("other", others)):
        path = results / name / "summary.parquet"
        path.parent.mkdir(parents=True)
        write_parquet(path, numbers)
        write_checksums([path])
    some, everything = (shown(side_by_side(project, names, results, every)) for every in (False, True))
    reach = stats.t.ppf(0.975, 4) * math.sqrt(2 / 3)
    assert f"**+5.0** ({5 - reach:+.1f} to {5 + reach:+.1f})" in some
    assert (
        "demo: noise" not in some
        and "because their differences may be noise or because the scores are not comparable: 1." in some
    )
    assert "+5.0 (-15.4 to +25.4)" in everything
    # Numbers that are not comparable have a dash and a note with the reason.
    apart = [replace(rows[0], basis=f"precision: {name}") for name in ("fp32", "tf32")]
    for name, numbers in zip(names, ([apart[0]], [replace(apart[1], mean=65.0)]), strict=True):
        write_parquet(results / name / "summary.parquet", numbers)
        write_checksums([results / name / "summary.parquet"])
    text = shown(side_by_side(project, names, results, True))
    assert re.search(r"\| 60\.0 ± 1\.0 +\| 65\.0 ± 1\.0 +\| +- +\|", text)
    assert "Not compared: demo: clear, because the precisions differ (fp32; tf32)" in text
    # Three runs of a single pretraining seed in each experiment.
    for name, mean in zip(names, (60.0, 65.0), strict=True):
        write_parquet(results / name / "summary.parquet", [replace(rows[0], mean=mean, seeds=1)])
        write_checksums([results / name / "summary.parquet"])
    text = shown(side_by_side(project, names, results))
    assert "| **Numbers, each between two trained models**" in text and "| **Settings that differ**" in text
    assert "A model with one pretraining seed is a single trained model." in text
    assert f"+5.0 ({5 - reach:+.1f} to {5 + reach:+.1f})" in text and "**+5.0**" not in text
