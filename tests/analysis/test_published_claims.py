"""The published numbers beside what the reduced-vocabulary paper says of them, and the FLOPs that it prints."""

from pathlib import Path

import pytest

from hatchery.analysis.published_claims import Claim, claims
from hatchery.analysis.published_curves import read_published_curves
from hatchery.analysis.published_flops import REVERSED, printed_flops, shape_of, study_flops_1e15
from hatchery.analysis.published_values import PublishedNumber, read_numbers
from hatchery.errors import EvaluationError


@pytest.fixture(scope="module")
def numbers(repository: Path) -> list[PublishedNumber]:
    return read_numbers(repository / "config/published/values/reduced_vocabulary.csv")


@pytest.fixture(scope="module")
def told(numbers: list[PublishedNumber], repository: Path) -> dict[str, Claim]:
    logged = read_published_curves(repository / "config/published/curves/reduced_vocabulary.csv")
    return {claim.said.split()[0]: claim for claim in claims(numbers, logged)}


def test_three_shapes_are_better_without_pretraining(told: dict[str, Claim]) -> None:
    found = told["For"].found
    assert found.startswith("In Table 3, 16 of 19 are; not so (32, 256, 1024, 8, 8) 48.39 against 49.80; ")
    assert "(64, 256, 1024, 8, 8) 51.09 against 51.99" in found
    assert "(32, 32, 64, 1, 1) 47.20 against 48.69" in found


def test_one_shape_is_better_on_unfiltered_glue(told: dict[str, Claim]) -> None:
    found = told["Models"].found
    assert found == "In Table 3, 18 of 19 are; not so (256, 256, 128, 8, 8) 57.18 against 57.65."


def test_larger_models_are_compared_with_a_tied_one(told: dict[str, Claim]) -> None:
    found = told["More"].found
    assert "tied matrices and no projection, 11.30 million parameters and a peak learning rate of 5.00e-4" in found
    assert found.endswith(
        "16.24 million that was logged with both reached 7.23; 6 of the 7 larger ones are below that."
    )


def test_the_fall_from_four_to_eight_layers_compares_two_kinds_of_models(told: dict[str, Claim]) -> None:
    assert "(60.67 to 56.29)" in told["GLUE"].said
    assert "4 layers with two matrices and a projection, that of 8 with tied matrices" in told["GLUE"].found


def test_models_are_counted(told: dict[str, Claim]) -> None:
    assert "Table 7 adds 7, Table 4 10: 79 in all. Of these 62 have" in told["Over"].found


def test_p_values_and_numbers_of_models_are_set_side_by_side(told: dict[str, Claim]) -> None:
    assert "rho = -0.67, p = 6.25e-7, over 32 models" in told["Perplexity"].said
    found = told["Perplexity"].found
    assert "rho = -0.67 has p = 2.73e-5; the printed p values belong to 44 and 42 models" in found
    assert "-0.40 (p = 0.09) filtered and -0.38 (p = 0.11) unfiltered" in found


def test_every_claim_has_a_place_and_a_finding(told: dict[str, Claim]) -> None:
    assert len(told) == 8 - 1  # Two begin with "Table".
    assert all(claim.where and claim.found.endswith(".") for claim in told.values())


def test_a_number_that_is_not_published_is_named(numbers: list[PublishedNumber], repository: Path) -> None:
    logged = read_published_curves(repository / "config/published/curves/reduced_vocabulary.csv")
    kept = [number for number in numbers if not (number.table == "3" and number.suite == "rv_glue")]
    with pytest.raises(EvaluationError, match=r"lack rv_glue average score_percent of rv_256_256_1024_8_8 \(table 3\)"):
        claims(kept, logged)


def test_all_printed_flops_but_one_follow_from_the_code(numbers: list[PublishedNumber]) -> None:
    found = {(each.number.table, each.shape): each for each in printed_flops(numbers)}
    assert len(found) == 19 + 10 + 8
    assert [shape for (_, shape), each in found.items() if not each.formula] == [(128, 256, 1024, 8, 8)]
    backwards = [shape for (_, shape), each in found.items() if each.formula == REVERSED]
    assert backwards == [(32, 32, 128, 2, 2), (32, 32, 128, 1, 1), (32, 32, 64, 1, 1)]
    assert {each.formula for (table, _), each in found.items() if table == "7"} == {"code"}
    assert not any(each.cut_off for (table, _), each in found.items() if table == "7")
    changed = {shape: each.formula for (table, shape), each in found.items() if table == "4"}
    assert [each for shape, each in changed.items() if shape[0] == 256] == ["code_without_projection"] * 7
    assert [each for shape, each in changed.items() if shape[0] == 32] == ["code"] * 3


def test_no_printed_total_follows_from_appendix_a(numbers: list[PublishedNumber]) -> None:
    assert not {each.formula for each in printed_flops(numbers)} & {"printed", "complete"}
    assert study_flops_1e15((256, 256, 1024, 8, 8), "printed") == pytest.approx(86.94, abs=0.005)


def test_a_row_without_sizes_is_named() -> None:
    with pytest.raises(EvaluationError, match="'rv_frontier' is not called after its sizes"):
        shape_of("rv_frontier")
