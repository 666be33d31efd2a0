"""All that is fitted to a cloud of points: its frontier, the power laws of the frontier with intervals, its break.

By bootstrap, whole groups are drawn again, such as the points of one run: the points of a learning curve depend on
each other, so drawing them one by one would promise too narrow an interval.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hatchery.analysis.scaling.frontier import EDGES, Bins, frontier
from hatchery.analysis.scaling.power_law import BreakPoint, PowerLaw, find_break, fit_power_law
from hatchery.errors import EvaluationError


@dataclass(frozen=True)
class Resampling:
    """How intervals are drawn."""

    draws: int = 1000
    confidence: float = 0.95
    seed: int = 0


LEAST_SHARE = 0.5
"""Of the draws, how many must have given a number: with fewer, the interval would be that of the easy ones."""


@dataclass(frozen=True)
class Interval:
    """The percentile interval of a quantity; `draws` gave a number."""

    low: float
    high: float
    confidence: float
    draws: int

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high


def bootstrap_interval(
    groups: Sequence[Sequence[int]], quantity: Callable[[list[int]], float], resampling: Resampling
) -> Interval | None:
    """The interval of a quantity of points; `groups` are the places of the points that are drawn together.

    As many groups are drawn as there are, with replacement. A draw of which `quantity` raises EvaluationError counts
    for nothing; None where half of the draws or more do, or where there is one group alone.
    """
    if len(groups) < 2:
        return None
    generator = np.random.default_rng(resampling.seed)
    values = []
    for _ in range(resampling.draws):
        chosen = generator.integers(len(groups), size=len(groups)).tolist()
        try:
            values.append(quantity([place for group in chosen for place in groups[group]]))
        except EvaluationError:
            continue
    if len(values) <= LEAST_SHARE * resampling.draws:
        return None
    tail = 50 * (1 - resampling.confidence)
    low, high = np.percentile(values, [tail, 100 - tail])
    return Interval(float(low), float(high), resampling.confidence, len(values))


Axis = Literal["flops", "tokens", "parameters"]
AXES: tuple[Axis, ...] = ("flops", "tokens", "parameters")
WHOLE = "all"


@dataclass(frozen=True)
class Cloud:
    """Points as columns of equal length; `axes` are FLOPs, tokens, parameters; `models` says what belongs together."""

    axes: Mapping[Axis, Sequence[float]]
    losses: Sequence[float]
    models: Sequence[str]


@dataclass(frozen=True)
class Region:
    """A part of the axis of FLOPs: above the one, up to the other; None is no bound."""

    name: str
    above: float | None = None
    up_to: float | None = None

    def holds(self, flops: float) -> bool:
        """Whether a point lies in it."""
        return (self.above is None or flops > self.above) and (self.up_to is None or flops <= self.up_to)


@dataclass(frozen=True)
class Law:
    """The law of the loss against one axis within a region; `law` is None where there are too few points to fit one."""

    axis: Axis
    region: Region
    points: int
    law: PowerLaw | None
    interval: Interval | None


@dataclass(frozen=True)
class Laws:
    """`optimal` are the places of the points on the frontier; `found_break` is None with too few of them."""

    optimal: list[int]
    laws: list[Law]
    found_break: BreakPoint | None


def scaling_laws(
    cloud: Cloud, bins: Bins, number_of_bins: int, regions: Sequence[Region], resampling: Resampling
) -> Laws:
    """Frontier, laws and break of a cloud.

    FLOPs are fitted in every region and over the whole frontier, tokens and parameters over the whole. For an interval
    the models are drawn anew, with all of their points, and their frontier is taken in the same bins.
    """
    if not cloud.losses:
        return Laws([], [], None)
    flops = cloud.axes["flops"]
    edges = EDGES[bins](flops, number_of_bins)
    optimal = frontier(flops, cloud.losses, edges)
    members: dict[str, list[int]] = {}
    for place, model in enumerate(cloud.models):
        members.setdefault(model, []).append(place)

    def fit(places: Sequence[int], axis: Axis, region: Region) -> PowerLaw:
        kept = [place for place in places if region.holds(flops[place])]
        return fit_power_law([cloud.axes[axis][place] for place in kept], [cloud.losses[place] for place in kept])

    def law_of(axis: Axis, region: Region) -> Law:
        def exponent(places: list[int]) -> float:
            best = frontier([flops[place] for place in places], [cloud.losses[place] for place in places], edges)
            return fit([places[each] for each in best], axis, region).exponent

        inside = sum(region.holds(flops[place]) for place in optimal)
        try:
            law = fit(optimal, axis, region)
        except EvaluationError:
            return Law(axis, region, inside, None, None)
        return Law(axis, region, inside, law, bootstrap_interval(list(members.values()), exponent, resampling))

    whole = Region(WHOLE)
    laws = [law_of("flops", region) for region in (*regions, whole)]
    laws += [law_of(axis, whole) for axis in AXES if axis != "flops"]
    try:
        found_break = find_break([flops[place] for place in optimal], [cloud.losses[place] for place in optimal])
    except EvaluationError:
        found_break = None
    return Laws(optimal, laws, found_break)
