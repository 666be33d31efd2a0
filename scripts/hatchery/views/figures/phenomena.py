"""Accuracy on minimal pairs by phenomenon, for all models, with the accuracy of a blind guess as a dashed line.

Bars are horizontal: the names of phenomena then need no rotation, and the figure's height grows with the number of
phenomena. With several pretraining seeds, a bar is the mean over seeds, and its whisker is the sample standard
deviation. With one seed, the whisker is the accuracy's 95 % confidence interval, due to the sampling of the items. If
the experiment names a paper, an open diamond is the published accuracy of the model.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hatchery.analysis.aggregates import Aggregate, aggregate_runs
from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import (
    FigureSettings,
    models_in_order,
    models_with_counts,
)
from hatchery.analysis.summary_rows import summarised_text
from hatchery.evaluation.evaluation import Level
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    CORRELATION,
    PAIR_AVERAGE,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
)
from hatchery.rendering.drawing import (
    MUTED,
    Keywords,
    is_narrow,
    legend_below,
    legend_rows,
    most_lines,
    no_measurements,
    not_evaluated,
    wrapped,
)
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import ModelStyle, Style
from hatchery.views.figures.marks import (
    PublishedMarks,
    comparable_values,
    published_handle,
    published_mark,
    up_to,
)
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Minimal pairs",
    needs=("minimal_pairs",),
    version=2,
    caption="Accuracy on minimal pairs by phenomenon, with the average of the phenomena below; the dashed line is "
    "chance.",
    explanation="""
A bar is the percentage of minimal pairs whose acceptable sentence has the strictly higher (pseudo-)log-likelihood. With
`edition: 2023`, ties count as wrong. With later editions, a tie of k sentences counts 1/k, unless the suite sets
`official` or `ties`. With several pretraining seeds, the bar is the mean over seeds and the whisker is their sample
standard deviation (the legend gives the number of seeds). With one seed, the whisker is the 95 % confidence interval of
the accuracy, due to the sampling of the items, as in `summary.md`. The bars of a phenomenon are in the order of the
legend.

The average below the phenomena weights all phenomena of a suite equally. For the suites of BabyLM's multilingual track,
it weights all pairs equally. If the paper prints a paradigm average, which weights all paradigms equally, this average
is also drawn.

Chance is the accuracy of a guess that does not see the items: the mean over items of 1 / (number of candidates), which
is 50 % for pairs. If chance differs between phenomena, each phenomenon has its own line. For a suite without correct
answers, the figure shows the rank correlation with human preferences, for which chance is 0.

