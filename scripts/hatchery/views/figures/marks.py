"""The marks of figures: single runs, means of models, and published values.

A run is a dot, filled where it is sound, hollow where it failed, in a lane of its own without a value. Dots that would
hide each other are moved apart across the axis of values, the same way every time. Of published values only those that
are comparable with ours are marked, as open diamonds; what else is printed stands in the summary with the reason.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hatchery.analysis.published_values import Key, PublishedValue, chosen_values
from hatchery.analysis.settings import FigureSettings
from hatchery.rendering.drawing import GRID, MUTED, Keywords, outline
from hatchery.rendering.style import ModelStyle, Style
from hatchery.views.figures.registry import FAILED_LABEL, PUBLISHED, PUBLISHED_LABEL, Tables

NO_VALUE = "no\nvalue"
BIAS_LANE = -1.27
BIAS_TICKS = {-1.0: "\N{MINUS SIGN}1", -0.5: "\N{MINUS SIGN}0.5", 0.0: "0", 0.5: "+0.5", 1.0: "+1"}
Runs = Sequence[tuple[float | None, str]]
"""Value of each run, None where it gave none, and in which way it failed, if it did."""
BIAS_LABEL = "linguistic bias score (\N{MINUS SIGN}1 surface feature, +1 linguistic feature)"


def swarm_offsets(values: Sequence[float], diameter: float, step: float, limit: float) -> list[float]:
    """For every value how far to move its dot off the line: neighbours within `diameter` alternate about it.

    `step` is the distance of two dots, smaller where more than fit between -`limit` and `limit`.
    """
    bins = [round(value / diameter) for value in values]
    sizes = Counter(bins)
    used: Counter[int] = Counter()
    offsets = []
    for place in bins:
        # 0, 1, -1, 2, -2, ...
        rank = (used[place] + 1) // 2 * (1 if used[place] % 2 else -1)
        used[place] += 1
        largest = sizes[place] // 2
        offsets.append(rank * min(step, limit / largest) if largest else 0.0)
    return offsets


def runs_of(rows: pl.DataFrame) -> Runs:
    """What is drawn of rows of measurements."""
    return rows.select("value", "failed").rows()


def has_no_value(runs: Runs) -> bool:
    """Whether any of the runs gave no number at all."""
    return any(value is None for value, _ in runs)


def has_failed(runs: Runs) -> bool:
    """Whether any of the runs failed, or gave no number."""
    return any(value is None or failed for value, failed in runs)


@dataclass(frozen=True)
class DotScale:
    """How large the dots of runs are: `points`, in scores along the axis, and in rows across it.

    Dots reach at most `limit` rows away from their line.
    """

    points: float
    scores: float
    rows: float
    limit: float


def draw_bias_runs(axes: Axes, runs: Runs, place: float, look: ModelStyle, scale: DotScale) -> None:
    """Draw scores in percent as fractions along x and near `place` on y; those without a value stand in their lane."""
    values = [BIAS_LANE if value is None else value / 100 for value, _ in runs]
    offsets = swarm_offsets(values, scale.scores, scale.rows, scale.limit)
    for failed in (False, True):
        chosen = [index for index, run in enumerate(runs) if has_failed([run]) == failed]
        if chosen:
            axes.plot(
                [values[index] for index in chosen],
                [place + offsets[index] for index in chosen],
                **run_mark(look, scale.points, failed),
            )


def run_mark(look: ModelStyle, size: float, failed: bool) -> Keywords:
    """Keywords of `Axes.plot` for the dots of a model."""
    return {
        "marker": look.marker,
        "markersize": size,
        "markerfacecolor": "white" if failed else look.colour,
        "markeredgecolor": outline(look.colour),
        "markeredgewidth": 0.8 if failed else 0.3,
        "alpha": 1.0 if failed else 0.75,
        "linestyle": "none",
        "zorder": 5 if failed else 4,
    }


def failed_handle(style: Style) -> Line2D:
    """The entry of a legend."""
    return Line2D([], [], **run_mark(ModelStyle(MUTED, "", "-"), style.font_size * 0.5, True), label=FAILED_LABEL)


def mean_mark(style: Style, length: float = 1.0) -> Keywords:
    """Keywords of `Axes.plot` for the mean of our runs: a bar across the axis of values, `length` times the font."""
    return {
        "marker": "|",
        "markersize": style.font_size * length,
        "markeredgecolor": "black",
        "markeredgewidth": 1.6,
        "linestyle": "none",
        "zorder": 7,
    }


def bias_axis(axes: Axes, lane: bool) -> None:
    """An axis of Linguistic Bias Scores from -1 to 1, with a lane on the left for runs without a value if asked for."""
    names = list(BIAS_TICKS.values())
    axes.set_xlim(-1.42 if lane else -1.09, 1.09)
    axes.set_xticks([BIAS_LANE, *BIAS_TICKS] if lane else list(BIAS_TICKS), [NO_VALUE, *names] if lane else names)
    if lane:
        axes.axvline(-1.12, color=MUTED, linewidth=0.8, linestyle=":")
    axes.axvline(0.0, color=MUTED, linewidth=0.9, zorder=1)
    for tick in (-1.0, -0.5, 0.5, 1.0):
        axes.axvline(tick, color=GRID, linewidth=0.6, zorder=0)
    axes.tick_params(axis="y", length=0)


Published = Mapping[Key, PublishedValue]
"""Published values by (our model, suite, task, metric)."""


def comparable_values(settings: FigureSettings, tables: Tables) -> dict[Key, PublishedValue]:
    """The published values that the models of the experiment are set beside; none without a paper.

    Raises ConfigError when settings and tables do not belong together, EvaluationError for an invalid table.
    """
    papers = [path for name, path in tables.items() if name.partition("/")[0] == PUBLISHED]
    values = chosen_values(settings.published, papers, "--tables: published")
    return {key: value for key, value in values.items() if value.comparable}


def published_mark(style: Style, face: str = "none") -> Keywords:
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


@dataclass(frozen=True)
class MeanRow:
    """A row of a panel of means: its name, its look, and mean and spread to either side, None where there is none."""

    name: str
    look: ModelStyle
    mean: tuple[float, float] | None


def draw_means(axes: Axes, title: str, rows: Sequence[MeanRow], size: float, least: int = 1) -> None:
    """A panel of one number per model: rows from top to bottom, a dot with its spread; room for `least` rows."""
    for place, row in enumerate(reversed(rows)):
        if row.mean is not None:
            mean, spread = row.mean
            mark: Keywords = {
                "fmt": row.look.marker,
                "color": row.look.colour,
                "markersize": size * 0.5,
                "capsize": 2,
            }
            axes.errorbar([mean], [place], xerr=[spread], **mark)
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.set_ylim(-0.6, max(len(rows), least) - 0.4)
    axes.set_title(title, loc="left")
    axes.grid(visible=True, axis="x")
