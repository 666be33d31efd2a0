"""What the text of the reduced-vocabulary paper claims, against its own tables and logs.

The findings stand in docs/papers/reduced-vocabulary.md, "Claims that the tables contradict". The FLOPs are tested
with the formulas (tests/modeling/test_flops.py), the correlation with the fits (test_published_scaling.py).
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hatchery.analysis.published_curves import DEFAULT_RATE, PublishedRun, Shape, shape_of
from hatchery.errors import EvaluationError

Rows = dict[Shape, Mapping[str, str]]
ANCHOR = (256, 256, 1024, 8, 8)


@pytest.fixture(scope="module")
def rows(golden_directory: Path) -> Callable[[int], Rows]:
    """The rows of a printed table by the sizes of their models."""

    def read(number: int) -> Rows:
        path = golden_directory / "published" / f"reduced_vocabulary_table{number}.csv"
        with path.open(encoding="utf-8", newline="") as handle:
            return {shape_of("_".join(["rv", *(row[size] for size in "EHILA")])): row for row in csv.DictReader(handle)}

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
    # So the step from 4 layers to 8 is one from an untied model to a tied one.
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
    with pytest.raises(EvaluationError, match="'rv_frontier' is not called after its sizes"):
        shape_of("rv_frontier")