Source: `measurements.parquet`.
""",
    published=True,
)

AVERAGES = (PHENOMENON_AVERAGE, PARADIGM_AVERAGE, PAIR_AVERAGE)
LEVELS: tuple[Level, ...] = ("phenomenon", "average")
AXES = {ACCURACY: "accuracy (%)", CORRELATION: "Spearman's correlation with human preferences (%)"}
"""Axis labels by metric; the figure shows the first of these metrics that a suite has."""
# Gap between the phenomena and their averages, in rows.
AVERAGE_GAP = 0.6


@dataclass(frozen=True)
class SuiteBars:
    """One panel: values of a metric in percent by (phenomenon, model). Phenomena are ordered from top to bottom, and
    averages are last.

    `published` are values in the replicated paper by (phenomenon, model).
    """

    suite: str
    phenomena: list[str]
    bars: dict[tuple[str, str], Aggregate]
    published: dict[tuple[str, str], float] = field(default_factory=dict)
    metric: str = ACCURACY

    def chances(self) -> dict[str, list[float]]:
        """Return the scores of a blind guess by phenomenon. A phenomenon has several scores if models were scored on
        different items, and no score if the score is unknown.
        """
        found: dict[str, set[float]] = {name: set() for name in self.phenomena}
        for (name, _), bar in self.bars.items():
            if bar.blind_guess is not None and name in found:
                found[name].add(bar.blind_guess)
        return {name: sorted(guesses) for name, guesses in found.items()}

    def extent(self) -> tuple[float, float]:
        """Return the range of the axis: 0 to 100, extended below 0 if a bar or its whisker is negative."""
        lowest = min(
            (bar.mean - (bar.whisker or 0.0) for bar in self.bars.values() if bar.mean is not None), default=0.0
        )
        return (0.0 if lowest >= 0 else max(-100.0, 10.0 * math.floor(lowest / 10))), 100.0

    def places(self) -> list[float]:
        """Return the y coordinates of the phenomena: 0, 1, 2 and so on, with a gap before the averages."""
        first = next((place for place, name in enumerate(self.phenomena) if name in AVERAGES), None)
        if not first:
            return [float(place) for place in range(len(self.phenomena))]
        return [place + (AVERAGE_GAP if place >= first else 0.0) for place in range(len(self.phenomena))]


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """Return the figure, a panel per suite. Raises ManifestError for an altered table."""
    values = comparable_values(settings, tables)
    measured = read_measurements(tables["measurements"], settings.runs, "minimal_pairs", LEVELS)
    suites = measured.partition_by("suite", as_dict=True, maintain_order=True)
    return draw_phenomena(settings, [suite_bars(suite, rows, values) for (suite,), rows in suites.items()])


def suite_bars(suite: str, measured: pl.DataFrame, published: PublishedMarks | None = None) -> SuiteBars:
    """Return a panel with the mean score and its deviation over seeds for each phenomenon, sorted by name, followed by
    averages.

    The first average is the mean over all pairs. If `measured` lacks this average, it is the mean over phenomena, which
    is shown only if there are several phenomena. The second average, the mean over paradigms, is shown only if
    `published` contains it for one of the models.
    """
    metrics = set(measured.filter(pl.col("level").is_in(LEVELS))["metric"])
    metric = next((known for known in AXES if known in metrics), ACCURACY)
    shown = measured.filter(pl.col("level").is_in(LEVELS), pl.col("metric") == metric)
    groups = shown.partition_by("task", "model", as_dict=True, maintain_order=True)
    values = {
        (task, model): published[model, suite, task, metric].mean
        for task, model in groups
        if published and (model, suite, task, metric) in published
    }
    tasks = {task for task, _ in groups}
    phenomena = sorted(tasks.difference(AVERAGES))
    if PAIR_AVERAGE in tasks:
        phenomena.append(PAIR_AVERAGE)
    elif len(phenomena) > 1 and PHENOMENON_AVERAGE in tasks:
        phenomena.append(PHENOMENON_AVERAGE)
    if any(task == PARADIGM_AVERAGE for task, _ in values):
        phenomena.append(PARADIGM_AVERAGE)
    bars = {key: aggregate_runs(runs) for key, runs in groups.items()}
    return SuiteBars(suite, phenomena, bars, values, metric)


def draw_phenomena(settings: FigureSettings, panels: Sequence[SuiteBars]) -> Figure:
    """Return the figure: a panel of grouped bars per suite, from top to bottom, and one legend below."""
    models = models_in_order(settings.runs)
    styles = settings.looks(models)
    style = settings.style
    panels = [panel for panel in panels if panel.phenomena]
    if not panels:
        figure = Figure(figsize=(style.width_inches, 2.0), layout="constrained")
        no_measurements(figure.subplots())
        return figure
    bar_inches = max(0.13, style.font_size * 0.95 / 72) if len(models) > 1 else style.font_size * 1.3 / 72
    lines = most_lines([_name(name, style) for panel in panels for name in panel.phenomena])
    group = max((len(models) + 0.8) * bar_inches, (1.35 * lines + 0.3) * style.font_size / 72)
    heights = [(panel.places()[-1] + 1) * group for panel in panels]
    line = style.font_size * 1.5 / 72
    handles: list[Artist] = [
        Patch(facecolor=styles[model].colour, hatch=styles[model].hatch, edgecolor="white", label=label)
        for model, label in models_with_counts(settings.runs).items()
    ]
    if any(panel.published for panel in panels):
        handles.append(published_handle(style))
    height = sum(heights) + len(panels) * 3.2 * line + (1 + legend_rows(handles, style)) * line
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, panel in zip(grid.flat, panels, strict=True):
        _draw_panel(axes, panel, models, styles, style)
    for axes, panel, below in zip(grid.flat, panels, [*panels[1:], None], strict=True):
        if below is None or below.metric != panel.metric:
            axes.set_xlabel(AXES[panel.metric])
    legend_below(figure, handles, style)
    return figure


def _name(phenomenon: str, style: Style) -> str:
    return wrapped(readable(phenomenon), style.width_inches * 72 * 0.3, style.font_size * 0.9)


def _draw_panel(
    axes: Axes, panel: SuiteBars, models: Sequence[str], styles: Mapping[str, ModelStyle], style: Style
) -> None:
    font_size = style.font_size
    names = [_name(name, style) for name in panel.phenomena]
    low, high = panel.extent()
    # Leave space on the right of 100 for the numbers of the longest bars.
    high += (high - low) * (0.08 if not is_narrow(style) else 0.18)
    # Width of the number next to a bar, in units of the x axis (percent). The axes fill about 0.65 of the figure's
    # width.
    number_width = (3 + 4 * 0.64 * 0.72 * font_size) * (high - low) / (style.width_inches * 72 * 0.65)
    measured = [model for model in models if any((name, model) in panel.bars for name in panel.phenomena)]
    thickness = 1 / (len(measured) + 0.8)
    places, chances = panel.places(), panel.chances()
    for group, phenomenon in zip(places, panel.phenomena, strict=True):
        for index, model in enumerate(measured):
            bar = panel.bars.get((phenomenon, model))
            if bar is None or bar.mean is None:
                continue
            place = group + (index - (len(measured) - 1) / 2) * thickness
            look = styles[model]
            axes.barh(
                place, bar.mean, height=thickness * 0.94, color=look.colour, hatch=look.hatch, edgecolor="white", lw=0.3
            )
            end = max(0.0, min(bar.mean + (bar.whisker or 0.0), 100.0))
            if bar.whisker is not None:
                sides = [[bar.whisker], [up_to(100.0, bar.mean, bar.whisker)]]
                axes.errorbar(bar.mean, place, xerr=sides, color="black", lw=0.8, capsize=font_size * 0.15)
            printed = panel.published.get((phenomenon, model))
            if printed is not None:
                axes.plot([printed], [place], **published_mark(style, face="white"))
            # Write the number at the end of its bar. If the chance line or the diamond would cover the number there,
            # write the number after the line or diamond.
            if any(end <= chance <= end + number_width for chance in chances[phenomenon]):
                end = max(chances[phenomenon])
            covered = printed is not None and end - 1.0 <= printed <= end + number_width
            axes.annotate(
                summarised_text(bar.mean),
                (max(end, printed) if covered and printed is not None else end, place),
                xytext=(3 + (font_size * 0.4 if covered else 0), 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=font_size * 0.72,
                # Interrupt the chance line where a number is written.
                zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            )
    _draw_chance(axes, panel, font_size)
    averages = [place for place, name in zip(places, panel.phenomena, strict=True) if name in AVERAGES]
    if averages:
        axes.axhline(averages[0] - 0.5 - AVERAGE_GAP / 2, color=MUTED, linewidth=0.8)
    axes.set_yticks(places, names)
    for label, name in zip(axes.get_yticklabels(), panel.phenomena, strict=True):
        label.set_fontweight("bold" if name in AVERAGES else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(places[-1] + 0.5, -0.5)
    axes.set_xlim(low, high)
    step = 20 if is_narrow(style) or low < -20 else 10
    # The first tick is a multiple of `step`, so that 0 and 100 have ticks.
    axes.set_xticks(range(math.ceil(low / step) * step, 101, step))
    axes.tick_params(axis="x", labelbottom=True)
    axes.grid(visible=True, axis="x")
    axes.set_title(readable(panel.suite), loc="left")
    not_evaluated(axes, [model for model in models if model not in measured], style)


def _draw_chance(axes: Axes, panel: SuiteBars, font_size: float) -> None:
    """Draw one chance line if all phenomena have the same chance; otherwise, draw a line across the bars of each
    phenomenon.
    """
    chances = list(panel.chances().values())
    line: Keywords = {"color": "black", "linestyle": "--", "linewidth": 0.9, "zorder": 2}
    if len(distinct := {chance for found in chances for chance in found}) == 1 and all(chances):
        axes.axvline(distinct.pop(), **line)
    else:
        for place, found in zip(panel.places(), chances, strict=True):
            for chance in found:
                axes.plot([chance, chance], [place - 0.5, place + 0.5], **line)
    if first := next(filter(None, chances), None):
        axes.text(first[0], -0.52, "chance", ha="center", va="bottom", fontsize=font_size * 0.8, color=MUTED)
