"""The reduced-vocabulary study's published numbers: our fits, ratios and correlations of these, and the text's claims.

Inputs are published values only, with the 42 logged runs and their learning curves. If claims and tables differ:
docs/papers/reduced-vocabulary.md, "Claims that the tables contradict". FLOPs: tests/modeling/test_flops.py.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from projects import rows_of

from hatchery.analysis.analyses.cost_effectiveness import Option, steps
from hatchery.analysis.compute_optimal import frontier, january_edges, quantile_edges
from hatchery.analysis.published_curves import DEFAULT_RATE, PublishedRun, Shape, read_published_curves, shape_of
from hatchery.analysis.rank_correlation import p_value_of, spearman
from hatchery.analysis.scaling_laws import (
    DECISIVE,
    PowerLaw,
    bootstrap_interval,
    find_break,
    fit_power_law,
)
from hatchery.errors import EvaluationError
from hatchery.modeling.flops import STUDY_BATCH_SIZE, StudyFormula

BELOW, ABOVE = 2.2e15, 2.65e15
Point = tuple[float, float, int, int, str]


def table(golden_directory: Path, name: str) -> list[dict[str, str]]:
    return rows_of(golden_directory / "published" / f"reduced_vocabulary_{name}.csv")


@pytest.fixture(scope="module")
def points(logged: Sequence[PublishedRun]) -> list[Point]:
    """FLOPs, loss, tokens, parameters and run of all 42 x 36 measurements."""
    return [
        (updates * STUDY_BATCH_SIZE * run.flops_per_sequence(), loss, run.tokens(updates), run.parameters, run.name)
        for run in logged
        for updates, loss in run.curve
    ]


@pytest.fixture(scope="module")
def best(points: list[Point]) -> list[Point]:
    """The compute-optimal points of January 2023."""
    flops = [point[0] for point in points]
    return [points[place] for place in frontier(flops, [point[1] for point in points], january_edges(flops))]


def law(points: Sequence[Point], column: int = 0) -> PowerLaw:
    return fit_power_law([point[column] for point in points], [point[1] for point in points])


def test_the_curves_are_those_of_42_runs_at_36_points_each(logged: Sequence[PublishedRun]) -> None:
    assert (len(logged), {len(run.curve) for run in logged}) == (42, {36})
    assert max(run.tokens(run.curve[-1][0]) for run in logged) == pytest.approx(1_162_444_800, rel=1e-4)


def test_computed_sizes_and_costs_are_those_that_were_logged(
    logged: Sequence[PublishedRun], golden_directory: Path
) -> None:
    rows = table(golden_directory, "repo_runs_jan2023")
    assert [run.name for run in logged] == [row["run"] for row in rows]
    for run, row in zip(logged, rows, strict=True):
        assert list(map(str, run.sizes)) == [row[letter] for letter in "EHILA"]
        assert (run.group, run.tied, run.peak_learning_rate) == (
            *(row["group"], row["family"].startswith("tied")),
            float(row["peak_lr"]),
        )
        assert run.parameters == int(row["total_params"])
        assert f"{run.flops_per_sequence() / 1e9:.6f}" == row["gflops_per_sequence_code_formula"]


def test_the_bins_of_january_hold_34_compute_optimal_points(best: list[Point], points: list[Point]) -> None:
    assert len(january_edges([point[0] for point in points])) == 44
    assert len(best) == 34
    assert best[0][0] == min(point[0] for point in points)


@pytest.mark.parametrize(
    ("low", "high", "exponent", "coefficient", "r_squared"),
    [
        (ABOVE, math.inf, -0.1429, 407, 0.990),
        # Points in the transition region reduce the fit's accuracy.
        (BELOW, math.inf, -0.171, 1163, 0.934),
        (0, BELOW, -0.0918, 76.8, 0.645),
    ],
)
def test_loss_falls_with_flops_as_the_reference_found(
    best: list[Point], low: float, high: float, exponent: float, coefficient: float, r_squared: float
) -> None:
    found = law([point for point in best if low < point[0] <= high])
    assert found.exponent == pytest.approx(exponent, abs=5e-4)
    assert found.coefficient == pytest.approx(coefficient, rel=2e-3)
    assert found.r_squared == pytest.approx(r_squared, abs=5e-4)


@pytest.mark.parametrize(("column", "exponent", "r_squared"), [(2, -0.2545, 0.634), (3, -0.2804, 0.875)])
def test_loss_falls_with_tokens_and_parameters_as_the_reference_found(
    best: list[Point], column: int, exponent: float, r_squared: float
) -> None:
    found = law(best, column)
    assert found.exponent == pytest.approx(exponent, abs=5e-5)
    assert found.r_squared == pytest.approx(r_squared, abs=5e-4)


@pytest.mark.parametrize(
    ("low", "high", "exponent", "coefficient", "r_squared", "points"),
    [(2.9e15, math.inf, -0.1414, 384, 0.9888, 18), (0, BELOW, -0.0946, 84.1, 0.673, 12)],
)
def test_the_dots_of_figure_1_follow_the_printed_laws(
    digitised: tuple[list[float], list[float]],
    low: float,
    high: float,
    exponent: float,
    coefficient: float,
    r_squared: float,
    points: int,
) -> None:
    chosen = [(x, y) for x, y in zip(*digitised, strict=True) if low <= x <= high]
    found = fit_power_law(*zip(*chosen, strict=True))
    assert found.points == points
    assert found.exponent == pytest.approx(exponent, abs=1e-4)
    assert found.coefficient == pytest.approx(coefficient, rel=2e-3)
    assert found.r_squared == pytest.approx(r_squared, abs=1e-3)


def test_the_printed_exponents_are_within_a_hundredth_of_the_refitted_ones(
    best: list[Point], golden_directory: Path
) -> None:
    printed = {
        row["task"]: float(row["value"]) for row in table(golden_directory, "text") if row["metric"] == "exponent"
    }
    found = {
        "flops_above_break": law([point for point in best if point[0] > ABOVE]),
        "flops_below_break": law([point for point in best if point[0] <= BELOW]),
        "tokens": law(best, 2),
        "parameters": law(best, 3),
    }
    assert {name: fit.exponent for name, fit in found.items()} == pytest.approx(printed, abs=0.01)


def test_a_line_through_the_logarithms_has_another_exponent(best: list[Point]) -> None:
    above = np.log([point[:2] for point in best if point[0] > ABOVE])
    assert np.polyfit(*above.T, 1)[0] == pytest.approx(-0.140, abs=5e-4)


@pytest.mark.parametrize("bins", [34, 40])
def test_quantile_bins_give_nearly_the_same_exponent(points: list[Point], bins: int) -> None:
    flops = [point[0] for point in points]
    chosen = frontier(flops, [point[1] for point in points], quantile_edges(flops, bins))
    assert len(chosen) == bins
    above = [points[place] for place in chosen if points[place][0] > ABOVE]
    assert law(above).exponent == pytest.approx(-0.1429, abs=3e-3)


def test_the_break_is_found_where_the_paper_has_it(best: list[Point]) -> None:
    found = find_break([point[0] for point in best], [point[1] for point in best])
    assert BELOW < found.below < ABOVE < found.above < 3e15
    assert (found.decisive, found.gain) == (True, pytest.approx(21.6, abs=0.1))
    assert found.left.exponent == pytest.approx(-0.0923, abs=1e-4)
    assert found.right.exponent == pytest.approx(-0.1429, abs=1e-4)


def test_the_dots_of_figure_1_break_between_the_twelfth_and_the_thirteenth(
    digitised: tuple[list[float], list[float]],
) -> None:
    found = find_break(*digitised)
    assert (found.below, found.above) == (2.01e15, 2.92e15)
    assert found.gain > DECISIVE


def test_the_exponent_has_an_interval_over_runs(points: list[Point]) -> None:
    edges = january_edges([point[0] for point in points])
    groups = [[place for place, point in enumerate(points) if point[4] == run] for run in {p[4]: 0 for p in points}]

    def exponent(chosen: list[int]) -> float:
        drawn = [points[place] for place in chosen]
        places = frontier([point[0] for point in drawn], [point[1] for point in drawn], edges)
        return law([drawn[place] for place in places if drawn[place][0] > ABOVE]).exponent

    interval = bootstrap_interval(groups, exponent, draws=200, seed=1)
    assert interval is not None
    assert interval.low <= -0.1429 <= -0.1412 <= interval.high
    assert interval.high - interval.low < 0.1
    assert interval == bootstrap_interval(groups, exponent, draws=200, seed=1)


SIZES = ("H", "L", "E", "I")


def ratios(
    golden_directory: Path, logged: Sequence[PublishedRun], formula: StudyFormula
) -> dict[tuple[str, str], float | None]:
    """The ICER of every step of set-1 by (size, its larger value), from the logged perplexities."""
    perplexities = {row["run"]: float(row["test_perplexity"]) for row in table(golden_directory, "repo_runs_jan2023")}
    anchors = {tuple(row[letter] for letter in "EHILA") for row in table(golden_directory, "table2")}
    options = [
        Option(run.name, dict(zip("EHILA", run.sizes, strict=True)), run.flops_per_sequence(formula), ppl)
        for run in logged
        if (ppl := perplexities[run.name]) and tuple(map(str, run.sizes)) in anchors and run.peak_learning_rate == 5e-4
    ]
    return {(step.size, str(step.larger.sizes[step.size])): step.ratio for step in steps(options, SIZES)}


def test_all_twelve_values_of_table_2_follow_from_the_logged_perplexities(
    golden_directory: Path, logged: Sequence[PublishedRun]
) -> None:
    printed = {(row["varied"], row["value"]): row["icer"] for row in table(golden_directory, "table2") if row["icer"]}
    found = ratios(golden_directory, logged, "code_without_projection")
    assert {key: f"{ratio:.4f}" for key, ratio in found.items()} == printed
    assert len(printed) == 12


def test_with_the_projection_table_2_does_not_follow(golden_directory: Path, logged: Sequence[PublishedRun]) -> None:
    found = ratios(golden_directory, logged, "code")
    varied = [f"{ratio:.4f}" for (size, _), ratio in found.items() if size in "HE"]
    assert varied == ["2.9877", "0.8265", "0.2397", "0.6194", "0.2077", "0.1647"]


@pytest.mark.parametrize(("column", "rho", "p"), [("glue_filtered", -0.40, 0.09), ("glue_unfiltered", -0.38, 0.11)])
def test_the_19_rows_of_table_3_correlate_less_than_the_text_says(
    golden_directory: Path, column: str, rho: float, p: float
) -> None:
    rows = table(golden_directory, "table3")
    found = spearman([float(row["test_perplexity"]) for row in rows], [float(row[column]) for row in rows])
    assert found.pairs == 19
    assert (found.rho, found.p_value) == (pytest.approx(rho, abs=0.005), pytest.approx(p, abs=0.005))


def test_the_printed_p_values_do_not_fit_the_stated_number_of_models() -> None:
    assert p_value_of(-0.67, 32) == pytest.approx(2.7e-5, rel=0.02)
    for rho, printed, fitting in ((-0.67, 6.25e-7, 44), (-0.17, 0.28, 42)):
        nearest = {pairs: abs(math.log(p_value_of(rho, pairs) / printed)) for pairs in range(3, 100)}
        assert min(nearest, key=nearest.__getitem__) == fitting


def test_losses_without_a_model_are_named(tmp_path: Path) -> None:
    (tmp_path / "paper.csv").write_text("run,updates,dev_loss\na,1000,3.2\nb,1000,3.1\n")
    (tmp_path / "paper_runs.csv").write_text(
        "run,group,E,H,I,L,A,family,peak_lr\na,g,8,8,8,1,1,untied+projection,1e-4\n"
    )
    with pytest.raises(
        EvaluationError, match=r"paper_runs\.csv: the run b is only in this table or only in paper\.csv"
    ):
        read_published_curves(tmp_path / "paper.csv")


Rows = dict[Shape, Mapping[str, str]]
ANCHOR = (256, 256, 1024, 8, 8)


@pytest.fixture(scope="module")
def rows(golden_directory: Path) -> Callable[[int], Rows]:
    """Return a function that reads a printed table by the sizes of its models."""

    def read(number: int) -> Rows:
        rows = table(golden_directory, f"table{number}")
        return {shape_of("_".join(["rv", *(row[size] for size in "EHILA")])): row for row in rows}

    return read


@pytest.fixture(scope="module")
def runs(logged: Sequence[PublishedRun]) -> dict[Shape, PublishedRun]:
    return {run.sizes: run for run in logged if run.peak_learning_rate == DEFAULT_RATE}


def test_79_models_are_there_of_which_62_are_small(rows: Callable[[int], Rows]) -> None:
    sets, larger, unconstrained = 16 + 16 + 30, rows(7).keys() - rows(3).keys(), rows(4)
    assert (sets, sets + len(larger) + len(unconstrained)) == (62, 79)


@pytest.mark.parametrize(
    ("than", "not_better"),
    [
        ("glue_filtered_random_init", {(32, 256, 1024, 8, 8), (64, 256, 1024, 8, 8), (32, 32, 64, 1, 1)}),
        ("glue_unfiltered", {(256, 256, 128, 8, 8)}),
    ],
)
def test_filtered_glue_after_pretraining_is_not_always_the_better_one(
    rows: Callable[[int], Rows], than: str, not_better: set[Shape]
) -> None:
    table = rows(3)
    assert len(table) == 19
    assert {shape for shape, row in table.items() if float(row["glue_filtered"]) <= float(row[than])} == not_better


def test_seven_models_of_table_3_are_tied_and_four_of_them_have_the_size_of_another(
    rows: Callable[[int], Rows], runs: dict[Shape, PublishedRun]
) -> None:
    tied = {shape: float(rows(3)[shape]["params_millions"]) for shape, run in runs.items() if run.tied}
    assert len(tied) == 7
    wrong = {shape for shape, size in tied.items() if size != round(runs[shape].parameters / 1e6, 2)}
    assert wrong == {(256, 256, 1024, 8, heads) for heads in (1, 2, 4, 8)}
    assert {tied[shape] for shape in wrong} == {16.24}
    # So the step from 4 to 8 layers compares an untied with a tied model.
    assert ANCHOR in tied and (256, 256, 1024, 4, 8) in runs.keys() - tied


def test_larger_models_are_compared_with_a_tied_one(
    rows: Callable[[int], Rows], runs: dict[Shape, PublishedRun], logged: Sequence[PublishedRun], repository: Path
) -> None:
    printed = {shape: float(row["test_perplexity"]) for shape, row in rows(7).items()}
    (baseline,) = printed.keys() & rows(3).keys()
    assert (printed[baseline], runs[baseline].tied) == (4.67, True)
    assert round(runs[baseline].parameters / 1e6, 2) == 11.30
    (fair,) = (run for run in logged if run.sizes == ANCHOR and not run.tied)
    assert (fair.peak_learning_rate, round(fair.parameters / 1e6, 2)) == (1e-4, 16.24)
    with (repository / "config/published/values/reduced_vocabulary.csv").open(encoding="utf-8", newline="") as handle:
        (reached,) = (
            float(row["value"])
            for row in csv.DictReader(handle)
            if (row["row"], row["task"], row["metric"]) == (fair.row, "test", "perplexity")
        )
    assert round(reached, 2) == 7.23
    assert sum(printed[shape] < reached for shape in printed.keys() - {baseline}) == 6


def test_a_row_without_sizes_is_named() -> None:
    with pytest.raises(EvaluationError, match="'rv_frontier': expected a name with the sizes of the model"):
        shape_of("rv_frontier")


@pytest.fixture(scope="session")
def logged(repository: Path) -> Sequence[PublishedRun]:
    return read_published_curves(repository / "config/published/curves/reduced_vocabulary.csv")


@pytest.fixture(scope="session")
def digitised(golden_directory: Path) -> tuple[list[float], list[float]]:
    """FLOPs and losses of the 30 dots of Figure 1."""
    rows = table(golden_directory, "figure1_digitised")
    return [float(row["flops"]) for row in rows], [float(row["dev_loss"]) for row in rows]
