"""Splits: drawn by name, independent of the others, in the asked proportions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.corpora.splits import SplitSettings, assign_split
from hatchery.errors import ConfigError


def test_shares_are_those_of_the_settings() -> None:
    settings = SplitSettings(development_fraction=0.2, test_fraction=0.1, seed=1)
    splits = [assign_split(f"document-{index}", settings) for index in range(4000)]
    assert splits.count("dev") / 4000 == pytest.approx(0.2, abs=0.03)
    assert splits.count("test") / 4000 == pytest.approx(0.1, abs=0.03)


@given(st.text(max_size=20), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_document_never_leaves_training_when_the_fractions_shrink(name: str, development: float, test: float) -> None:
    large = assign_split(name, SplitSettings(development, test))
    small = assign_split(name, SplitSettings(development / 2, 0.0))
    assert small in ("train", "dev")
    assert large != "train" or small == "train"


def test_another_seed_draws_another_split() -> None:
    draws = [[assign_split(str(index), SplitSettings(0.5, 0.0, seed)) for index in range(64)] for seed in (0, 1)]
    assert draws[0] != draws[1]


@pytest.mark.parametrize("fractions", [(-0.1, 0.0), (0.7, 0.7), (0.0, 1.5)])
def test_impossible_fractions_are_refused(fractions: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="fraction"):
        SplitSettings(*fractions)
