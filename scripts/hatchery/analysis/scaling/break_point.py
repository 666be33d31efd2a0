"""Where one power law becomes another, and whether the points say so.

Criterion: the points in the order of x are cut where two laws, each fitted by itself, leave the smallest sum of squared
residuals. Two laws count as better than one where the Bayesian information criterion falls by more than 10 ("very
strong" evidence in Kass and Raftery, 1995): n ln(residual / n) + k ln n, with k = 2 for one law and 5 for two and the
place of the cut. The paper names no criterion; its text gives the break as 2.2e15, 2e15 and "2^15" FLOPs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hatchery.analysis.scaling.power_law import PowerLaw, fit_power_law
from hatchery.errors import EvaluationError

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
