"""Almost stochastic order: a measure of how far one sample of scores is from dominating another, with a confidence
bound.

The measure is from del Barrio et al. (2018). Dror et al. (2019) and Ulmer et al. (2022) compare trained models with
this measure, and ELC-BERT, Appendix E, reports the measure. Quantile functions of samples are step functions, so their
integrals are computed exactly, for all bootstrap draws at once.

`order_matrix` tests each ordered pair of models; the result of each test is a cell of a matrix. For the requested
confidence in the whole matrix, each cell needs a higher confidence (correction for multiple tests). Every pair of
models has its own random stream, so an additional model changes the other cells only by this correction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import get_args

import numpy as np

from hatchery.analysis.settings import DRAWS
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.draws import generator
from hatchery.settings.base import ReadingName

PURPOSE = "stochastic order"
UNDECIDED = 0.5


@dataclass(frozen=True)
class QuantileSteps:
    """Intervals of (0, 1) on which two quantile functions are compared, with weights.

    For each of the S intervals, `first` is the index of the quantile in the first sorted sample, and `second` in the
    second sorted sample (both int64 [S]). `weights` (float64 [S]) are proportional to the lengths of the intervals.
    """

    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray


def exact_steps(n: int, m: int) -> QuantileSteps:
    """Return all intervals on which the quantile functions of two samples, with n and m scores, are constant."""
    # Compute the edges i/n and j/m of the intervals as integers, in units of 1 / (n m). As floats, equal fractions
    # could differ.
    edges = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    return QuantileSteps(edges[:-1] // m, edges[:-1] // n, np.diff(edges).astype(np.float64))


def grid_steps(n: int, m: int, intervals: int = 200) -> QuantileSteps:
    """Return steps of equal weight at 1/intervals, 2/intervals, ..., below 1. At these steps, the quantile functions of
    two samples, with n and m scores, are evaluated.
    """
    points = np.arange(1, intervals)
    first, second = (-(-points * size // intervals) - 1 for size in (n, m))
    return QuantileSteps(first, second, np.ones(len(points)))


@dataclass(frozen=True)
class OrderEstimate:
    """The violation ratio (`violation_ratios`) of the claim that a sample of scores "a" dominates a sample "b", and the
    standard deviation of this ratio over bootstrap draws.
    """

    violation: float
    deviation: float

    def bound(self, confidence: float) -> float:
        """Return the upper confidence bound epsilon_min, in [0, 1], of the violation ratio of the claim "a dominates
        b".

        If the bound is below 0.5, sample a is better than sample b (the threshold of ELC-BERT, Tables 11 and 12). If
        the bound is 0, a dominates b. Raises ConfigError for a confidence not in [0.5, 1).

        The bound assumes a normal distribution of the ratio, so it is unreliable for few runs. In simulations of pairs
        of equal models (normal scores, 5 to 50 runs per model) at a confidence of 0.95, the bound is below 0.5 for 15
        to 25 % of the pairs, and below 0.2 for 2 to 8 % of the pairs. If the samples do not overlap, the ratio is 0 (or
        1) in every draw, so the bound is the same for every confidence. This happens for one of 126 pairs of equal
        models with five runs each.

        Ulmer et al. (2022) write epsilon - sigma / c * quantile(1 - confidence), where c = sqrt(n m / (n + m)), and
        sigma is the standard deviation of c (epsilon* - epsilon). Here epsilon is the violation ratio of the samples,
        and epsilon* is the violation ratio of a bootstrap draw. The factor c cancels, so only the standard deviation of
        epsilon* over the draws remains.
        """
        if not 0.5 <= confidence < 1:
            raise ConfigError(f"confidence: got {confidence}, expected at least 0.5 and below 1")
        return float(np.clip(self.violation + self.deviation * NormalDist().inv_cdf(confidence), 0.0, 1.0))

    def reversed(self) -> "OrderEstimate":
        """Return the estimate of "b dominates a" from the same draws."""
        return OrderEstimate(1.0 - self.violation, self.deviation)


def estimate_order(
    a: Sequence[float] | np.ndarray,
    b: Sequence[float] | np.ndarray,
    *,
    draws: int = DRAWS,
    random: np.random.Generator,
    steps: QuantileSteps | None = None,
) -> OrderEstimate:
    """Return the violation ratio (`violation_ratios`) of the claim that `a` dominates `b`, and its bootstrap deviation.
    Each bootstrap draw resamples both samples with replacement.

    If `steps` is given, the integrals in the ratio are computed as sums over these steps; otherwise they are computed
    exactly. Raises EvaluationError for invalid samples or a single score, ConfigError for fewer than two draws.
    """
    if draws < 2:
        raise ConfigError(
            f"draws: got {draws}, expected at least 2 bootstrap draws, because the standard deviation of fewer draws "
            "is undefined"
        )
    first, second = sorted_scores(a), sorted_scores(b)
    # Resampling a single score always yields the same score, and the resulting standard deviation of 0 would look like
    # certainty.
    if min(len(first), len(second)) < 2:
        raise EvaluationError(
            "stochastic order: got one score of a model, expected at least two scores of each model for a confidence"
        )
    steps = steps or exact_steps(len(first), len(second))
    redrawn = violation_ratios(_redraw(first, draws, random), _redraw(second, draws, random), steps)
    return OrderEstimate(float(violation_ratios(first, second, steps)), float(redrawn.std(ddof=1)))


def sorted_scores(scores: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the scores as float64 in ascending order. Raises EvaluationError if there are no scores, or if a score is
    not finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise EvaluationError(
            f"stochastic order: got an array of shape {values.shape}, expected a list of scores, one score per run"
        )
    if not np.isfinite(values).all():
        position = int(np.flatnonzero(~np.isfinite(values))[0])
        raise EvaluationError(f"stochastic order: score {position + 1} is {values[position]}, expected finite scores")
    return np.sort(values)


def _redraw(values: np.ndarray, draws: int, random: np.random.Generator) -> np.ndarray:
    # `values` are sorted, so sorted indices yield sorted values. Sorting the indices is faster, because they are
    # integers.
    positions = random.integers(len(values), size=(draws, len(values)), dtype=np.int32)
    positions.sort(axis=1)
    return values[positions]


def violation_ratios(first: np.ndarray, second: np.ndarray, steps: QuantileSteps) -> np.ndarray:
    """Return the violation ratio of "first dominates second", for sorted samples [..., n] and [..., m]; shape [...].

    Higher scores are better. With the quantile functions F and G of the two samples, the ratio is the integral of (F -
    G)^2 over {F < G}, divided by the integral of (F - G)^2 over (0, 1). If the ratio is 0, the first sample dominates;
    if the ratio is 1, the second sample dominates. Exchanging the samples gives 1 minus the ratio. For equal quantile
    functions (0/0), the ratio is defined as 0.5.
    """
    differences = first[..., steps.first] - second[..., steps.second]
    distances = differences**2 * steps.weights
    total = distances.sum(axis=-1)
    violated = np.where(differences < 0, distances, 0.0).sum(axis=-1)
    return np.divide(violated, total, out=np.full_like(total, UNDECIDED), where=total > 0)


THRESHOLD = 0.5
"""If epsilon_min of a cell is below this threshold, the model of the row is better than the model of the column. The
published tables print these cells in bold.
"""


@dataclass(frozen=True, eq=False)
class OrderMatrix:
    """epsilon_min (`OrderEstimate.bound`) for each ordered pair of k models: the claim is that the model of the row is
    better than the model of the column. Lower values are stronger evidence; 1 is no evidence.

    `epsilon` is float64 [k, k] with NaN on the diagonal. `confidence` is the confidence of all cells together, and
    `cell_confidence` is the confidence of each cell after the correction for the number of `comparisons`. `runs`
    contains the number of scores of each model.
    """

    names: tuple[str, ...]
    epsilon: np.ndarray
    runs: tuple[int, ...]
    confidence: float
    cell_confidence: float
    comparisons: int
    reading: ReadingName

    def cell(self, row: str, column: str) -> float:
        """Return epsilon_min of the claim that the model `row` is better than the model `column`.

        Raises EvaluationError for a name that is not in the matrix.
        """
        for name in (row, column):
            if name not in self.names:
                raise EvaluationError(f"got {name}, expected one of the compared models: {', '.join(self.names)}")
        return float(self.epsilon[self.names.index(row), self.names.index(column)])


def order_matrix(
    scores: Mapping[str, Sequence[float]],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int,
    reading: ReadingName = "corrected",
    comparisons: int | None = None,
) -> OrderMatrix:
    """Compare all models, given one score per run; higher scores are better (see `run_scores`). Each ordered pair of
    models is a cell of the matrix, so k models have k (k - 1) cells.

    `reading` names one of two methods. The method "corrected" integrates exactly and applies Bonferroni's correction:
    the confidence of a cell is 1 - (1 - confidence) / comparisons, where `comparisons` is the number of cells.

    The method "as_published" reproduces the package used for ELC-BERT. It evaluates quantiles on a grid of 0.005. With
    k (k - 1) / 2 pairs, the confidence of a cell is confidence + (1 - confidence) / pairs, which is lower for more
    pairs (docs/papers/elc-bert.md, "Significance").

    For two models, "as_published" corrects nothing (one pair), but "corrected" counts two cells. The argument
    `comparisons` replaces this number, for example if the confidence must hold for several matrices together.

    For few runs, the bounds are too low (see `OrderEstimate.bound`), with both methods. In simulated matrices of five
    equal models with nine runs each, the bound of at least one cell is below 0.5 in about 6 of 10 matrices
    ("corrected"), or in 9 of 10 ("as_published"). It is below 0.2 in 2 of 10 ("corrected"), or in 4 of 10
    ("as_published"). Raises EvaluationError, naming the pair, for invalid scores, and ConfigError for invalid settings.
    """
    if reading not in get_args(ReadingName):
        raise ConfigError(f"reading: got {reading!r}, expected one of {', '.join(get_args(ReadingName))}")
    if len(scores) < 2:
        raise EvaluationError(f"stochastic order: got {len(scores)} models, expected at least two models")
    names = tuple(scores)
    cells = len(names) * (len(names) - 1)
    if comparisons is None:
        comparisons = cells if reading == "corrected" else cells // 2
    cell_confidence = corrected_confidence(confidence, comparisons, reading)
    epsilon = np.full((len(names), len(names)), np.nan)
    # Both directions of a pair of models use the same draws, so that two models cannot each be better than the other.
    for first, second in combinations(sorted(names), 2):
        steps = grid_steps(len(scores[first]), len(scores[second])) if reading == "as_published" else None
        random = generator(seed, PURPOSE, first, second)
        try:
            estimate = estimate_order(scores[first], scores[second], draws=draws, random=random, steps=steps)
        except EvaluationError as error:
            raise EvaluationError(f"{first} and {second}: {error}") from error
        i, j = names.index(first), names.index(second)
        epsilon[i, j] = estimate.bound(cell_confidence)
        epsilon[j, i] = estimate.reversed().bound(cell_confidence)
    runs = tuple(len(scores[name]) for name in names)
    return OrderMatrix(names, epsilon, runs, confidence, cell_confidence, comparisons, reading)


def corrected_confidence(confidence: float, comparisons: int, reading: ReadingName = "corrected") -> float:
    """Return the confidence of a single comparison, corrected for the number of comparisons. Raises ConfigError for
    values out of range.
    """
    if comparisons < 1:
        raise ConfigError(f"comparisons: got {comparisons}, expected at least 1")
    if not 0.5 <= confidence < 1:
        raise ConfigError(f"confidence: got {confidence}, expected at least 0.5 and below 1")
    if comparisons == 1:
        return confidence
    if reading == "as_published":
        return confidence + (1 - confidence) / comparisons
    return 1 - (1 - confidence) / comparisons
