"""Almost stochastic order against values by hand, an independent computation, simulation and the published tables."""

import csv
import math
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.analysis.stochastic_order import (
    THRESHOLD,
    OrderEstimate,
    corrected_confidence,
    estimate_order,
    exact_steps,
    grid_steps,
    order_matrix,
    sorted_scores,
    violation_ratios,
)
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.draws import generator

NORMAL = NormalDist()
Scores = Sequence[float] | np.ndarray
samples = st.lists(st.integers(-50, 50), min_size=1, max_size=9)


def violation_ratio(a: Scores, b: Scores) -> float:
    return float(violation_ratios(sorted_scores(a), sorted_scores(b), exact_steps(len(a), len(b))))


def epsilon_min(a: Scores, b: Scores, *, confidence: float = 0.95, draws: int = 1000, seed: int) -> float:
    return estimate_order(a, b, draws=draws, random=generator(seed)).bound(confidence)


def normal_quantiles(mean: float, deviation: float, n: int = 4000) -> np.ndarray:
    return np.array([mean + deviation * NORMAL.inv_cdf((i + 0.5) / n) for i in range(n)])


def test_identical_samples_are_undecided():
    assert violation_ratio([1.0, 2.0, 3.0], [3.0, 1.0, 2.0]) == 0.5
    assert violation_ratio([61.4] * 5, [61.4] * 3) == 0.5
    assert epsilon_min([61.4] * 5, [61.4] * 5, seed=1) == 0.5


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # F - G is -1 on the lower half and 2 on the upper half.
        ([0, 3], [1, 1], 1 / 5),
        ([0, 3], [1], 1 / 5),
        # F - G is -1 on [0, 1/2], -2 on [1/2, 2/3] and 1 on [2/3, 1].
        ([0, 0, 3], [1, 2], (1 / 2 + 4 / 6) / (1 / 2 + 4 / 6 + 1 / 3)),
        # The tie on the lower half counts for neither model.
        ([0, 2], [0, 1], 0.0),
        # Repeated scores are steps of the quantile function, not new information.
        ([0, 0, 3, 3], [1, 1, 1], 1 / 5),
    ],
)
def test_small_samples_computed_by_hand(a: list[float], b: list[float], expected: float):
    assert violation_ratio(a, b) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("difference", [-1.5, -0.3, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("spread", [1.5, 3.0])
def test_two_normals_that_cross_have_the_analytic_ratio(difference: float, spread: float):
    """With z normal, quantiles differ by m + s z, and the ratio is E[(m + s z)^2; z < -m / s] / (m^2 + s^2)."""
    s = spread - 1.0
    z = difference / s
    expected = NORMAL.cdf(-z) - difference * s / (difference**2 + s**2) * NORMAL.pdf(z)
    ratio = violation_ratio(normal_quantiles(difference, spread), normal_quantiles(0.0, 1.0))
    assert ratio == pytest.approx(expected, abs=2e-3)


@given(samples, samples)
def test_the_ratio_is_that_of_both_samples_repeated_to_one_length(a: list[int], b: list[int]):
    repeated_a, repeated_b = np.repeat(np.sort(a), len(b)), np.repeat(np.sort(b), len(a))
    below, distance = np.minimum(repeated_a - repeated_b, 0) ** 2, (repeated_a - repeated_b) ** 2
    expected = below.sum() / distance.sum() if distance.any() else 0.5
    assert violation_ratio(a, b) == pytest.approx(expected, abs=1e-12)


def test_the_grid_takes_the_score_at_each_two_hundredth():
    steps = grid_steps(5, 9)
    assert len(steps.weights) == 199
    # The quantile function is left-continuous: at 0.2 it is still the smallest of five scores.
    assert steps.first[39] == 0
    assert steps.first[40] == 1
    assert steps.first[-1] == 4
    assert steps.second[-1] == 8


def test_the_bound_is_the_ratio_plus_the_bootstrap_deviation_times_the_normal_quantile():
    """Expected: the formula of Ulmer et al. with its scaling by c, with draws made one by one."""
    random = np.random.default_rng(5)
    a, b = random.normal(70.3, 1.0, 12), random.normal(70.0, 1.4, 7)
    ratio, c = violation_ratio(a, b), math.sqrt(12 * 7 / (12 + 7))
    redrawn = [violation_ratio(random.choice(a, 12), random.choice(b, 7)) for _ in range(4000)]
    sigma = np.std([c * (value - ratio) for value in redrawn])
    expected = min(max(ratio - sigma / c * NORMAL.inv_cdf(0.05), 0.0), 1.0)
    assert 0.1 < expected < 0.9
    assert epsilon_min(a, b, draws=4000, seed=3) == pytest.approx(expected, abs=0.03)


def test_the_bound_rises_with_the_confidence_and_starts_at_the_ratio():
    random = np.random.default_rng(8)
    a, b = random.normal(0.4, 1.0, 20), random.normal(0.0, 1.0, 20)
    bounds = [epsilon_min(a, b, confidence=confidence, seed=2) for confidence in (0.5, 0.8, 0.95, 0.99, 0.999)]
    assert bounds[0] == pytest.approx(violation_ratio(a, b))
    assert bounds == sorted(bounds)
    assert len(set(bounds)) == len(bounds)


def test_the_bound_stays_in_the_unit_interval():
    assert OrderEstimate(0.9, 0.5).bound(0.95) == 1.0
    assert OrderEstimate(0.0, 0.0).bound(0.999) == 0.0


def test_the_bound_is_a_function_of_the_scores_as_a_set():
    a, b = [1.0, 5.0, 2.0, 4.0], [2.0, 0.0, 3.0, 1.0]
    assert epsilon_min(a, b, seed=1) == epsilon_min(sorted(a), sorted(b), seed=1)


def test_the_reversed_estimate_is_that_of_the_other_direction():
    random = np.random.default_rng(9)
    a, b = random.normal(0.4, 1.0, 9), random.normal(0.0, 1.0, 9)
    forward, backward = (estimate_order(*pair, random=generator(1)) for pair in ((a, b), (b, a)))
    assert forward.reversed().violation == pytest.approx(backward.violation)
    assert forward.reversed().deviation == pytest.approx(backward.deviation, abs=0.03)


def test_samples_apart_are_dominance_at_any_confidence():
    assert epsilon_min([3.0, 4.0, 5.0], [0.0, 1.0, 2.0], confidence=0.9999, seed=1) == 0.0
    assert epsilon_min([0.0, 1.0, 2.0], [3.0, 4.0, 5.0], seed=1) == 1.0


def share_below(threshold: float, *, shift: float, spread: float, n: int, pairs: int) -> float:
    """Return the share of simulated comparisons of N(shift, spread) with N(0, 1) whose bound is below the threshold."""
    random = np.random.default_rng(n)
    bounds = [
        epsilon_min(random.normal(shift, spread, n), random.normal(size=n), draws=300, seed=pair)
        for pair in range(pairs)
    ]
    return float(np.mean(np.array(bounds) < threshold))


@pytest.mark.parametrize("n", [5, 20])
def test_equal_models_fall_below_the_thresholds_at_the_stated_rates(n: int):
    """The ratio of equal models is 0/0, so rates are not 1 - confidence: below 0.3 at threshold 0.5, 0.12 at 0.2.

    Without the bound, half of the pairs would be below 0.5.
    """
    assert 0.10 < share_below(0.5, shift=0.0, spread=1.0, n=n, pairs=400) < 0.30
    assert 0.01 < share_below(0.2, shift=0.0, spread=1.0, n=n, pairs=400) < 0.12


def test_crossing_models_reach_the_nominal_level_with_many_runs():
    """The ratio of N(0, 3) and N(0, 1) is exactly one half. A bound at 0.95 should be below it in 1 of 20 samples."""
    assert 0.02 < share_below(0.5, shift=0.0, spread=3.0, n=200, pairs=400) < 0.10


def test_models_a_deviation_apart_are_told_apart():
    assert share_below(0.5, shift=1.0, spread=1.0, n=20, pairs=200) > 0.9
    assert share_below(0.5, shift=-1.0, spread=1.0, n=20, pairs=200) < 0.02


@pytest.mark.parametrize(
    ("a", "options", "error", "message"),
    [
        ([2.0], {}, EvaluationError, "at least two scores"),
        *(([1.0, 2.0], {"confidence": value}, ConfigError, "confidence") for value in (0.3, 1.0, -1.0, float("nan"))),
        ([1.0, 2.0], {"draws": 1}, ConfigError, "draws: got 1"),
    ],
)
def test_a_bound_needs_several_scores_and_draws_and_a_confidence(a, options, error, message):
    with pytest.raises(error, match=message):
        epsilon_min(a, [0.0, 1.0], seed=1, **options)


@pytest.mark.parametrize("scores", [[], [1.0, float("nan")], [float("inf"), 1.0], [[1.0, 2.0]]])
def test_invalid_scores_are_refused(scores: list[float]):
    with pytest.raises(EvaluationError, match="scores"):
        violation_ratio(scores, [1.0])
    with pytest.raises(EvaluationError, match="scores"):
        epsilon_min([1.0, 2.0], scores, seed=1)


VARIANTS = ("backbone", "base", "zero", "normalized", "weighted_output")


def some_models(k: int, n: int = 9) -> dict[str, list[float]]:
    random = np.random.default_rng(0)
    return {f"model {i}": list(random.normal(0.3 * i, 1.0, n)) for i in range(k)}


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def test_the_diagonal_is_not_a_comparison():
    matrix = order_matrix(some_models(3), seed=1)
    assert np.isnan(np.diag(matrix.epsilon)).all()
    assert np.isfinite(off_diagonal(matrix.epsilon)).all()


def test_rows_are_tested_against_columns():
    matrix = order_matrix({"low": [0.0, 1.0, 2.0], "high": [5.0, 6.0, 7.0]}, seed=1)
    assert matrix.cell("high", "low") == 0.0
    assert matrix.cell("low", "high") == 1.0
    assert order_matrix({"few": [0.0, 1.0], "many": [2.0, 3.0, 0.5]}, seed=1).runs == (2, 3)


def test_cells_hold_a_bound_above_the_violation_ratio():
    models = some_models(4)
    matrix = order_matrix(models, seed=1)
    for row, column in permutations(models, 2):
        assert matrix.cell(row, column) >= violation_ratio(models[row], models[column])


def test_no_two_models_are_each_better_than_the_other():
    better = order_matrix(some_models(6), confidence=0.5, comparisons=1, seed=1).epsilon < THRESHOLD
    assert better.any()
    assert not (better & better.T).any()


@pytest.mark.parametrize("reading", ["corrected", "as_published"])
def test_another_model_or_another_order_changes_no_other_draw(reading):
    models = some_models(4)
    matrix = order_matrix(models, seed=1, comparisons=12, reading=reading)
    fewer = order_matrix(dict(list(models.items())[::-1][1:]), seed=1, comparisons=12, reading=reading)
    for row in fewer.names:
        for column in fewer.names:
            if row != column:
                assert fewer.cell(row, column) == matrix.cell(row, column)


def test_every_pair_has_draws_of_its_own():
    low, high = some_models(2).values()
    matrix = order_matrix({"a": low, "b": high, "c": low, "d": high}, seed=1)
    assert len({matrix.cell(row, column) for row in "ac" for column in "bd"}) == 4


def test_the_correction_divides_the_error_among_all_cells():
    matrix = order_matrix(some_models(5), seed=1)
    assert matrix.comparisons == 20
    assert matrix.cell_confidence == pytest.approx(0.9975)
    assert matrix.confidence == 0.95
    confidences = [corrected_confidence(0.95, comparisons) for comparisons in (1, 2, 6, 12, 20, 90)]
    assert confidences == sorted(set(confidences))
    assert confidences[0] == 0.95
    with pytest.raises(ConfigError, match=r"confidence: got 1\.0"):
        corrected_confidence(1.0, 2)


def test_the_published_reading_raises_the_confidence_less_the_more_there_is_to_correct():
    matrix = order_matrix(some_models(5), seed=1, reading="as_published")
    assert matrix.comparisons == 10
    assert matrix.cell_confidence == pytest.approx(0.955)
    assert corrected_confidence(0.95, 45, "as_published") < corrected_confidence(0.95, 10, "as_published")
    assert order_matrix(some_models(2), seed=1, reading="as_published").cell_confidence == 0.95


def test_the_published_grid_is_within_its_step_of_the_exact_integral():
    samples = [sorted_scores(scores) for scores in some_models(4).values()]
    exact, grid = (
        np.array([violation_ratios(*pair, steps) for pair in permutations(samples, 2)])
        for steps in (exact_steps(9, 9), grid_steps(9, 9))
    )
    assert 0 < np.abs(exact - grid).max() < 0.02


def test_bounds_repeat_and_depend_on_the_seed():
    models = some_models(3)
    first, again, other = (order_matrix(models, seed=seed).epsilon for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


@pytest.mark.parametrize(
    ("models", "options", "error", "message"),
    [
        ({"only": [1.0, 2.0]}, {}, EvaluationError, "at least two models"),
        ({"a": [1.0, 2.0], "b": [1.0]}, {}, EvaluationError, "a and b: .*two scores"),
        ({"a": [1.0, 2.0], "b": []}, {}, EvaluationError, "a and b: .*scores"),
        ({"a": [1.0, 2.0], "b": []}, {"reading": "as_published"}, EvaluationError, "a and b: .*scores"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"reading": "deepsig"}, ConfigError, "reading: got 'deepsig'"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"comparisons": 0}, ConfigError, "comparisons: got 0"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"confidence": 1.2}, ConfigError, "confidence: got 1.2"),
    ],
)
def test_invalid_comparisons_are_refused(models, options, error, message):
    with pytest.raises(error, match=message):
        order_matrix(models, seed=1, **options)


