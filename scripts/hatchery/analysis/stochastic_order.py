"""Almost stochastic order: how far one sample of scores is from dominating another, with a confidence bound.

The measure is that of del Barrio et al. (2018), its use for comparing trained models that of Dror et al. (2019) and
Ulmer et al. (2022); ELC-BERT, Appendix E, prints it. The quantile functions of samples are step functions, so their
integrals are computed exactly, for all bootstrap draws at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.seeds import generator

PURPOSE = "stochastic order"
UNDECIDED = 0.5
DRAWS = 1000


@dataclass(frozen=True)
class QuantileSteps:
    """Where two quantile functions are compared, and how much each place counts.

    `first` and `second`, int64 [S], are positions in the sorted samples; `weights`, float64 [S], are proportional to
    the share of (0, 1) over which both functions keep these values.
    """

    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray


def exact_steps(n: int, m: int) -> QuantileSteps:
    """All intervals on which the quantile functions of samples of n and m scores are both constant."""
    # Whole numbers in units of 1 / (n m): as fractions, i/n and j/m that are equal could differ by rounding.
    edges = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    return QuantileSteps(edges[:-1] // m, edges[:-1] // n, np.diff(edges).astype(np.float64))


def grid_steps(n: int, m: int, intervals: int = 200) -> QuantileSteps:
    """The quantile functions at 1/intervals, 2/intervals, ... below 1, equally weighted (a sum for the integral)."""
    points = np.arange(1, intervals)
    first, second = (-(-points * size // intervals) - 1 for size in (n, m))
    return QuantileSteps(first, second, np.ones(len(points)))


@dataclass(frozen=True)
class OrderEstimate:
    """The violation ratio of "a dominates b" on the samples, and its standard deviation over bootstrap draws."""

    violation: float
    deviation: float

    def bound(self, confidence: float) -> float:
        """The upper confidence bound epsilon_min, in [0, 1]. Raises ConfigError for a confidence not in [0.5, 1).

        Ulmer et al. (2022) write epsilon - sigma / c * quantile(1 - confidence) with c = sqrt(n m / (n + m)) and sigma
        the deviation of c (epsilon* - epsilon): c cancels, and what remains is the bound from the draws' deviation.
        """
        if not 0.5 <= confidence < 1:
            raise ConfigError(f"confidence: {confidence} is not at least 0.5 and below 1")
        return float(np.clip(self.violation + self.deviation * NormalDist().inv_cdf(confidence), 0.0, 1.0))

    def reversed(self) -> "OrderEstimate":
        """The estimate for "b dominates a" from the same draws."""
        return OrderEstimate(1.0 - self.violation, self.deviation)


def violation_ratio(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """The share of the squared distance between two samples that speaks against "a dominates b", higher being better.

    With F and G the quantile functions of a and b it is the integral of (F - G)^2 over {F < G}, divided by that over
    (0, 1). 0: a dominates b; 1: b dominates a; always violation_ratio(b, a) = 1 - violation_ratio(a, b). Two samples
    with the same quantile functions leave 0/0, which is defined as 0.5: nothing speaks for either, and the sum stays 1.
    Raises EvaluationError for an empty sample and for scores that are not finite.
    """
    first, second = sorted_scores(a), sorted_scores(b)
    return float(_ratios(first, second, exact_steps(len(first), len(second))))


def epsilon_min(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int,
) -> float:
    """The smallest violation ratio that the samples' "a dominates b" still has with this confidence, in [0, 1].

    Below 0.5, a is better than b (the threshold of ELC-BERT, Tables 11 and 12); 0 is dominance. Read it with care when
    runs are few. The bound takes the ratio to be normal around its estimate; of equal models it is not, and 15 to 25 %
    of such pairs fall below 0.5 at a confidence of 0.95, 2 to 8 % below 0.2 (normal scores, 50 to 5 runs). And where
    the samples do not overlap, every draw has ratio 0 and no confidence raises the bound: of equal models with five
    runs each, that happens to one pair in 126. Raises EvaluationError for invalid samples or a single score,
    ConfigError for an invalid confidence or number of draws.
    """
    return estimate_order(a, b, draws=draws, random=generator(seed, PURPOSE)).bound(confidence)


def estimate_order(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    *,
    draws: int = DRAWS,
    random: np.random.Generator,
    steps: QuantileSteps | None = None,
) -> OrderEstimate:
    """Violation ratio and its bootstrap deviation; both samples are drawn again with replacement, at their sizes.

    `steps` replaces the exact integration. Raises EvaluationError for invalid samples or a single score, ConfigError
    for fewer than two draws.
    """
    if draws < 2:
        raise ConfigError(f"draws: {draws} bootstrap draws have no deviation; at least 2 are needed")
    first, second = sorted_scores(a), sorted_scores(b)
    # Drawn again, a single score never varies: its deviation of 0 would pass for certainty.
    if min(len(first), len(second)) < 2:
        raise EvaluationError("a confidence of a stochastic order needs at least two scores on each side, not one")
    steps = steps or exact_steps(len(first), len(second))
    redrawn = _ratios(_redraw(first, draws, random), _redraw(second, draws, random), steps)
    return OrderEstimate(float(_ratios(first, second, steps)), float(redrawn.std(ddof=1)))


def sorted_scores(scores: Sequence[float] | np.ndarray) -> np.ndarray:
    """The scores as float64, ascending. Raises EvaluationError when there is none or one is not finite."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise EvaluationError(f"stochastic order needs a list of scores, one per run, not an array of {values.shape}")
    if not np.isfinite(values).all():
        position = int(np.flatnonzero(~np.isfinite(values))[0])
        raise EvaluationError(f"stochastic order needs finite scores, and score {position + 1} is {values[position]}")
    return np.sort(values)


def _redraw(values: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    # The sample is sorted: sorted positions give sorted draws, and whole numbers sort faster than scores.
    positions = random.integers(len(values), size=(draws, len(values)), dtype=np.int32)
    positions.sort(axis=1)
    return values[positions]


def _ratios(first: np.ndarray, second: np.ndarray, steps: QuantileSteps) -> np.ndarray:
    """Violation ratios of sorted samples [..., n] and [..., m], of shape [...]."""
    differences = first[..., steps.first] - second[..., steps.second]
    distances = differences**2 * steps.weights
    total = distances.sum(axis=-1)
    violated = np.where(differences < 0, distances, 0.0).sum(axis=-1)
    return np.divide(violated, total, out=np.full_like(total, UNDECIDED), where=total > 0)
