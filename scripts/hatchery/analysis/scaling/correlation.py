"""Spearman's rank correlation with the number of models it rests on and a p value that fits that number.

The study prints p values that do not fit the number of models it states (docs/papers/reduced-vocabulary.md,
"Correlation"), so both are always said together here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from hatchery.errors import EvaluationError

LEAST_PAIRS = 3
MOST_PERMUTED = 7
"""Pairs of which all orders are tried: 5,040. With more, the t distribution is close enough."""


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho over `pairs` pairs and its two-sided p value; both None where one side is constant.

    `exact` says whether p counts all orders of one side, or comes from the t distribution with n - 2 degrees. Counted,
    p is twice the smaller of the shares of orders with a rho of at least, and of at most, the one found, and never
    above 1. With ties rho is not distributed evenly around 0, so this is not the share with as large an absolute rho.
    """

    rho: float | None
    p_value: float | None
    pairs: int
    exact: bool


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Correlation:
    """The correlation of pairs. Raises EvaluationError where there are fewer than three."""
    if len(xs) < LEAST_PAIRS:
        raise EvaluationError(f"a rank correlation of {len(xs)} pairs: expected {LEAST_PAIRS} or more")
    exact = len(xs) <= MOST_PERMUTED
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return Correlation(None, None, len(xs), exact)
    found = stats.spearmanr(xs, ys)
    p_value = float(found.pvalue)
    if exact:
        # One side alone, since scipy permutes every sample that it is given. Rho grows with this sum, which is exact.
        first, second = stats.rankdata(xs), stats.rankdata(ys)
        test = stats.permutation_test(
            (first,), lambda x, axis: (x * second).sum(axis=axis), permutation_type="pairings", n_resamples=math.inf
        )
        p_value = float(test.pvalue)
    return Correlation(float(found.statistic), p_value, len(xs), exact)


def p_value_of(rho: float, pairs: int) -> float:
    """The two-sided p value of a rho over so many pairs, by the t distribution with `pairs` - 2 degrees."""
    if abs(rho) >= 1:
        return 0.0
    return float(2 * stats.t.sf(abs(rho) * math.sqrt((pairs - 2) / (1 - rho**2)), pairs - 2))