def test_a_name_outside_the_matrix_is_refused():
    with pytest.raises(EvaluationError, match="got model 9, expected one of the compared models"):
        order_matrix(some_models(2), seed=1).cell("model 9", "model 1")


Printed = dict[str, list[tuple[float, float]]]


@pytest.fixture(scope="module")
def published(golden_directory: Path) -> Callable[[int], list[dict[str, str]]]:
    def read(table: int) -> list[dict[str, str]]:
        path = golden_directory / "published" / f"elc_bert_table{table}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if row["track"] == "strict" and row["variant"] in VARIANTS]

    return read


def means_and_deviations(rows: list[dict[str, str]], left_out: str) -> Printed:
    return {
        variant: [
            (float(row["mean"]), float(row["std"]))
            for row in rows
            if row["variant"] == variant and left_out not in (row["task"], row["metric"]) and row["task"] != "average"
        ]
        for variant in VARIANTS
    }


def typical_matrix(printed: Printed, rates: int, seeds: int, unit: str, synthetic: int) -> np.ndarray:
    """Return the median over synthetic scores with the printed means and deviations, computed as published."""
    matrices = []
    for draw in range(synthetic):
        random = np.random.default_rng(draw)
        scores = {}
        for variant, cells in printed.items():
            tasks = [random.normal(mean, deviation, seeds * rates) for mean, deviation in cells]
            scores[variant] = list(np.mean(tasks, axis=0) if unit == "run_average" else np.concatenate(tasks))
        matrices.append(order_matrix(scores, draws=300, seed=draw, reading="as_published").epsilon)
    return np.median(matrices, axis=0)


