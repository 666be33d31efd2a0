"""Sums of floats that are equal in all versions of Python. Since Python 3.12, `sum` compensates for rounding errors."""

import operator
from collections.abc import Iterable
from functools import reduce


def plain_sum(values: Iterable[float]) -> float:
    """Return the sum of the values, which are added in their order and rounded after each addition, unlike in
    `math.fsum`.
    """
    return reduce(operator.add, values, 0.0)
