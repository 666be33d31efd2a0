"""Correlations of perplexity and scores, for a study of invented tables and for published numbers."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scaling_study import PAPER, Analysed, altered, cells, rows
from scipy import stats
from summary_text import write_rows_of_summary

from hatchery.analysis.analyses.analysis import Study, analysis_called, settings_of
from hatchery.analysis.analyses.correlation import _comparison_row, _optimal_tables, counting, p_value_text
from hatchery.analysis.compute_optimal import EDGES, Comparison, compared
from hatchery.analysis.settings import PublishedChoice
from hatchery.analysis.summary_rows import read_summary
from hatchery.analysis.tidy_tables import CURVES, RUNS, read_frame, write_rows
from hatchery.errors import ConfigError
from hatchery.experiment.seeded_run import SeededRun

SUITES = ("rv_glue", "rv_glue_filtered")


@pytest.mark.parametrize("take", ["weights", "training"])
def test_a_model_that_goes_on_from_another_is_not_correlated(study: Study, tmp_path: Path, take: str) -> None:
    continued = altered(study, tmp_path, lambda run: [{**run, "initial": take if run["model"] == "one/m_64_2" else ""}])
    found = analysis_called("correlation").run(settings_of("correlation", {"experiments": ["one"]}), continued)
    names = {row["model"] for row in rows(found, kind="model")}
    assert len(names) == 11 and "one/m_64_2" not in names


def test_correlations_say_n_and_a_p_that_fits(analysed: Analysed) -> None:
    found = analysed("correlation", experiments=["one"], **PAPER)
    (ours,) = rows(found, kind="correlation", source="ours", suite="rv_glue")
    # Twelve trained models; models without pretraining do not count.
    assert (ours["pairs"], ours["rho"], ours["exact"]) == (12, -1.0, 0)
    (table,) = rows(found, kind="correlation", source="published Table 3", suite="rv_glue_filtered")
    assert (table["pairs"], table["rho"], table["p_value"]) == (19, -0.3965, 0.0928)
    printed = [row[2:5] for row in cells(found) if row[1].startswith("printed") and row[0] == "rv_glue_filtered"]
    assert printed == [["32 stated", "-0.67", "6.25e-7"], ["32", "-0.67", "2.73e-5"]]
    assert any(note.startswith("The printed p values do not fit") for note in found.notes)
    # This tied model has 11,304,258 parameters. The paper prints 110e15 FLOPs.
    largest = {"source": "published Table 3", "model": "rv_256_256_1024_8_8", "suite": "rv_glue"}
    (row,) = rows(found, kind="model", **largest)
    assert (row["parameters"], row["flops"]) == (11_304_258, pytest.approx(1.10e17, rel=5e-3))


@pytest.mark.parametrize(
    ("mixed", "pairs"), [("perplexity", {}), ("rv_glue", {"rv_glue_filtered": 12}), ("dev", dict.fromkeys(SUITES, 12))]
)
def test_perplexities_and_scores_that_do_not_compare_are_not_correlated(
    study: Study, tmp_path: Path, mixed: str, pairs: Mapping[str, int]
) -> None:
    summary = [
        replace(row, basis=f"asked: {row.model.rpartition('_')[2]} % of spans") if row.suite == mixed else row
        for row in read_summary(study.tables["summary"])
    ]
    # Perplexities of a split other than the configured split have no effect.
    summary += [replace(row, task="dev", basis=row.model) for row in summary if row.suite == "perplexity"]
    tables = {**study.tables, "summary": write_rows_of_summary(tmp_path, summary)}
    settings = settings_of("correlation", {"experiments": ["one"], **PAPER})
    found = analysis_called("correlation").run(settings, replace(study, tables=tables))
    message = f"Not compared: {mixed} of ours, because models predicted different tokens"
    assert any(note.startswith(message) for note in found.notes) == (mixed != "dev")
    assert {row["suite"]: row["pairs"] for row in rows(found, kind="correlation", source="ours")} == pairs
    assert {row["suite"] for row in rows(found, kind="model", source="ours")} == pairs.keys()
    # The numbers of the paper's table remain.
    assert {row["pairs"] for row in rows(found, kind="correlation", source="published Table 3")} == {19}


def test_three_models_are_enough_and_the_average_of_the_suite_is_the_score(analysed: Analysed, study: Study) -> None:
    found = analysed("correlation", experiments=["one"], models=["m_16_*"], suites=["rv_glue"], flops="six_n_d")
    (row,) = rows(found, kind="correlation", source="ours")
    # Of the six orders of three models, one has rho -1, so the two-sided p is 2 / 6.
    assert (row["pairs"], row["rho"], row["p_value"], row["exact"]) == (3, -1.0, 0.333, 1)
    assert cells(found)[0] == ["rv_glue", "ours", "3", "-1.00", "0.33", "all orders"]
    for pair in rows(found, kind="model", source="ours"):
        (run,) = [run for run in read_frame(study.tables["runs"], RUNS).to_dicts() if run["model"] == pair["model"]]
        assert pair["score"] == pytest.approx(80 - 5 * run["development_loss"], abs=5e-5)
        # N excludes the word embedding, which has 2,000 rows of 16 values and is only looked up.
        assert pair["flops"] == pytest.approx(6 * (run["parameters"] - 32_000) * run["tokens"], rel=1e-6)


def test_the_development_perplexity_counts_where_one_model_lacks_that_of_the_split(
    study: Study, tmp_path: Path
) -> None:
    summary = [row for row in read_summary(study.tables["summary"]) if row.experiment == "one"]
    summary += [
        replace(row, suite="pretraining", task="development", mean=7.0 + place)
        for place, row in enumerate(row for row in summary if row.suite == "perplexity")
    ]
    settings = settings_of("correlation", {"experiments": ["one"], "suites": ["rv_glue"]})
    for lacking, development in ((None, False), ("one/m_64_2", True)):
        kept = [row for row in summary if (row.model, row.task) != (lacking, "test")]
        tables = {**study.tables, "summary": write_rows_of_summary(tmp_path, kept)}
        found = analysis_called("correlation").run(settings, replace(study, tables=tables))
        perplexities = sorted(row["perplexity"] for row in rows(found, kind="model"))
        assert len(perplexities) == 12
        assert all((value >= 7 and value == int(value)) == development for value in perplexities)


def test_a_correlation_may_be_of_the_models_that_a_table_has_and_of_those_that_are_named(
    analysed: Analysed, study: Study
) -> None:
    found = analysed("correlation", tabulated=True, models=["m_*_2"], **PAPER)
    counted = {row["model"] for row in rows(found, kind="model", source="ours", suite="rv_glue")}
    # Two models of `one` repeat rows of the table. A model that repeats another model's row does not count.
    named = {f"{part}/m_{hidden}_2" for part in ("one", "two") for hidden in (16, 32, 64, 128)}
    assert counted == {"one/m_16_1", "one/m_128_4", *named}
    printed = [row[2:5] for row in cells(found) if row[1].startswith("printed") and row[0] == "rv_glue_filtered"]
    # A row of another paper does not count.
    other = PublishedChoice("gpt_bert", {"one/m_64_4": "rv_256_256_1024_8_8"})
    counts = counting(settings_of("correlation", {"tabulated": True, **PAPER}), replace(study, published=(other,)))
    assert not counts("one/m_64_4")
    # SciPy's p value of Pearson's rho uses the same t distribution.
    fitting = p_value_text(2 * stats.t.sf(0.67 * math.sqrt(8 / (1 - 0.67**2)), 8))
    assert printed == [["32 stated", "-0.67", "6.25e-7"], ["32", "-0.67", "2.73e-5"], ["10", "-0.67", fitting]]


def test_a_pattern_that_no_model_is_called_is_told() -> None:
    study = Study("mine", tuple(SeededRun.from_seed(model, 1) for model in ("one/small", "one/large")))
    analysis = analysis_called("correlation")
    analysis.check(settings_of("correlation", {"models": ["sm*"]}), study)
    with pytest.raises(ConfigError, match=r"models: got 'tiny\*', expected the name of a model of this study"):
        analysis.check(settings_of("correlation", {"models": ["tiny*"]}), study)
    with pytest.raises(ConfigError, match="tabulated: got true, expected false without a `paper`"):
        settings_of("correlation", {"tabulated": True})


def test_models_are_compared_with_others_of_their_size_where_it_has_both_kinds() -> None:
    models = [(10, True, 60.0), (10, False, 50.0), (10, False, 54.0), (20, True, 55.0), (20, False, 70.0)]
    # A size with only one kind of model does not count.
    found = compared([*models, (30, False, 90.0)])
    assert found == Comparison(optimal=2, optimal_mean=57.5, others=4, others_mean=66.0, sizes=2, ahead=1)
    (shown,) = _optimal_tables({"glue": replace(found, sizes=3)})
    assert shown.rows[0].cells == ["glue", "2", "57.5", "4", "66.0", "1 of 3"]
    row = _comparison_row("glue", replace(found, sizes=3))
    assert (row["optimal_mean"], row["other_mean"], row["sizes"], row["ahead"]) == (57.5, 66.0, 3, 1)
    # Equal means do not count as ahead.
    equal = compared([*models, (40, True, 60.5), (40, False, 60.0), (40, False, 61.0)])
    assert equal is not None and (equal.sizes, equal.ahead) == (3, 1)
    assert compared([(10, True, 60.0)]) is None


def test_the_comparison_of_compute_optimal_models_stands_below_the_correlation(study: Study, tmp_path: Path) -> None:
    curves = read_frame(study.tables["curves"], CURVES).to_dicts()
    last = {row["run"]: row["development_loss"] for row in curves}
    ended = altered(study, tmp_path, lambda run: [run | {"development_loss": last.get(run["run"])}])
    found = analysis_called("correlation").run(settings_of("correlation", {"experiments": ["one"]}), ended)
    marks = [row["optimal"] for row in rows(found, kind="model", suite="rv_glue")]
    (row,) = rows(found, kind="optimality", suite="rv_glue")
    assert (row["optimal_models"], row["other_models"]) == (marks.count(1), marks.count(0))
    assert cells(found, 1)[0][:2] == ["rv_glue", str(marks.count(1))]
    # No model of `one` has a loss of `two`, whose evaluations are the frontier here.
    worse = [row | {"development_loss": row["development_loss"] + (row["experiment"] == "two")} for row in curves]
    write_rows(tmp_path / "curves.parquet", CURVES, worse)
    other = replace(ended, tables={**ended.tables, "curves": tmp_path / "curves.parquet"})
    for frontier, number in (("one", marks.count(1)), ("two", 0)):
        settings = settings_of("correlation", {"experiments": ["one"], "frontier": [frontier]})
        found = analysis_called("correlation").run(settings, other)
        assert sum(row["optimal"] for row in rows(found, kind="model", suite="rv_glue", source="ours")) == number
    # Models above the limit are never compute-optimal.
    runs = {row["model"]: row for row in read_frame(study.tables["runs"], RUNS).to_dicts()}
    limit = runs["one/m_16_4"]["parameters"]
    settings = settings_of("correlation", {"experiments": ["one"], "most_parameters": limit})
    found = analysis_called("correlation").run(settings, ended)
    optimal = [row["model"] for row in rows(found, kind="model", suite="rv_glue") if row["optimal"]]
    assert optimal and all(runs[model]["parameters"] <= limit for model in optimal)


def test_the_last_loss_of_a_compute_optimal_model_is_the_mean_over_its_seeds(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves = read_frame(study.tables["curves"], CURVES, experiment=["one"]).to_dicts()
    last = {row["run"]: row["development_loss"] for row in curves}

    def seeds(row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of two seeds, whose losses differ by 0.2 and have the mean of the row's model."""
        loss = last.get(row["run"], 0.0) if "manifest" in row else row["development_loss"]
        return [
            {**row, "seed": seed, "run": f"{row['model']}-s{seed}", "development_loss": loss + change}
            | ({"manifest": f"{row['model']} {seed}"} if "manifest" in row else {})
            for seed, change in ((1, 0.1), (2, -0.1))
        ]

    single = altered(study, tmp_path, lambda run: [run | {"development_loss": last.get(run["run"], 0.0)}])
    settings = settings_of("correlation", {"experiments": ["one"], "suites": ["rv_glue"]})
    one = analysis_called("correlation").run(settings, single)
    (tmp_path / "several").mkdir()
    several = altered(study, tmp_path / "several", seeds)
    write_rows(tmp_path / "several/curves.parquet", CURVES, [each for row in curves for each in seeds(row)])
    several = replace(several, tables={**several.tables, "curves": tmp_path / "several/curves.parquet"})
    both = analysis_called("correlation").run(settings, several)
    marks = [[(row["model"], row["optimal"]) for row in rows(found, kind="model")] for found in (one, both)]
    assert marks[0] == marks[1] and sum(optimal for _, optimal in marks[0]) > 0
    # Without any point in the bins of January 2023, no model is compute-optimal.
    monkeypatch.setitem(EDGES, "january_2023", lambda costs, bins: np.array([0.0, 1.0]))
    none = analysis_called("correlation").run(replace(settings, bins="january_2023"), single)
    assert not any(row["optimal"] for row in rows(none, kind="model"))


def test_one_suite_can_be_chosen(analysed: Analysed) -> None:
    found = analysed("correlation", suites=["rv_glue"])
    assert {row["suite"] for row in found.rows} == {"rv_glue"}
    assert rows(found, kind="correlation")[0]["pairs"] == 24