def published_matrix(rows: list[dict[str, str]]) -> np.ndarray:
    matrix = np.full((len(VARIANTS), len(VARIANTS)), np.nan)
    for row in rows:
        other = row["task"].rpartition(":")[2]
        matrix[VARIANTS.index(row["variant"]), VARIANTS.index(other)] = float(row["mean"])
    return matrix


def test_run_averages_with_the_printed_glue_scores_put_zero_initialisation_first(published):
    printed = means_and_deviations(published(9), left_out="average")
    assert {len(cells) for cells in printed.values()} == {11}
    typical = typical_matrix(printed, 1, 5, "run_average", 60)
    zero = VARIANTS.index("zero")
    assert np.all(np.delete(typical[zero], zero) < 0.2)
    assert np.all(np.delete(typical[:, zero], zero) > 0.8)
    pooled = typical_matrix(printed, 1, 5, "pooled", 60)
    table = published_matrix(published(11))
    assert np.all(np.delete(pooled[zero] - table[zero], zero) > 0.3)


def test_run_averages_with_the_printed_msgs_scores_have_the_published_order(published):
    printed = means_and_deviations(published(10), left_out="mcc")
    assert {len(cells) for cells in printed.values()} == {6}
    table = published_matrix(published(12))
    typical = typical_matrix(printed, 3, 3, "run_average", 60)
    assert np.abs(off_diagonal(typical) - off_diagonal(table)).max() < 0.25
    assert np.abs(off_diagonal(typical) - off_diagonal(table)).mean() < 0.06
    clear = (table < 0.3) | (table > 0.8)
    np.testing.assert_array_equal((typical < 0.5)[clear], (table < 0.5)[clear])
    pooled = typical_matrix(printed, 3, 3, "pooled", 60)
    distances = [np.abs(off_diagonal(found) - off_diagonal(table)).mean() for found in (typical, pooled)]
    assert distances[0] < distances[1]
