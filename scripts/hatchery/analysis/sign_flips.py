"""Is a mean of paired differences beyond chance? An exact test by flipped signs, and a correction for several tests.

Source: Fisher's test of paired differences. Where every difference is one or none, as of two models that are right or
wrong on the same items, it is McNemar's exact test. Holm (1979), "A Simple Sequentially Rejective Multiple Test
Procedure".
"""

from collections.abc import Sequence

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom


def sign_flip_p(differences: np.ndarray) -> float:
    """Two-sided p of the sum of whole `differences` [n], if each could as well have the other sign; 1 if all are 0."""
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    # Only the ratios of the sizes count, and smaller ones have fewer sums.
    unit = np.gcd.reduce(sizes)
    # The probability of each sum of those with a positive sign.
    chances = np.ones(1)
    for size, count in zip(sizes // unit, counts, strict=True):
        positive = np.zeros(size * count + 1)
        positive[::size] = binom.pmf(np.arange(count + 1), count, 0.5)
        chances = fftconvolve(chances, positive) if len(chances) > 1 else positive
    sums = 2 * np.arange(len(chances)) - (len(chances) - 1)
    extreme = chances[np.abs(sums) >= abs(int(differences.sum()) // unit)].sum()
    return min(1.0, max(0.0, float(extreme)))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values, each corrected for all of them, so that any below 0.05 by chance alone has a chance of 0.05."""
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected
