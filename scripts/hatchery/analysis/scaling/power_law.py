"""Power laws y = C x^e, fitted like the study's: least squares of y itself, by Levenberg and Marquardt.

A line through the logarithms is another fit, which weighs small losses more; it is where the search starts. Sources:
the reduced-vocabulary study, Section 5.1; docs/papers/reduced-vocabulary.md, "Power laws".
"""

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
