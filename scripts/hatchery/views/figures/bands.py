"""Lines of means over pretraining seeds, each with a band of how far the seeds are apart."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes

from hatchery.analysis.aggregates import mean_and_deviation
from hatchery.rendering.style import ModelStyle

Point = tuple[float, float, float]
"""Place on the axis, mean over the seeds, and their spread to either side (0 with one seed)."""


def point_of(
    place: float,
    values: Sequence[float],
    of: Callable[[Sequence[float]], tuple[float | None, float | None]] = mean_and_deviation,
) -> Point:
    """The point of at least one value; `of` gives mean and spread, by default the sample standard deviation."""
    mean, spread = of(values)
    assert mean is not None
    return place, mean, spread or 0.0


def draw_band(axes: Axes, points: Sequence[Point], look: ModelStyle, **line: Any) -> None:
    """Draw the line of some points in their order, and its band where any of them has a spread."""
    places, means = [place for place, _, _ in points], [mean for _, mean, _ in points]
    axes.plot(places, means, color=look.colour, linestyle=look.dashes, **{"linewidth": 1.4, **line})
    if any(spread for _, _, spread in points):
        low, high = ([mean + sign * spread for _, mean, spread in points] for sign in (-1, 1))
        axes.fill_between(places, low, high, color=look.colour, alpha=0.2, linewidth=0)
