"""Sums of floats that are equal in all versions of Python. Since Python 3.12, `sum` compensates for rounding errors."""

import operator
from collections.abc import Iterable
from functools import reduce


def plain_sum(values: Iterable[float]) -> float:
    """Return the sum of the values. Unlike `math.fsum`, the function adds the values in their order and rounds after
    each addition.
    """
    return reduce(operator.add, values, 0.0)
