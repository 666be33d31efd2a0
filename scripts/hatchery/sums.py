"""Sums of floats that are equal in every Python: since 3.12, `sum` compensates for rounding errors; 3.11 does not."""

import operator
from collections.abc import Iterable
from functools import reduce


def plain_sum(values: Iterable[float]) -> float:
    """Add the values in their order, rounded after each addition. `math.fsum` is independent of the order."""
    return reduce(operator.add, values, 0.0)
