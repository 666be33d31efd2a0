"""Comparable numbers: bases by hand, and bases of objectives."""

import pytest

from hatchery.evaluation.basis import asked_of, basis, differing, joined, window_of
from hatchery.training.objectives import objective_settings

MASKED = {"kind": "subword", "mask_probability": 0.15}


def test_numbers_compare_where_no_aspect_differs() -> None:
    one = basis(asked="next tokens", tokenizer="ab", items=3, precision=None)
    assert one == "asked: next tokens; tokenizer: ab; items: 3"
    assert differing([one, one]) == {} == differing([]) == differing([""])
    assert differing([one, basis(asked="next tokens", tokenizer="cd", items=3)]) == {"tokenizer": ["ab", "cd"]}
    # Aspects that only one basis has count as differences.
    assert differing([one, basis(asked="next tokens", items=3)]) == {"tokenizer": ["", "ab"]}


def test_an_average_compares_with_one_of_the_same_parts_alone() -> None:
    parts = [("cola", basis(text="a", items=10)), ("rte", basis(text="b", items=10))]
    average = joined(parts)
    assert joined(reversed(parts)) == average and "items: 10" in average and "text: 2 values, " in average
    swapped = [("cola", basis(text="b", items=10)), ("rte", basis(text="a", items=10))]
    assert list(differing([average, joined(swapped)])) == ["text"]
    assert list(differing([average, joined([*parts, ("wsc", basis(text="c", items=9))])])) == ["text", "items"]
    assert joined(("", text) for text in [parts[0][1]] * 3) == "text: a; items: 10"


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"mask_probability": 0.4}, False),
        ({"kind": "span"}, False),
        ({"random_probability": 0.0}, False),
        ({"task": "hybrid"}, False),
        ({"task": "causal"}, False),
        ({"final_mask_probability": 0.3}, True),
        ({"segments": "packed"}, True),
    ],
)
def test_what_is_asked_is_told_by_all_that_decides_the_masks(changes: dict[str, object], same: bool) -> None:
    changed = {**MASKED, **changes}
    if changes.get("task") == "causal":
        changed = {"task": "causal"}
    asked = [asked_of(objective_settings(values, "objective")) for values in (MASKED, changed)]
    assert (asked[0] == asked[1]) is same
    assert asked[0].startswith("15 % of subwords (")


def test_shares_of_sequences_change_nothing_that_is_asked_and_all_causal_models_are_asked_alike() -> None:
    def asked(**values: object) -> str:
        return asked_of(objective_settings({**MASKED, "task": "hybrid", **values}, "objective"))

    assert asked(causal_share=0.5) == asked(causal_share=0.25, z_loss=0.1)
    assert asked(causal_share=1.0) == "next tokens" == asked_of(objective_settings({"task": "causal"}, "objective"))
    assert "at the positions before them" in asked()
    for direction in ("forward", "backward"):
        translation = objective_settings({"task": "translation", "direction": direction}, "objective")
        assert asked_of(translation) == f"target tokens, {direction}"


def test_the_seed_of_common_masks_and_the_window_are_told() -> None:
    masked = objective_settings(MASKED, "objective")
    assert asked_of(masked, 1) != asked_of(masked, 2)
    assert window_of(masked, 128) == "128 tokens, babylm" != window_of(masked, 64)
    causal = [objective_settings({"task": "causal", "reset_attention": reset}, "") for reset in (True, False)]
    assert window_of(causal[1], 32) == f"{window_of(causal[0], 32)}, behind other documents"
