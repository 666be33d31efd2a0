"""Published values as open diamonds in the figures of an experiment that repeats a paper.

Only values that are comparable with ours are marked; what else is printed stands in the summary with the reason.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.lines import Line2D

from hatchery.analysis.published_values import Key, PublishedValue, chosen_values
from hatchery.analysis.settings import FigureSettings
from hatchery.rendering.style import Style
from hatchery.views.figures.registry import PUBLISHED, PUBLISHED_LABEL, Tables

Published = Mapping[Key, PublishedValue]
"""Published values by (our model, suite, task, metric)."""


def comparable_values(settings: FigureSettings, tables: Tables) -> dict[Key, PublishedValue]:
    """The published values that the models of the experiment are set beside; none without a paper.

    Raises ConfigError when settings and tables do not belong together, EvaluationError for an invalid table.
    """
    papers = [path for name, path in tables.items() if name.partition("/")[0] == PUBLISHED]
    values = chosen_values(settings.published, papers, "--tables: published")
    return {key: value for key, value in values.items() if value.comparable}


def published_mark(style: Style, face: str = "none") -> dict[str, Any]:
    """Keywords of `Axes.plot` for a published value; open, so that a value of ours behind it is seen."""
    return {
        "marker": "D",
        "markersize": style.font_size * 0.52,
        "markerfacecolor": face,
        "markeredgecolor": "black",
        "markeredgewidth": 1.1,
        "linestyle": "none",
        "zorder": 8,
    }


def published_handle(style: Style) -> Line2D:
    """The entry of a legend."""
    return Line2D([], [], **published_mark(style), label=PUBLISHED_LABEL)
