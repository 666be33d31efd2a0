"""Spearman's rank correlation with its p value. For few observations, the p value is computed exactly, over all
permutations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hatchery.errors import EvaluationError

LEAST_PAIRS = 3
MOST_PERMUTED = 7
"""Maximum number of observations for which p is computed over all permutations (7! = 5,040). For more observations, the
t distribution is accurate.
"""


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho of two variables over `pairs` observations, and its two-sided p value. Both are None if one
    variable is constant.

    `exact` is true if p was computed over all permutations of one variable. Otherwise p follows from the t distribution
    with `pairs` - 2 degrees of freedom.

    The exact p is twice the smaller of two fractions of the permutations, but at most 1. The first fraction counts the
    permutations whose rho is at least the observed rho. The second fraction counts the permutations whose rho is at
    most the observed rho. With ties, the distribution of rho is not symmetric around 0. The exact p then differs from
    the fraction of permutations whose absolute rho is at least the absolute value of the observed rho.
    """

    rho: float | None
    p_value: float | None
    pairs: int
    exact: bool


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Correlation:
    """Return the rank correlation between `xs` and `ys`. Raises EvaluationError for fewer than three observations."""
    from scipy import stats

    if len(xs) < LEAST_PAIRS:
        raise EvaluationError(f"rank correlation: got {len(xs)} pairs, expected {LEAST_PAIRS} or more")
    exact = len(xs) <= MOST_PERMUTED
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return Correlation(None, None, len(xs), exact)
    found = stats.spearmanr(xs, ys)
    p_value = float(found.pvalue)
    if exact:
        # Permute only one of the two variables; `permutation_test` permutes both by default. The statistic is the sum
        # of the products of ranks: it increases with rho and has no rounding errors.
        first, second = stats.rankdata(xs), stats.rankdata(ys)
        test = stats.permutation_test(
            (first,), lambda x, axis: (x * second).sum(axis=axis), permutation_type="pairings", n_resamples=math.inf
        )
        p_value = float(test.pvalue)
    return Correlation(float(found.statistic), p_value, len(xs), exact)


def p_value_of(rho: float, pairs: int) -> float:
    """Return the two-sided p value of Spearman's rho over `pairs` observations, by the t distribution with `pairs` - 2
    degrees of freedom."""
    from scipy import stats

    if abs(rho) >= 1:
        return 0.0
    return float(2 * stats.t.sf(abs(rho) * math.sqrt((pairs - 2) / (1 - rho**2)), pairs - 2))
