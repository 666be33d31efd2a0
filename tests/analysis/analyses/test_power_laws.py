"""Power laws of a study of invented tables and of published curves, and their compute-optimal points."""

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from scaling_study import PAPER, Analysed, altered, cells, rows

from hatchery.analysis.analyses.analysis import Findings, Study, analysis_called, settings_of
from hatchery.analysis.analyses.power_laws import _heading
from hatchery.analysis.compute_optimal import (
    frontier,
    optimal_models,
    points_of_runs,
    quantile_edges,
    regions_of_one_model,
)
from hatchery.analysis.flops_counts import COUNT_NAMES
from hatchery.analysis.scaling_laws import Law
from hatchery.analysis.scaling_settings import RegionSettings
from hatchery.analysis.tidy_tables import CURVES, RUNS, read_frame, write_rows

REGIONS = {"below_break": {"up_to": 2.2e15}, "above_break": {"above": 2.65e15}}


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


def test_the_points_are_means_of_the_seeds_and_not_the_luckiest(laws: Findings, study: Study, tmp_path: Path) -> None:
    def with_another_seed(table: str) -> list[dict[str, Any]]:
        rows = read_frame(study.tables[table], {"runs": RUNS, "curves": CURVES}[table], experiment=["one"]).to_dicts()
        other = [{**row, "seed": 2, "run": row["run"].replace("-s1", "-s2")} for row in rows]
        return rows + [{**row, "manifest": f"{row['manifest']} 2"} if "manifest" in row else row for row in other]

    runs, curves = with_another_seed("runs"), with_another_seed("curves")
    for row in curves:
        if row["seed"] == 2:
            row["development_loss"] -= 0.3
    # If one seed lacks an evaluation step, the other seed must not be the point of this step.
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
    """The embedding of 2,000 rows is only looked up: FLOPs are 6 (N - 2000 E) D."""
    runs = {run["model"]: run for run in read_frame(study.tables["runs"], RUNS, experiment=["one"]).to_dicts()}
    limit = runs["one/m_64_2"]["parameters"]
    found = points_of_runs(study.tables["runs"], study.tables["curves"], "six_n_d", ["one"], most_parameters=limit)
    for point in found:
        run = runs[point.model]
        assert point.flops == pytest.approx(
            6 * (run["parameters"] - 2000 * run["embedding_size"]) * 2048 * point.step, rel=1e-9
        )
        # A step has 32 sequences of 64 tokens.
        assert point.tokens == 2048 * point.step
    smaller = {model for model, run in runs.items() if run["steps"] and run["parameters"] <= limit}
    assert {point.model for point in found} == smaller and "one/m_64_2" in smaller and len(smaller) < 12
    assert min(point.step for point in found) == 20, "of a model that was not trained yet there is no point"


@pytest.mark.parametrize("count", [count for count in COUNT_NAMES if count != "products"])
def test_another_count_of_flops_moves_the_points_along_their_axis(
    analysed: Analysed, laws: Findings, count: str
) -> None:
    other = analysed("power_laws", experiments=["one"], draws=2, flops=count, confidence=0.9)
    ours, theirs = rows(laws, kind="point")[0], rows(other, kind="point")[0]
    assert ours["loss"] == theirs["loss"] and ours["flops"] != theirs["flops"]
    assert any(f"Method of counting our FLOPs: {COUNT_NAMES[count]}." in note for note in other.notes)
    assert other.tables[0].columns[3].heading == "90 % interval"


def test_published_curves_go_through_the_same_beside_what_is_printed(laws_of_both: Findings) -> None:
    law = rows(laws_of_both, kind="law", source="published curves", region="above_break")[0]
    assert (law["exponent"], law["points"]) == (pytest.approx(-0.1429, abs=1e-4), 19)
    assert law["exponent_low"] < -0.1412 < law["exponent_high"]
    (cut,) = rows(laws_of_both, kind="break", source="published curves")
    assert (cut["above"], cut["up_to"]) == (pytest.approx(2.63e15, rel=0.01), pytest.approx(2.93e15, rel=0.01))
    printed = [row for row in cells(laws_of_both) if row[0] == "printed"]
    assert [row[2] for row in printed] == ["-0.0929", "-0.1412", "-0.2459", "-0.2805"]


def test_the_tables_of_laws_and_breaks_show_the_numbers_of_the_reference(
    laws_of_both: Findings, laws: Findings
) -> None:
    of_laws, of_breaks = laws_of_both.tables[:2]
    assert [column.heading for column in of_laws.columns][1:] == ["points", "exponent", "95 % interval", "C", "R²"]
    assert of_laws.groups[1].heading == "loss against FLOPs, above break (above 2.65e15)"
    assert of_laws.groups[0].heading == "loss against FLOPs, below break (up to 2.20e15)"
    law = rows(laws_of_both, kind="law", source="published curves", region="above_break")[0]
    interval = f"{law['exponent_low']:.4f} to {law['exponent_high']:.4f}"
    lines = cells(laws_of_both)
    assert ["published curves", "19", "-0.1429", interval, "407", "0.9900"] in lines
    assert ["printed", "-", "-0.1412", "-", "382", "0.9888"] in lines
    assert ["printed", "-", "-0.2459", "-", "-", "-"] in lines, "the paper states no C and R² of tokens"
    assert (law["above"], law["up_to"]) == (2.65e15, None)
    assert [column.heading for column in of_breaks.columns][3:5] == ["exponent below", "exponent above"]
    ours, published = cells(laws_of_both, 1)
    assert published == ["published curves", "2.63e15 and 2.93e15", "21.6", "-0.0923", "-0.1429", "yes"]
    assert (ours[0], ours[-1]) == ("ours", "no")
    (cut,) = rows(laws_of_both, kind="break", source="published curves")
    assert (cut["axis"], cut["points"]) == ("flops", 34)
    notes = [" ".join(found.notes) for found in (laws_of_both, laws)]
    assert ["bins of January 2023." in note for note in notes] == [True, False]
    assert "Published curves: 42 runs" in notes[0] and "bins: 30 quantiles." in notes[1]


def test_the_table_of_regions_has_models_with_three_or_more_optimal_points_in_a_row(laws_of_both: Findings) -> None:
    expected, sizes = [], []
    for source in ("ours", "published curves"):
        best = sorted(rows(laws_of_both, kind="point", source=source, optimal=1), key=lambda row: row["flops"])
        for model, group in groupby(best, key=lambda row: row["model"]):
            points = list(group)
            if len(points) > 2:
                bounds = (f"{point['flops']:.2e}".replace("+", "") for point in (points[0], points[-1]))
                expected.append([source, model, str(len(points)), " to ".join(bounds)])
                sizes.append(points[0]["parameters"])
    found = cells(laws_of_both, 2)
    assert [[*line[:2], *line[3:]] for line in found] == expected and len(expected) > 3
    assert [float(line[2].replace(",", "")) for line in found] == pytest.approx(sizes, rel=1e-6)


def test_the_heading_of_a_region_has_both_of_its_bounds() -> None:
    law = Law("flops", "near_the_break", RegionSettings(above=1e15, up_to=2.5e15), 0, None, None)
    assert _heading(law) == "loss against FLOPs, near the break (above 1.00e15, up to 2.50e15)"


def test_a_region_without_points_has_dashes(laws_of_both: Findings) -> None:
    above = [row for row in cells(laws_of_both) if row[:2] == ["ours", "0"]]
    assert above == [["ours", "0", "-", "-", "-", "-"]]


def test_a_study_without_losses_says_so(analysed: Analysed) -> None:
    found = analysed("power_laws", experiments=["nobody"], draws=2, **PAPER)
    assert any("no development losses" in note for note in found.notes)
    assert {row["source"] for row in found.rows} == {"published curves"}
    # The paper prints laws of tokens and parameters, and no law of FLOPs over all points.
    assert [len(group.rows) for group in found.tables[0].groups] == [1, 2, 2]
    assert not analysed("power_laws", experiments=["nobody"]).rows


def test_losses_on_different_texts_have_no_points_and_a_note(study: Study, tmp_path: Path) -> None:
    mixed = altered(study, tmp_path, lambda run: [run | {"development_basis": f"text: {run['layers']}"}])
    found = analysis_called("power_laws").run(settings_of("power_laws", {"draws": 2}), mixed)
    assert not found.rows and "the texts differ" in found.notes[-1]
    assert not any("no development losses" in note for note in found.notes)
    # Among the runs of one text, losses are compared.
    (tmp_path / "alone").mkdir()
    alone = altered(study, tmp_path / "alone", lambda run: [run | {"development_basis": f"text: {run['experiment']}"}])
    one = analysis_called("power_laws").run(settings_of("power_laws", {"draws": 2, "experiments": ["one"]}), alone)
    assert one.rows and not any("the texts differ" in note for note in one.notes)


def test_a_milestone_is_compute_optimal_where_no_evaluation_of_its_bin_has_a_lower_loss(study: Study) -> None:
    points = points_of_runs(study.tables["runs"], study.tables["curves"], "products", ["one"])
    best = frontier([p.flops for p in points], [p.loss for p in points], quantile_edges([p.flops for p in points], 30))
    finished = read_frame(study.tables["runs"], RUNS, experiment=["one"]).to_dicts()

    def milestone(place: int) -> dict[str, Any]:
        """Return the row of a model that was trained up to a point."""
        point = points[place]
        run = next(run for run in finished if run["model"] == point.model)
        name = f"{point.model}_at_{point.step}"
        return run | {"model": name, "training_flops": point.flops, "development_loss": point.loss}

    taken = [milestone(place) for place in range(len(points))]
    found = optimal_models(taken, points, "products", "quantiles", 30)
    assert found == {f"{points[place].model}_at_{points[place].step}" for place in best}


def test_a_model_stays_compute_optimal_where_it_has_three_points_in_a_row() -> None:
    assert regions_of_one_model([*"aabbbbacca"]) == [range(2, 6)]
    assert regions_of_one_model([]) == [] and regions_of_one_model([*"aaa"]) == [range(3)]
