"""Probability distributions over the entries of a vocabulary, computed from the entries' counts. The computation is in
double precision and needs no PyTorch. Logarithms are in nats.

Source: "A Natural Bias for Language Generation Models", Section 3; docs/papers/natural-bias.md, "The bias".
"""

import numpy as np
from numpy.typing import ArrayLike

from hatchery.errors import ModelError

ADD_ONE = 1.0
"""Default pseudo-count of each vocabulary entry. The natural-bias paper does not state how it avoids log 0."""


def smoothed_distribution(counts: ArrayLike, smoothing: float = ADD_ONE) -> np.ndarray:
    """Return (c + smoothing) / (N + smoothing * V) for counts c [V] with the sum N, as float64.

    For entries that never occur, such as ids that are never labels, c is 0. Raises ModelError for counts that are
    negative or not finite, for a `smoothing` that is negative or not finite, and if an entry would have the probability
    0 (`smoothing` 0 and a count of 0).
    """
    values = checked_counts(counts) + _checked("smoothing", smoothing, 0 <= smoothing < np.inf, "0 or more")
    return _shares(values)


def label_smoothed_distribution(counts: ArrayLike, label_smoothing: float) -> np.ndarray:
    """Return (1 - label_smoothing) * c / N + label_smoothing / V for counts c [V] with the sum N, as float64.

    This is the best prediction without context for a loss with this label smoothing. Raises ModelError for counts that
    are negative, not finite or all 0, for a `label_smoothing` outside 0 to 1, and if an entry would have the
    probability 0 (`label_smoothing` 0 and a count of 0).
    """
    values = checked_counts(counts)
    share = _checked("label_smoothing", label_smoothing, 0 <= label_smoothing <= 1, "a number from 0 to 1")
    if not values.sum():
        raise ModelError("counts: all counts are 0, so there is no distribution")
    return _shares((1 - share) * values / values.sum() + share / len(values))


def entropy(distribution: np.ndarray) -> float:
    """Return the entropy of a distribution [V] in nats. Entries of probability 0 contribute 0."""
    positive = distribution[distribution > 0]
    return float(-(positive * np.log(positive)).sum())


def checked_counts(counts: ArrayLike) -> np.ndarray:
    """Return the counts [V] as float64. Raises ModelError if a count is negative or not finite, or if `counts` is
    empty.
    """
    values = np.asarray(counts, dtype=np.float64)
    if not values.size or not np.all(np.isfinite(values)) or values.min() < 0:
        raise ModelError(
            "counts: got no entries, or a negative or infinite count; expected a finite count of at least 0 for each "
            "of one or more vocabulary entries"
        )
    return values


def _checked(key: str, value: float, condition: bool, expected: str) -> float:
    if not condition:
        raise ModelError(f"{key}: got {value!r}, expected {expected}")
    return value


def _shares(values: np.ndarray) -> np.ndarray:
    if values.min() <= 0:
        raise ModelError(
            "counts: a vocabulary entry has the count 0, so the logarithm of its probability is not finite; "
            "expected a smoothing above 0"
        )
    return values / values.sum()
