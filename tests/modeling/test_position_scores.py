"""The methods that benchmarks compare for position scores give the same scores and gradients as the lookup."""

from functools import partial

import pytest
from test_attention import Case

from benchmarks.position_scores import by_prefix_sums, skewed


@pytest.mark.parametrize("way", [skewed, by_prefix_sums])
@pytest.mark.parametrize("length", [2, 17, 63])
def test_scores_and_gradients_are_those_of_the_lookup(way, length, monkeypatch):
    case = Case(length, "padded")
    expected = case.results(case.fast)
    monkeypatch.setattr(case.fast, "_position_scores", partial(way, case.fast))
    case.check(case.fast, expected)
