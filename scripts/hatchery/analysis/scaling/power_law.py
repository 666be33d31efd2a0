"""Power laws y = C x^e, fitted like the study's: least squares of y itself, by Levenberg and Marquardt.

A line through the logarithms is another fit, which weighs small losses more; it is where the search starts. Sources:
the reduced-vocabulary study, Section 5.1; docs/papers/reduced-vocabulary.md, "Power laws".

Where one law becomes another, the points in the order of x are cut where two laws, each fitted by itself, leave the
smallest sum of squared residuals. Two laws count as better than one where the Bayesian information criterion falls by
more than 10 ("very strong" evidence in Kass and Raftery, 1995): n ln(residual / n) + k ln n, with k = 2 for one law and
5 for two and the place of the cut. The paper names no criterion; its text gives the break as 2.2e15, 2e15 and "2^15"
FLOPs.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeWarning, curve_fit

from hatchery.errors import EvaluationError

LEAST_POINTS = 3
"""Two points give a law without any deviation from it."""


@dataclass(frozen=True)
class PowerLaw:
    """y = `coefficient` x^`exponent`, and how well it fits the `points` it was fitted to.

    `r_squared` is 1 - (sum of squared residuals) / (sum of squares about the mean), of y itself; `residual` is that sum
    of squared residuals.
    """

    coefficient: float
    exponent: float
    r_squared: float
    residual: float
    points: int

    def at(self, x: float) -> float:
        """The y of an x."""
        return self.coefficient * x**self.exponent


def fit_power_law(xs: Sequence[float], ys: Sequence[float]) -> PowerLaw:
    """The power law through positive points.

    Raises EvaluationError where there are too few of them, where all have one x, and where the search does not end.
    """
    x, y = _points(xs, ys)
    # Without the scale, 1e15 to a power underflows in the first steps of the search.
    scale = float(np.exp(np.log(x).mean()))
    start = _line(x / scale, y)
    try:
        with warnings.catch_warnings():
            # Of a perfect fit there is no covariance; it is not used.
            warnings.simplefilter("ignore", OptimizeWarning)
            (coefficient, exponent), _ = curve_fit(lambda x, c, e: c * x**e, x / scale, y, p0=start, method="lm")
    except RuntimeError as error:
        raise EvaluationError(f"a power law through {len(x)} points: {error}") from error
    return _law(x, y, float(coefficient), float(exponent), scale)


def fit_logarithms(xs: Sequence[float], ys: Sequence[float]) -> PowerLaw:
    """The line through the logarithms of positive points, as a power law with the R² of the points themselves."""
    x, y = _points(xs, ys)
    return _law(x, y, *_line(x, y), 1.0)


def _points(xs: Sequence[float], ys: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    if len(x) < LEAST_POINTS or len(np.unique(x)) < 2:
        raise EvaluationError(f"a power law through {len(x)} points: expected {LEAST_POINTS} or more, not all at one x")
    return x, y


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    exponent, constant = np.polyfit(np.log(x), np.log(y), 1)
    return float(np.exp(constant)), float(exponent)


def _law(x: NDArray[np.float64], y: NDArray[np.float64], scaled: float, exponent: float, scale: float) -> PowerLaw:
    residuals = y - scaled * (x / scale) ** exponent
    residual, about_mean = float(residuals @ residuals), float(((y - y.mean()) ** 2).sum())
    r_squared = 1 - residual / about_mean if about_mean else float("nan")
    return PowerLaw(scaled * scale**-exponent, exponent, r_squared, residual, len(x))


DECISIVE = 10.0
LEAST_ON_A_SIDE = 4
"""With three points a law of two parameters has one left to be judged by."""


@dataclass(frozen=True)
class BreakPoint:
    """The best cut: between `below` and `above`, the last x of the one law and the first of the other.

    `gain` is by how much two laws lower the criterion; `decisive` whether that is enough to speak of a break.
    """

    below: float
    above: float
    left: PowerLaw
    right: PowerLaw
    single: PowerLaw
    gain: float

    @property
    def decisive(self) -> bool:
        """Whether two laws are better than one."""
        return self.gain > DECISIVE

    @property
    def place(self) -> float:
        """The middle of the cut on a logarithmic axis."""
        return math.sqrt(self.below * self.above)


def find_break(xs: Sequence[float], ys: Sequence[float]) -> BreakPoint:
    """The best cut of positive points into two power laws.

    Raises EvaluationError where there are too few points, or too few different x, for two laws.
    """
    points = sorted(zip(xs, ys, strict=True))
    single = fit_power_law(*_columns(points))
    found: tuple[PowerLaw, PowerLaw, int] | None = None
    for cut in range(LEAST_ON_A_SIDE, len(points) - LEAST_ON_A_SIDE + 1):
        if points[cut - 1][0] == points[cut][0]:
            continue
        try:
            left, right = fit_power_law(*_columns(points[:cut])), fit_power_law(*_columns(points[cut:]))
        except EvaluationError:
            continue
        if found is None or left.residual + right.residual < found[0].residual + found[1].residual:
            found = left, right, cut
    if found is None:
        least = 2 * LEAST_ON_A_SIDE
        raise EvaluationError(
            f"a break of a power law in {len(points)} points: expected {least} or more to look for one"
        )
    left, right, cut = found
    gain = _criterion(single.residual, len(points), 2) - _criterion(left.residual + right.residual, len(points), 5)
    return BreakPoint(points[cut - 1][0], points[cut][0], left, right, single, gain)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _criterion(residual: float, points: int, parameters: int) -> float:
    # A law without residuals is as good as rounding allows.
    return points * math.log(max(residual, 1e-300) / points) + parameters * math.log(points)
