"""The amount of text with which a baseline reaches a given loss, by a curve fitted to losses of the baseline.

The curve is L(D) = E + A D^-a for the amount of text D, as in Hoffmann et al. 2022 (arXiv:2203.15556) for models of one
size. The fit minimises the squared errors of the losses (scipy's `curve_fit`). With fewer than four different amounts
of text, E is fixed at 0, and the squared errors of the log losses are minimised.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import OptimizeWarning, curve_fit

from hatchery.errors import EvaluationError

LEAST_AMOUNTS, LEAST_WITH_LIMIT = 2, 4
MOST_EXPONENT = 5.0
SAME_AMOUNT = 0.05
"""Relative difference up to which two amounts of text count as equal. The amounts differ slightly between the seeds of
one run.
"""


@dataclass(frozen=True)
class DataCurve:
    """The loss for the amount of text D: L(D) = `limit` + `coefficient` * (D / `scale`) ** -`exponent`."""

    limit: float
    coefficient: float
    exponent: float
    scale: float
    """Geometric mean of the amounts of text to which the curve was fitted."""
    deviation: float
    """Square root of the mean squared residual, in the unit of the losses."""
    least: float
    """Smallest amount of text to which the curve was fitted."""
    most: float

    def loss(self, amount: float) -> float:
        """Return the baseline's loss for an amount of text."""
        return self.limit + self.coefficient * (amount / self.scale) ** -self.exponent

    def amount(self, loss: float) -> float | None:
        """Return the amount of text with which the baseline reaches a loss; None if the loss is not above `limit`, the
        loss that the curve approaches with more text.
        """
        if loss <= self.limit:
            return None
        return float(self.scale * ((loss - self.limit) / self.coefficient) ** (-1 / self.exponent))


def different_amounts(amounts: Sequence[float]) -> int:
    """Return the number of distinct amounts. In ascending order, an amount counts if it exceeds the previous amount by
    more than the fraction SAME_AMOUNT of the previous amount.
    """
    ordered = sorted(amounts)
    apart = (more > less * (1 + SAME_AMOUNT) for less, more in pairwise(ordered))
    return bool(ordered) + sum(apart)


def fit_data_curve(amounts: Sequence[float], losses: Sequence[float]) -> DataCurve:
    """Return the curve fitted to the losses. `amounts` are the amounts of text of these losses; they are positive and
    may repeat.

    Raises EvaluationError if there are fewer than two different amounts, if losses do not decrease with the amount, or
    if the optimisation does not converge.
    """
    x, y = np.asarray(amounts, dtype=float), np.asarray(losses, dtype=float)
    different = different_amounts(x.tolist())
    if different < LEAST_AMOUNTS:
        raise EvaluationError(f"loss curve: got {different} different amounts of text, expected at least 2")
    scale = float(np.exp(np.log(x).mean()))
    slope, constant = np.polyfit(np.log(x / scale), np.log(y), 1)
    if slope >= 0:
        raise EvaluationError(
            "loss curve: got losses that do not decrease with the amount of text, expected decreasing losses"
        )
    found = (0.0, float(np.exp(constant)), -float(slope))
    if different >= LEAST_WITH_LIMIT:
        found = _with_limit(x / scale, y, found)
    limit, coefficient, exponent = found
    residuals = y - (limit + coefficient * (x / scale) ** -exponent)
    deviation = math.sqrt(float(residuals @ residuals) / len(y))
    return DataCurve(limit, coefficient, exponent, scale, deviation, float(x.min()), float(x.max()))


def _with_limit(x: np.ndarray, y: np.ndarray, start: tuple[float, float, float]) -> tuple[float, float, float]:
    lowest = float(y.min())
    half = lowest / 2, start[1] - lowest / 2, 2 * start[2]
    bounds = ([0.0, 1e-12, 1e-6], [lowest, math.inf, MOST_EXPONENT])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            found, _ = curve_fit(
                lambda amount, limit, coefficient, exponent: limit + coefficient * amount**-exponent,
                x,
                y,
                p0=np.clip(half, bounds[0], bounds[1]),
                bounds=bounds,
                xtol=1e-12,
                ftol=1e-12,
                gtol=1e-12,
                max_nfev=20_000,
            )
    except RuntimeError as error:
        raise EvaluationError(f"loss curve: the fit to {len(x)} points failed: {error}") from error
    limit, coefficient, exponent = (float(value) for value in found)
    return limit, coefficient, exponent
