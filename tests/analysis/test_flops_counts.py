"""The counts of FLOPs that a study may choose from, for runs as they stand in `runs.parquet`."""

from typing import Any

import pytest

from hatchery.analysis.flops_counts import COUNT_NAMES, flops_per_sequence, training_flops
from hatchery.modeling.flops import STUDY_SEQUENCES, StudyFormula, reduced_vocabulary_flops

ANCHOR: dict[str, Any] = {
    **{"embedding_size": 256, "hidden_size": 256, "intermediate_size": 1024, "layers": 8, "attention_heads": 8},
    **{"vocabulary_rows": 19_010, "tied": False, "sequence_length": 128, "sequences": STUDY_SEQUENCES},
    **{"parameters": 16_237_122, "tokens": 10**9, "training_flops": 5e16},
}


@pytest.mark.parametrize("formula", ["code", "code_without_projection", "printed", "complete"])
def test_a_run_of_the_study_costs_what_its_formulas_say(formula: StudyFormula) -> None:
    found = training_flops(ANCHOR, formula)
    assert found == pytest.approx(STUDY_SEQUENCES * reduced_vocabulary_flops(256, 256, 1024, 8, 8, formula))


def test_six_n_d_leaves_out_an_embedding_that_is_only_looked_up() -> None:
    assert training_flops(ANCHOR, "six_n_d") == 6 * (16_237_122 - 19_010 * 256) * 10**9
    assert training_flops(ANCHOR | {"tied": True}, "six_n_d") == 6 * 16_237_122 * 10**9


def test_matrix_products_are_those_of_the_run() -> None:
    assert training_flops(ANCHOR, "products") == 5e16
    assert flops_per_sequence(ANCHOR, "products") == 5e16 / STUDY_SEQUENCES


def test_sequences_of_changing_length_have_no_count_of_the_study() -> None:
    run = ANCHOR | {"sequence_length": None}
    counted = {count for count in COUNT_NAMES if training_flops(run, count) is not None}
    assert counted == {"products", "six_n_d"}
    assert flops_per_sequence(ANCHOR | {"sequences": 0}, "products") is None
