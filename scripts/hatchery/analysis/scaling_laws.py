"""Fits to compute-optimal points: power laws y = C x^e with bootstrap intervals, and the break between two laws.

As in the study "Honey, I Shrunk the Language", a law minimises the squared errors of y (Levenberg-Marquardt). The
optimisation starts from a linear fit of the logarithms; used alone, this fit would overweight small losses. Sources:
the study's Section 5.1; docs/papers/reduced-vocabulary.md, "Power laws".

To find a break, the points are sorted by x and split into two parts. A law is fitted to each part, and the split with
the smallest sum of squared residuals is selected. Two laws are preferred to one if the Bayesian information criterion n
ln(residual / n) + k ln n decreases by more than 10 ("very strong" evidence in Kass and Raftery, 1995). In the
criterion, n is the number of points, and residual is the sum of squared residuals. The number of parameters k is 2 for
one law, and 5 for two laws and the position of the split. The study names no criterion; its text gives the break as
2.2e15, 2e15 and "2^15" FLOPs.

The bootstrap resamples groups of points, such as all points of a run. Points of one learning curve depend on each
other, so resampling single points would make the intervals too narrow.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import OptimizeWarning, curve_fit

from hatchery.analysis.compute_optimal import EDGES, ScalingPoint, frontier
from hatchery.analysis.scaling_settings import PowerLawsSettings, RegionSettings
from hatchery.errors import EvaluationError

LEAST_POINTS = 3
"""Minimum number of points, because a law through two points has no residuals."""


@dataclass(frozen=True)
class PowerLaw:
    """The law y = `coefficient` x^`exponent`, fitted to `points` points.

    `residual` is the sum of squared residuals of y. `r_squared` is 1 - residual / (sum of squares about the mean).
    """

    coefficient: float
    exponent: float
    r_squared: float
    residual: float
    points: int


def fit_power_law(xs: Sequence[float], ys: Sequence[float]) -> PowerLaw:
    """Fit a power law to positive points.

    Raises EvaluationError if there are too few points, if all x are equal, or if the optimisation does not converge.
    """
    x, y = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
    if len(x) < LEAST_POINTS or len(np.unique(x)) < 2:
        raise EvaluationError(
            f"power law: got {len(x)} points, expected at least {LEAST_POINTS} points, with at least 2 different "
            "values of x"
        )
    # Divide x by its geometric mean. Otherwise powers of values near 1e15 would underflow in the first steps of the
    # optimisation.
    scale = float(np.exp(np.log(x).mean()))
    slope, constant = np.polyfit(np.log(x / scale), np.log(y), 1)
    start = float(np.exp(constant)), float(slope)
    try:
        with warnings.catch_warnings():
            # SciPy warns that a perfect fit has no covariance. The covariance is not used, so ignore the warning.
            warnings.simplefilter("ignore", OptimizeWarning)
            (coefficient, exponent), _ = curve_fit(lambda x, c, e: c * x**e, x / scale, y, p0=start, method="lm")
    except RuntimeError as error:
        raise EvaluationError(f"power law: the fit to {len(x)} points failed: {error}") from error
    scaled, exponent = float(coefficient), float(exponent)
    residuals = y - scaled * (x / scale) ** exponent
    residual, about_mean = float(residuals @ residuals), float(((y - y.mean()) ** 2).sum())
    r_squared = 1 - residual / about_mean if about_mean else float("nan")
    return PowerLaw(scaled * scale**-exponent, exponent, r_squared, residual, len(x))


DECISIVE = 10.0
LEAST_ON_A_SIDE = 4
"""Minimum number of points on each side of a break. A law has two parameters, so with three points, the residuals would
have only one degree of freedom."""


@dataclass(frozen=True)
class BreakPoint:
    """The best split of points, sorted by x, into two power laws. `below` is the last x of the first law, and `above`
    is the first x of the second law.

    `gain` is the decrease of the Bayesian information criterion if two laws are fitted instead of one law.
    """

    below: float
    above: float
    left: PowerLaw
    right: PowerLaw
    single: PowerLaw
    gain: float

    @property
    def decisive(self) -> bool:
        """True if `gain` is more than 10, so that two laws are preferred to one law."""
        return self.gain > DECISIVE


def find_break(xs: Sequence[float], ys: Sequence[float]) -> BreakPoint:
    """Find the best split of positive points into two power laws.

    Raises EvaluationError if there are too few points, or too few distinct values of x, for two laws, and if the fit of
    a single law to all points fails.
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
        raise EvaluationError(f"break of a power law: got {len(points)} points, expected at least {least} points")
    left, right, cut = found
    gain = _criterion(single.residual, len(points), 2) - _criterion(left.residual + right.residual, len(points), 5)
    return BreakPoint(points[cut - 1][0], points[cut][0], left, right, single, gain)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _criterion(residual: float, points: int, parameters: int) -> float:
    # A perfect fit has the residual 0, and log(0) is undefined.
    return points * math.log(max(residual, 1e-300) / points) + parameters * math.log(points)


