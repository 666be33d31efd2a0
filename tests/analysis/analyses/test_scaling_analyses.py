"""What the analyses of scaling find in a study of invented tables, and in the published files beside it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from summary_text import write_rows_of_summary

from hatchery.analysis.analyses.analysis import Findings, Study, analysis_called, settings_of
from hatchery.analysis.analyses.correlation import p_value_text
from hatchery.analysis.compute_optimal import (
    Comparison,
    compared,
    frontier,
    optimal_models,
    points_of_runs,
    quantile_edges,
    regions_of_one_model,
)
from hatchery.analysis.flops_counts import COUNT_NAMES
from hatchery.analysis.summary_rows import read_summary
from hatchery.analysis.tidy_tables import CURVES, MEASUREMENTS, RUNS, read_frame, write_rows
from hatchery.errors import ConfigError
from hatchery.experiment.seeded_run import SeededRun

Analysed = Callable[..., Findings]
SUITES = ("rv_glue", "rv_glue_filtered")
PAPER = {"paper": "reduced_vocabulary"}
REGIONS = {"below_break": {"up_to": 2.2e15}, "above_break": {"above": 2.65e15}}


def rows(found: Findings, **wanted: Any) -> list[Mapping[str, Any]]:
    return [row for row in found.rows if wanted.items() <= row.items()]


def cells(found: Findings, table: int = 0) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell.text for cell in row.cells] for row in found.tables[table].rows]


@pytest.fixture(scope="module")
def laws(analysed: Analysed) -> Findings:
    return analysed("power_laws", experiments=["one"], draws=100)


@pytest.fixture(scope="module")
def laws_of_both(analysed: Analysed) -> Findings:
    return analysed("power_laws", experiments=["one"], bins="january_2023", regions=REGIONS, draws=100, **PAPER)


def test_the_loss_of_a_study_falls_as_a_power_law_with_an_interval(laws: Findings) -> None:
    assert len(rows(laws, kind="point")) == 12 * 20
    (law,) = rows(laws, kind="law", axis="flops")
    assert (law["region"], law["points"]) == ("all", 30)
    assert -0.2 < law["exponent_low"] <= law["exponent"] <= law["exponent_high"] < 0
    assert law["r_squared"] > 0.95
    assert {row["axis"] for row in rows(laws, kind="law")} == {"flops", "tokens", "parameters"}


def test_only_the_named_experiments_count_and_untrained_models_never(analysed: Analysed, laws: Findings) -> None:
    both = analysed("power_laws", draws=2)
    assert {row["model"].partition("/")[0] for row in rows(laws, kind="point")} == {"one"}
    assert {row["model"].partition("/")[0] for row in rows(both, kind="point")} == {"one", "two"}
    assert not any("untrained" in row["model"] for row in rows(both, kind="point"))
    small = analysed("power_laws", draws=2, most_parameters=200_000)
    assert 0 < len(rows(small, kind="point")) < len(rows(both, kind="point"))


def test_the_compute_optimal_points_have_the_lowest_loss_of_their_bins(laws: Findings) -> None:
    best = sorted((row["flops"], row["loss"]) for row in rows(laws, kind="point", optimal=1))
    assert len(best) == 30
    assert min(loss for _, loss in best) == min(row["loss"] for row in rows(laws, kind="point"))


def test_the_points_are_means_of_the_seeds_and_not_the_luckiest(
    analysed: Analysed, laws: Findings, study: Study, tmp_path: Path
) -> None:
    def with_another_seed(table: str) -> list[dict[str, Any]]:
        rows = read_frame(study.tables[table], {"runs": RUNS, "curves": CURVES}[table], experiment=["one"]).to_dicts()
        other = [{**row, "seed": 2, "run": row["run"].replace("-s1", "-s2")} for row in rows]
        return rows + [{**row, "manifest": f"{row['manifest']} 2"} if "manifest" in row else row for row in other]

    runs, curves = with_another_seed("runs"), with_another_seed("curves")
    for row in curves:
        if row["seed"] == 2:
            row["development_loss"] -= 0.3
    # A seed that was not evaluated at a step would leave the other one alone there.
    (last,) = [row for row in curves if (row["run"], row["step"]) == ("one/m_128_4-s2", 400)]
    write_rows(tmp_path / "runs.parquet", RUNS, runs)
    write_rows(tmp_path / "curves.parquet", CURVES, [row for row in curves if row is not last])
    tables = {**study.tables, "runs": tmp_path / "runs.parquet", "curves": tmp_path / "curves.parquet"}
    found = analysis_called("power_laws").run(settings_of("power_laws", {"draws": 2}), replace(study, tables=tables))
    single = {(row["model"], row["step"]): row for row in rows(laws, kind="point")}
    points = {(row["model"], row["step"]): row for row in rows(found, kind="point")}
    assert single.keys() - points.keys() == {("one/m_128_4", 400)}
    for place, row in points.items():
        assert row["loss"] == pytest.approx(single[place]["loss"] - 0.15, abs=1e-5)
        assert row["flops"] == single[place]["flops"]


def test_six_n_d_of_a_point_counts_the_tokens_seen_by_then_and_the_limit_of_parameters_holds_its_own(
    study: Study,
) -> None:
    """The embedding of 2,000 rows is looked up: 6 (N - 2000 E) D."""
    runs = {run["model"]: run for run in read_frame(study.tables["runs"], RUNS, experiment=["one"]).to_dicts()}
    limit = runs["one/m_64_2"]["parameters"]
    found = points_of_runs(study.tables["runs"], study.tables["curves"], "six_n_d", ["one"], most_parameters=limit)
    for point in found:
        run = runs[point.model]
        assert point.flops == pytest.approx(
            6 * (run["parameters"] - 2000 * run["embedding_size"]) * 2048 * point.step, rel=1e-9
        )
        # 32 sequences of 64 tokens a step.
        assert point.tokens == 2048 * point.step
    smaller = {model for model, run in runs.items() if run["steps"] and run["parameters"] <= limit}
    assert {point.model for point in found} == smaller and "one/m_64_2" in smaller and len(smaller) < 12
    assert min(point.step for point in found) == 20, "of a model that was not trained yet there is no point"


@pytest.mark.parametrize("count", [count for count in COUNT_NAMES if count != "products"])
def test_another_count_of_flops_moves_the_points_along_their_axis(
    analysed: Analysed, laws: Findings, count: str
) -> None:
    other = analysed("power_laws", experiments=["one"], draws=2, flops=count)
    ours, theirs = rows(laws, kind="point")[0], rows(other, kind="point")[0]
    assert ours["loss"] == theirs["loss"] and ours["flops"] != theirs["flops"]


def test_published_curves_go_through_the_same_beside_what_is_printed(laws_of_both: Findings) -> None:
    law = rows(laws_of_both, kind="law", source="published curves", region="above_break")[0]
    assert (law["exponent"], law["points"]) == (pytest.approx(-0.1429, abs=1e-4), 19)
    assert law["exponent_low"] < -0.1412 < law["exponent_high"]
    (cut,) = rows(laws_of_both, kind="break", source="published curves")
    assert (cut["above"], cut["up_to"]) == (pytest.approx(2.63e15, rel=0.01), pytest.approx(2.93e15, rel=0.01))
    printed = [row for row in cells(laws_of_both) if row[0] == "printed"]
    assert [row[2] for row in printed] == ["-0.0929", "-0.1412", "-0.2459", "-0.2805"]


def test_a_region_without_points_has_dashes(laws_of_both: Findings) -> None:
    above = [row for row in cells(laws_of_both) if row[:2] == ["ours", "0"]]
    assert above == [["ours", "0", "-", "-", "-", "-"]]


def test_a_study_without_losses_says_so(analysed: Analysed) -> None:
    found = analysed("power_laws", experiments=["nobody"], draws=2, **PAPER)
    assert any("no development losses" in note for note in found.notes)
    assert {row["source"] for row in found.rows} == {"published curves"}
    assert not analysed("power_laws", experiments=["nobody"]).rows


def test_cost_effectiveness_sets_our_steps_beside_table_2(analysed: Analysed) -> None:
    found = analysed("cost_effectiveness", experiments=["one"], **PAPER)
    ours = rows(found, source="ours", size="num_hidden_layers")
    assert [(row["from"], row["to"]) for row in ours[:2]] == [(1, 2), (2, 4)]
    assert len(ours) == 8 and all(row["ratio"] > 0 for row in ours)
    pairs = [(row[3], row[4]) for row in cells(found) if row[4] != "-"]
    assert len(pairs) == 12 and all(logged == printed for logged, printed in pairs)
    assert any("development perplexity" in note for note in found.notes)


def test_steps_can_be_those_within_the_sets_of_a_grid(analysed: Analysed) -> None:
    found = analysed("cost_effectiveness", experiments=["one"], sizes=["num_hidden_layers"], sets=["set_1"])
    assert [(row["from"], row["to"]) for row in found.rows] == [(1, 2)] * 4
    assert any("within set-1" in note for note in found.notes)


def test_an_unknown_set_is_told_with_the_nearest(study: Study) -> None:
    analysis = analysis_called("cost_effectiveness")
    with pytest.raises(ConfigError, match=r"no set of a grid; did you mean 'set_1'\? There are: set_1, larger"):
        analysis.check(settings_of("cost_effectiveness", {"sets": ["set_2"]}), study)


def test_a_model_that_two_experiments_name_counts_once(study: Study, analysed: Analysed, tmp_path: Path) -> None:
    runs = read_frame(study.tables["runs"], RUNS).to_dicts()
    # The models of `two` are those of `one`: trained once, and kept once.
    same = [{**run, "manifest": run["manifest"].replace("two/", "one/")} for run in runs]
    write_rows(tmp_path / "runs.parquet", RUNS, same)
    doubled = replace(study, tables={**study.tables, "runs": tmp_path / "runs.parquet"})
    for name, kind, count in (("power_laws", "point", 12 * 20), ("correlation", "model", 12 * 2)):
        settings = settings_of(name, {"draws": 2} if name == "power_laws" else {})
        assert len(rows(analysed(name, draws=2) if name == "power_laws" else analysed(name), kind=kind)) == 2 * count
        found = analysis_called(name).run(settings, doubled)
        assert {row["model"].partition("/")[0] for row in rows(found, kind=kind)} == {"one"}
        assert len(rows(found, kind=kind)) == count
    # The steps of an experiment are whole, whatever another one has.
    steps = analysis_called("cost_effectiveness").run(settings_of("cost_effectiveness", {}), doubled)
    assert {row["experiment"] for row in steps.rows} == {"one", "two"}


def altered(study: Study, folder: Path, change: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Study:
    """The study with other runs: those that `change` makes of each."""
    runs = [new for run in read_frame(study.tables["runs"], RUNS).to_dicts() for new in change(run)]
    write_rows(folder / "runs.parquet", RUNS, runs)
    return replace(study, tables={**study.tables, "runs": folder / "runs.parquet"})


@pytest.mark.parametrize("take", ["weights", "training"])
def test_a_model_that_goes_on_from_another_is_not_correlated(study: Study, tmp_path: Path, take: str) -> None:
    continued = altered(study, tmp_path, lambda run: [{**run, "initial": take if run["model"] == "one/m_64_2" else ""}])
    found = analysis_called("correlation").run(settings_of("correlation", {"experiments": ["one"]}), continued)
    names = {row["model"] for row in rows(found, kind="model")}
    assert len(names) == 11 and "one/m_64_2" not in names


def test_the_perplexity_of_a_step_is_the_mean_over_seeds(study: Study, tmp_path: Path) -> None:
    def seeds(run: dict[str, Any]) -> list[dict[str, Any]]:
        worse = {"seed": 2, "run": f"{run['model']}-s2", "manifest": f"{run['model']} again"}
        return [run, run | worse | {"development_perplexity": run["development_perplexity"] + run["layers"]}]

    several = altered(study, tmp_path, seeds)
    settings = settings_of("cost_effectiveness", {"experiments": ["one"], "sizes": ["num_hidden_layers"]})
    one, both = (analysis_called("cost_effectiveness").run(settings, each) for each in (study, several))
    assert len(one.rows) == len(both.rows) == 8
    for first, mean in zip(one.rows, both.rows, strict=True):
        assert mean["smaller_perplexity"] == pytest.approx(first["smaller_perplexity"] + first["from"] / 2)
        assert mean["larger_perplexity"] == pytest.approx(first["larger_perplexity"] + first["to"] / 2)


def test_perplexities_that_do_not_compare_make_no_steps(study: Study, tmp_path: Path) -> None:
    """The losses of `one` are behind different masks; the test perplexities of `two` are of different tokenizers."""

    def masked(run: dict[str, Any]) -> list[dict[str, Any]]:
        asked = 40 if (run["experiment"], run["layers"]) == ("one", 4) else 15
        return [run | {"development_basis": f"asked: {asked} % of spans"}]

    def found_in(study: Study) -> Findings:
        analysis = analysis_called("cost_effectiveness")
        return analysis.run(settings_of("cost_effectiveness", {"sizes": ["num_hidden_layers"]}), study)

    mixed = altered(study, tmp_path, masked)
    found = found_in(mixed)
    assert {row["experiment"] for row in found.rows} == {"two"} and len(found.rows) == 8
    told = "Not compared: development perplexity of one, because models were asked for different tokens"
    assert [note for note in found.notes if note.startswith(told)]
    # Each model has the number of its layers as test perplexity, and the bases of the losses no longer matter.
    same = {"kind": "perplexity", "suite": "perplexity", "task": "test", "metric": "perplexity"}
    measured = [
        same
        | {"experiment": run["experiment"], "model": run["model"], "run": run["run"], "value": float(run["layers"])}
        | {"basis": f"tokenizer: {run['layers'] if run['experiment'] == 'two' else 'one'}"}
        for run in read_frame(study.tables["runs"], RUNS).to_dicts()
    ]
    other = [row | {"task": "dev", "value": 99.0, "basis": f"tokenizer: {row['run']}"} for row in measured]
    write_rows(tmp_path / "measurements.parquet", MEASUREMENTS, measured + other)
    found = found_in(replace(mixed, tables={**mixed.tables, "measurements": tmp_path / "measurements.parquet"}))
    assert {row["experiment"] for row in found.rows} == {"one"} and len(found.rows) == 8
    assert {(row["smaller_perplexity"], row["larger_perplexity"]) for row in found.rows} == {(1.0, 2.0), (2.0, 4.0)}
    assert [note for note in found.notes if note.startswith("Not compared: test perplexity of two, because the token")]


def test_a_run_without_a_perplexity_keeps_no_others_from_their_steps(study: Study, tmp_path: Path) -> None:
    def measured(run: dict[str, Any]) -> list[dict[str, Any]]:
        lacks = run["model"] == "one/m_64_2"
        return [run | ({"development_perplexity": None} if lacks else {"development_basis": "asked: 15 % of spans"})]

    settings = settings_of("cost_effectiveness", {"experiments": ["one"], "sizes": ["num_hidden_layers"]})
    found = analysis_called("cost_effectiveness").run(settings, altered(study, tmp_path, measured))
    # Of eight steps, the model is in one from 1 to 2 layers; that from 2 to 4 becomes one from 1 to 4.
    assert len(found.rows) == 7 and not any("Not compared" in note for note in found.notes)


def test_models_of_two_experiments_are_never_a_step(analysed: Analysed) -> None:
    found = analysed("cost_effectiveness", sizes=["num_hidden_layers"])
    assert len(found.rows) == 2 * 8
    assert all(row["smaller"].partition("/")[0] == row["larger"].partition("/")[0] for row in found.rows)
    assert [column.heading for column in found.tables[0].columns][2:] == ["ours, one", "ours, two"]


def test_correlations_say_n_and_a_p_that_fits(analysed: Analysed) -> None:
    found = analysed("correlation", experiments=["one"], **PAPER)
    (ours,) = rows(found, kind="correlation", source="ours", suite="rv_glue")
    # Twelve trained models; those that were not pretrained are no part of it.
    assert (ours["pairs"], ours["rho"], ours["exact"]) == (12, -1.0, 0)
    (table,) = rows(found, kind="correlation", source="published Table 3", suite="rv_glue_filtered")
    assert (table["pairs"], table["rho"], table["p_value"]) == (19, -0.3965, 0.0928)
    printed = [row[2:5] for row in cells(found) if row[1].startswith("printed") and row[0] == "rv_glue_filtered"]
    assert printed == [["32 stated", "-0.67", "6.25e-7"], ["32", "-0.67", "2.73e-5"]]


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
    # Perplexities of another split than the settings name decide nothing.
    summary += [replace(row, task="dev", basis=row.model) for row in summary if row.suite == "perplexity"]
    tables = {**study.tables, "summary": write_rows_of_summary(tmp_path, summary)}
    settings = settings_of("correlation", {"experiments": ["one"], **PAPER})
    found = analysis_called("correlation").run(settings, replace(study, tables=tables))
    told = f"Not compared: {mixed} of ours, because models were asked for different tokens"
    assert any(note.startswith(told) for note in found.notes) == (mixed != "dev")
    assert {row["suite"]: row["pairs"] for row in rows(found, kind="correlation", source="ours")} == pairs
    assert {row["suite"] for row in rows(found, kind="model", source="ours")} == pairs.keys()
    # What the paper's table has stays.
    assert {row["pairs"] for row in rows(found, kind="correlation", source="published Table 3")} == {19}


def test_three_models_are_enough_and_the_average_of_the_suite_is_the_score(analysed: Analysed, study: Study) -> None:
    found = analysed("correlation", experiments=["one"], models=["m_16_*"], suites=["rv_glue"])
    (row,) = rows(found, kind="correlation", source="ours")
    # Of the six orders of three models, one has a rho of -1: twice 1 / 6.
    assert (row["pairs"], row["rho"], row["p_value"], row["exact"]) == (3, -1.0, 0.333, 1)
    for pair in rows(found, kind="model", source="ours"):
        (run,) = [run for run in read_frame(study.tables["runs"], RUNS).to_dicts() if run["model"] == pair["model"]]
        assert pair["score"] == pytest.approx(80 - 5 * run["development_loss"], abs=5e-5)


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


def test_a_correlation_may_be_of_the_models_that_a_table_has_and_of_those_that_are_named(analysed: Analysed) -> None:
    found = analysed("correlation", tabulated=True, models=["m_*_2"], **PAPER)
    counted = {row["model"] for row in rows(found, kind="model", source="ours", suite="rv_glue")}
    # Two of `one` repeat rows of the table; what repeats a row of another one does not count.
    named = {f"{part}/m_{hidden}_2" for part in ("one", "two") for hidden in (16, 32, 64, 128)}
    assert counted == {"one/m_16_1", "one/m_128_4", *named}
    printed = [row[2:5] for row in cells(found) if row[1].startswith("printed") and row[0] == "rv_glue_filtered"]
    # SciPy's p of Pearson's rho is by the same t distribution.
    fitting = p_value_text(2 * stats.t.sf(0.67 * math.sqrt(8 / (1 - 0.67**2)), 8))
    assert printed == [["32 stated", "-0.67", "6.25e-7"], ["32", "-0.67", "2.73e-5"], ["10", "-0.67", fitting]]


def test_a_pattern_that_no_model_is_called_is_told() -> None:
    study = Study("mine", tuple(SeededRun.of(model, 1) for model in ("one/small", "one/large")))
    analysis = analysis_called("correlation")
    analysis.check(settings_of("correlation", {"models": ["sm*"]}), study)
    with pytest.raises(ConfigError, match=r"models: got 'tiny\*', which no model of this study is called"):
        analysis.check(settings_of("correlation", {"models": ["tiny*"]}), study)
    with pytest.raises(ConfigError, match="tabulated: got true, expected it with a `paper` only"):
        settings_of("correlation", {"tabulated": True})


def test_a_milestone_is_compute_optimal_where_no_evaluation_of_its_bin_has_a_lower_loss(
    study: Study, tmp_path: Path
) -> None:
    points = points_of_runs(study.tables["runs"], study.tables["curves"], "products", ["one"])
    best = frontier([p.flops for p in points], [p.loss for p in points], quantile_edges([p.flops for p in points], 30))
    finished = read_frame(study.tables["runs"], RUNS, experiment=["one"]).to_dicts()

    def milestone(place: int) -> dict[str, Any]:
        """The row of a model that was trained as far as a point."""
        point = points[place]
        run = next(run for run in finished if run["model"] == point.model)
        name = f"{point.model}_at_{point.step}"
        return run | {"model": name, "training_flops": point.flops, "development_loss": point.loss}

    taken = [milestone(place) for place in range(len(points))]
    found = optimal_models(taken, points, "products", "quantiles", 30)
    assert found == {f"{points[place].model}_at_{points[place].step}" for place in best}


def test_models_are_compared_with_others_of_their_size_where_it_has_both_kinds() -> None:
    models = [(10, True, 60.0), (10, False, 50.0), (10, False, 54.0), (20, True, 55.0), (20, False, 70.0)]
    # A size with one kind says nothing.
    found = compared([*models, (30, False, 90.0)])
    assert found == Comparison(optimal=2, optimal_mean=57.5, others=4, others_mean=66.0, sizes=2, ahead=1)
    # Equal means are not ahead.
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


def test_a_model_stays_compute_optimal_where_it_has_three_points_in_a_row() -> None:
    assert regions_of_one_model([*"aabbbbacca"]) == [range(2, 6)]
    assert regions_of_one_model([]) == [] and regions_of_one_model([*"aaa"]) == [range(3)]


def test_one_suite_can_be_chosen(analysed: Analysed) -> None:
    found = analysed("correlation", suites=["rv_glue"])
    assert {row["suite"] for row in found.rows} == {"rv_glue"}
    assert rows(found, kind="correlation")[0]["pairs"] == 24


COLUMNS = [
    {"heading": "size", "suite": "size", "task": "parameters", "metric": "million"},
    {"heading": "FLOPs", "suite": "pretraining", "task": "cost", "metric": "flops_1e15", "decimals": 6},
    {"heading": "ppl", "suite": "perplexity", "task": "test", "metric": "perplexity"},
    {"heading": "GLUE", "suite": "rv_glue", "task": "average", "metric": "score_percent"},
    {
        **{"heading": "not pretrained", "suite": "rv_glue_filtered", "task": "average", "metric": "score_percent"},
        "variant": "_untrained",
    },
]


def test_table_3_has_our_models_below_the_rows_that_they_repeat(analysed: Analysed) -> None:
    found = analysed("published_table", table="3", columns=COLUMNS, **PAPER)
    lines = cells(found)
    assert len([line for line in lines if line[1] == "printed"]) == 19
    anchor = [line for line in lines if line[0] == "(256, 256, 1024, 8, 8)"]
    assert anchor[0] == ["(256, 256, 1024, 8, 8)", "printed", "16.24", "110", "4.80", "51.73", "40.24"]
    assert anchor[1][1] == "one" and "-" not in anchor[1]
    # The smallest has no untrained counterpart.
    assert [line[1:] for line in lines if line[0] == "(32, 32, 64, 1, 1)"][1][-1] == "-"


def test_table_4_has_changes_between_two_experiments(analysed: Analysed) -> None:
    change = "relative_change_percent"
    columns = [
        COLUMNS[0],
        {"heading": "FLOPs", "suite": "pretraining", "task": "cost", "metric": f"flops_{change}"},
        {"heading": "ppl", "suite": "perplexity", "task": "test", "metric": f"perplexity_{change}"},
        {"heading": "GLUE", "suite": "rv_glue", "task": "average", "metric": f"score_{change}"},
    ]
    found = analysed("published_table", table="4", columns=columns, change_from="_unconstrained", **PAPER)
    lines = [line for line in cells(found) if line[0] == "(32, 32, 64, 1, 1)"]
    assert lines == [
        ["(32, 32, 64, 1, 1)", "printed", "0.65", "52.07", "14.78", "-2.05"],
        ["(32, 32, 64, 1, 1)", "two", "0.00", "0.00", "25.00", "-20.00"],
    ]


def test_table_7_has_printed_rows_alone_where_nothing_repeats_them(analysed: Analysed) -> None:
    lines = cells(analysed("published_table", table="7", columns=COLUMNS[:3], **PAPER))
    assert lines[0][2:] == ["16.24", "110", "4.67"]
    assert {line[1] for line in lines} == {"printed"} and len(lines) == 8
