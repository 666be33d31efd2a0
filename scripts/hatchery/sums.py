"""Sums of floats that are the same in every Python: from 3.12 on, `sum` makes up for rounding, and 3.11 does not."""

import operator
from collections.abc import Iterable
from functools import reduce


def plain_sum(values: Iterable[float]) -> float:
    """The values added in their order, rounded after each. Where any order must give the same, `math.fsum` does."""
    return reduce(operator.add, values, 0.0)