LEAST_SHARE = 0.5
"""An interval requires that the quantity is defined in more than this share of the bootstrap draws. Otherwise, the
draws with a defined quantity are not representative.
"""


@dataclass(frozen=True)
class Interval:
    """The percentile interval of a quantity over bootstrap draws. `draws` is the number of draws in which the quantity
    is defined.
    """

    low: float
    high: float
    confidence: float
    draws: int


def bootstrap_interval(
    groups: Sequence[Sequence[int]],
    quantity: Callable[[list[int]], float],
    draws: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Return the bootstrap interval of a statistic of points. `quantity` computes the statistic from the indices of the
    drawn points. Each group contains the indices of points that are always drawn together.

    In each draw, `len(groups)` groups are drawn with replacement. The statistic is undefined in a draw if `quantity`
    raises EvaluationError. Return None if the statistic is undefined in at least half of the draws, or if there is only
    one group.
    """
    if len(groups) < 2:
        return None
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(draws):
        chosen = generator.integers(len(groups), size=len(groups)).tolist()
        try:
            values.append(quantity([place for group in chosen for place in groups[group]]))
        except EvaluationError:
            continue
    if len(values) <= LEAST_SHARE * draws:
        return None
    tail = 50 * (1 - confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high), confidence, len(values))


Axis = Literal["flops", "tokens", "parameters"]
AXES: tuple[Axis, ...] = ("flops", "tokens", "parameters")
WHOLE = "all"


@dataclass(frozen=True)
class Law:
    """The law of the loss against one axis (FLOPs, tokens or parameters) within a region (range of FLOPs). `law` is
    None if it cannot be fitted, for example because there are too few points.
    """

    axis: Axis
    region: str
    bounds: RegionSettings
    points: int
    law: PowerLaw | None
    interval: Interval | None


@dataclass(frozen=True)
class Laws:
    """All laws that were fitted to one list of points. `optimal` contains the indices of the compute-optimal points.
    `found_break` is None if `find_break` cannot split the compute-optimal points.
    """

    optimal: list[int]
    laws: list[Law]
    found_break: BreakPoint | None


def scaling_laws(points: Sequence[ScalingPoint], settings: PowerLawsSettings) -> Laws:
    """Return the compute-optimal points (the point with the lowest loss in each bin of FLOPs), their power laws and
    their break point.

    The loss against FLOPs is fitted in every region (range of FLOPs) of `settings`, and over all compute-optimal
    points. The loss against tokens or parameters is only fitted over all compute-optimal points. For the bootstrap
    intervals, models are drawn with all their points. Each draw has its own compute-optimal points; the bins of FLOPs
    are the same in all draws.
    """
    if not points:
        return Laws([], [], None)
    flops, losses = [point.flops for point in points], [point.loss for point in points]
    edges = EDGES[settings.bins](flops, settings.number_of_bins)
    optimal = frontier(flops, losses, edges)
    members: dict[str, list[int]] = {}
    for place, point in enumerate(points):
        members.setdefault(point.model, []).append(place)

    def fit(places: Sequence[int], axis: Axis, bounds: RegionSettings) -> PowerLaw:
        kept = [points[place] for place in places if bounds.holds(flops[place])]
        return fit_power_law([point.along(axis) for point in kept], [point.loss for point in kept])

    def law_of(axis: Axis, region: str, bounds: RegionSettings) -> Law:
        def exponent(places: list[int]) -> float:
            best = frontier([flops[place] for place in places], [losses[place] for place in places], edges)
            return fit([places[each] for each in best], axis, bounds).exponent

        inside = sum(bounds.holds(flops[place]) for place in optimal)
        try:
            law = fit(optimal, axis, bounds)
        except EvaluationError:
            return Law(axis, region, bounds, inside, None, None)
        groups = list(members.values())
        interval = bootstrap_interval(groups, exponent, settings.draws, settings.confidence, settings.seed)
        return Law(axis, region, bounds, inside, law, interval)

    whole = RegionSettings()
    laws = [law_of("flops", region, bounds) for region, bounds in (*settings.regions.items(), (WHOLE, whole))]
    laws += [law_of(axis, WHOLE, whole) for axis in AXES if axis != "flops"]
    try:
        found_break = find_break([flops[place] for place in optimal], [losses[place] for place in optimal])
    except EvaluationError:
        found_break = None
    return Laws(optimal, laws, found_break)
