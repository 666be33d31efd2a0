"""Lengths of sentences and documents in words: exact counts, quantiles, and bins that widen with the length.

Three bins per doubling: 1, 2, 3, 4, 5, 6-7, 8-9, 10-12, 13-15 and so on. Words are white-space pieces, as in the counts
of the corpora; what has no word has no length and is left out.
"""

import math
from collections import Counter
from dataclasses import dataclass

BINS_PER_DOUBLING = 3


@dataclass(frozen=True)
class Bin:
    """Lengths from `low` to `high`, both included, and how many there are."""

    low: int
    high: int
    count: int

    @property
    def doublings(self) -> float:
        """Width on a logarithmic axis, in doublings; a length of n reaches from n - 0.5 to n + 0.5."""
        return math.log2((self.high + 0.5) / (self.low - 0.5))


def bins_of(lengths: Counter[int]) -> list[Bin]:
    """The bins from 1 up to the longest length, empty ones in between included."""
    longest = max(lengths, default=0)
    starts = [1]
    exponent = 1
    while starts[-1] <= longest:
        start = round(2 ** (exponent / BINS_PER_DOUBLING))
        if start > starts[-1]:
            starts.append(start)
        exponent += 1
    counts = [0] * (len(starts) - 1)
    index = 0
    for length in sorted(length for length in lengths if length > 0):
        while length >= starts[index + 1]:
            index += 1
        counts[index] += lengths[length]
    return [Bin(low, high - 1, count) for low, high, count in zip(starts, starts[1:], counts, strict=False)]


@dataclass(frozen=True)
class LengthFacts:
    """How long the sentences or the documents of a source are, in words."""

    number: int
    mean: float
    median: int
    percentile_95: int
    longest: int


def facts_of(lengths: Counter[int]) -> LengthFacts | None:
    """Mean and quantiles; a quantile is the smallest length that at least its share does not exceed. None for none."""
    known = sorted((length, count) for length, count in lengths.items() if length > 0)
    number = sum(count for _, count in known)
    if not number:
        return None

    def quantile(percent: int) -> int:
        seen = 0
        for length, count in known:
            seen += count
            if 100 * seen >= percent * number:
                return length
        raise AssertionError("the last length reaches every share")

    mean = sum(length * count for length, count in known) / number
    return LengthFacts(number, mean, quantile(50), quantile(95), known[-1][0])
