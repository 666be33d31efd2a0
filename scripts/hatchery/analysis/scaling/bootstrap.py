"""Intervals by bootstrap: what is drawn again are whole groups, such as the points of one run.

The points of a learning curve depend on each other, so drawing them one by one would promise too narrow an interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hatchery.errors import EvaluationError


@dataclass(frozen=True)
class Resampling:
    """How intervals are drawn."""

    draws: int = 1000
    confidence: float = 0.95
    seed: int = 0


LEAST_SHARE = 0.5
"""Of the draws, how many must have given a number: with fewer, the interval would be that of the easy ones."""


@dataclass(frozen=True)
class Interval:
    """The percentile interval of a quantity; `draws` gave a number."""

    low: float
    high: float
    confidence: float
    draws: int

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high


def bootstrap_interval(
    groups: Sequence[Sequence[int]], quantity: Callable[[list[int]], float], resampling: Resampling
) -> Interval | None:
    """The interval of a quantity of points; `groups` are the places of the points that are drawn together.

    As many groups are drawn as there are, with replacement. A draw of which `quantity` raises EvaluationError counts
    for nothing; None where half of the draws or more do, or where there is one group alone.
    """
    if len(groups) < 2:
        return None
    generator = np.random.default_rng(resampling.seed)
    values = []
    for _ in range(resampling.draws):
        chosen = generator.integers(len(groups), size=len(groups)).tolist()
        try:
            values.append(quantity([place for group in chosen for place in groups[group]]))
        except EvaluationError:
            continue
    if len(values) <= LEAST_SHARE * resampling.draws:
        return None
    tail = 50 * (1 - resampling.confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high), resampling.confidence, len(values))
