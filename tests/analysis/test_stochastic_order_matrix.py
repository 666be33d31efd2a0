"""Matrices of almost stochastic order: their correction, their streams, and the published tables."""

import csv
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hatchery.analysis.stochastic_order import corrected_confidence, order_matrix, violation_ratio
from hatchery.errors import ConfigError, EvaluationError

VARIANTS = ("backbone", "base", "zero", "normalized", "weighted_output")


def some_models(k: int, n: int = 9) -> dict[str, list[float]]:
    random = np.random.default_rng(0)
    return {f"model {i}": list(random.normal(0.3 * i, 1.0, n)) for i in range(k)}


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def test_the_diagonal_is_not_a_comparison():
    matrix = order_matrix(some_models(3), seed=1)
    assert np.isnan(np.diag(matrix.epsilon)).all()
    assert not np.diag(matrix.better()).any()
    assert np.isfinite(off_diagonal(matrix.epsilon)).all()


def test_rows_are_tested_against_columns():
    matrix = order_matrix({"low": [0.0, 1.0, 2.0], "high": [5.0, 6.0, 7.0]}, seed=1)
    assert matrix.cell("high", "low") == 0.0
    assert matrix.cell("low", "high") == 1.0
    assert matrix.better().tolist() == [[False, False], [True, False]]


def test_cells_hold_the_violation_ratio_and_a_bound_above_it():
    models = some_models(4)
    matrix = order_matrix(models, seed=1)
    for i, a in enumerate(models.values()):
        for j, b in enumerate(models.values()):
            if i != j:
                assert matrix.violation[i, j] == pytest.approx(violation_ratio(a, b), abs=1e-12)
    assert np.all(off_diagonal(matrix.epsilon) >= off_diagonal(matrix.violation))


def test_no_two_models_are_each_better_than_the_other():
    better = order_matrix(some_models(6), confidence=0.5, comparisons=1, seed=1).better()
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


def test_more_models_never_lower_a_cell():
    models = some_models(6)
    matrices = [order_matrix(dict(list(models.items())[:k]), seed=1) for k in range(2, 7)]
    raised = False
    for small, large in pairwise(matrices):
        for row in small.names:
            for column in small.names:
                if row != column:
                    assert large.cell(row, column) >= small.cell(row, column)
                    raised |= large.cell(row, column) > small.cell(row, column)
    assert raised


def test_the_correction_divides_the_error_among_all_cells():
    matrix = order_matrix(some_models(5), seed=1)
    assert matrix.comparisons == 20
    assert matrix.cell_confidence == pytest.approx(0.9975)
    assert matrix.confidence == 0.95
    confidences = [corrected_confidence(0.95, comparisons) for comparisons in (1, 2, 6, 12, 20, 90)]
    assert confidences == sorted(set(confidences))
    assert confidences[0] == 0.95


def test_the_published_reading_raises_the_confidence_less_the_more_there_is_to_correct():
    matrix = order_matrix(some_models(5), seed=1, reading="as_published")
    assert matrix.comparisons == 10
    assert matrix.cell_confidence == pytest.approx(0.955)
    assert corrected_confidence(0.95, 45, "as_published") < corrected_confidence(0.95, 10, "as_published")
    assert order_matrix(some_models(2), seed=1, reading="as_published").cell_confidence == 0.95


def test_the_published_grid_is_within_its_step_of_the_exact_integral():
    exact, grid = (
        order_matrix(some_models(4), seed=1, reading=reading).violation for reading in ("corrected", "as_published")
    )
    differences = np.abs(off_diagonal(exact) - off_diagonal(grid))
    assert 0 < differences.max() < 0.02


def test_bounds_repeat_and_depend_on_the_seed():
    models = some_models(3)
    first, again, other = (order_matrix(models, seed=seed).epsilon for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


def test_runs_may_differ_in_number():
    matrix = order_matrix({"few": [0.0, 1.0], "many": [2.0, 3.0, 0.5]}, seed=1)
    assert matrix.runs == (2, 3)


@pytest.mark.parametrize(
    ("models", "options", "error", "message"),
    [
        ({"only": [1.0, 2.0]}, {}, EvaluationError, "at least two models"),
        ({"a": [1.0, 2.0], "b": [1.0]}, {}, EvaluationError, "a and b: .*two scores"),
        ({"a": [1.0, 2.0], "b": []}, {}, EvaluationError, "a and b: .*scores"),
        ({"a": [1.0, 2.0], "b": []}, {"reading": "as_published"}, EvaluationError, "a and b: .*scores"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"reading": "deepsig"}, ConfigError, "reading: 'deepsig'"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"comparisons": 0}, ConfigError, "comparisons: 0"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"confidence": 1.2}, ConfigError, "confidence: 1.2"),
    ],
)
def test_invalid_comparisons_are_refused(models, options, error, message):
    with pytest.raises(error, match=message):
        order_matrix(models, seed=1, **options)


def test_a_name_outside_the_matrix_is_refused():
    with pytest.raises(EvaluationError, match="model 9 is none of"):
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
    """Median over synthetic scores with the printed means and deviations, in the published reading."""
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
