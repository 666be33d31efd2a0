"""The main scores of an experiment against the values of its sweeps, or against the model sizes of its grid.

Each score has a panel for each group of runs with the same swept keys. The x axis is the numeric key with the most
values, and the values of the other keys distinguish the lines. For a grid, the x axis is the number of parameters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from hatchery.analysis.aggregates import aggregate_runs
from hatchery.analysis.comparability import distinguishing_labels
from hatchery.analysis.read_tables import read_measurements, read_runs
from hatchery.analysis.settings import FigureSettings
from hatchery.analysis.task_averages import AVERAGE_METRIC, task_averages
from hatchery.evaluation.minimal_pairs.measurements import (
    ACCURACY,
    AT_BEST_TEMPERATURE,
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
)
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.drawing import (
    abbreviated,
    grid_shape,
    is_narrow,
    legend_below,
    legend_rows,
    no_measurements,
    wrapped,
)
from hatchery.rendering.escaping import readable
from hatchery.rendering.style import ModelStyle, Style, model_styles
from hatchery.translation.metrics import BLEU
from hatchery.views.figures.marks import (
    Point,
    PublishedMarks,
    comparable_values,
    draw_band,
    point_of,
    published_handle,
    published_mark,
    up_to,
)
from hatchery.views.figures.needs import SweptFigure, SweptValues
from hatchery.views.figures.registry import Declaration, Tables

FIGURE = Declaration(
    title="Swept values",
    needs=("runs", "sweeps"),
    all_models=True,
    version=1,
    caption="The main scores of the experiment against the swept value, or against the number of parameters of the "
    "models: means over pretraining seeds, with their sample standard deviation as a band or a bar.",
    published=True,
    explanation="""
A panel shows perplexity, or an average in percent or points. The x axis is the key of the sweep with the most values;
each line is a swept run, with one combination of values of the other keys. Values that are words have no order, so no
line joins their dots. Each model of a grid is a dot at its number of parameters. The score of a seed is the mean over
its fine-tuning runs. An open diamond is the published value of a model. Only models of sweeps and grids are drawn. An x
axis is logarithmic if its largest value is at least four times its smallest value. For an axis of perplexities, this
factor is twenty.

Scores that are not comparable, such as perplexities of models that predict different tokens, have separate panels; the
difference is named below the title.

Source: `measurements.parquet` and `runs.parquet`.
""",
)

PREDICTIONS = ("pretraining", "perplexity")
PARAMETERS, PERCENT = "parameters", "(%)"
APART = "\nmodels of "
"""Separator in the title of a panel, between a score and the property that distinguishes the models of this panel."""
LOGARITHMIC_FROM, LOGARITHMIC_PERPLEXITY_FROM = 4, 20
# Up to this number of values, the axis has a tick at each value.
MOST_TICKS = 8
# Horizontal distance between two dots at the same tick of a categorical axis, in units of the distance between ticks.
WORD_GAP = 0.12

Values = dict[str, dict[str, float]]
"""Values of the main scores, by title of the score and then by name of the run (or model, if published)."""


@dataclass(frozen=True)
class SweptPanel:
    """A panel: `axis` is the swept configuration key on the x axis, or PARAMETERS for a grid.

    `lines` maps the label of each line to the line's points. The label contains the values of the swept keys that are
    not on the x axis. `ticks` are the values on the x axis if these values are not numbers. `published` are points (x,
    value) that a paper prints.
    """

    title: str
    axis: str
    lines: Mapping[str, Sequence[Point]]
    ticks: Sequence[str] = ()
    published: Sequence[tuple[float, float]] = ()

    @property
    def has_lines(self) -> bool:
        """True if the x axis is a numeric key of a sweep, so that lines connect the points."""
        return self.axis != PARAMETERS and not self.ticks

    @property
    def apart(self) -> bool:
        """True if not all models' scores are comparable. Then the panel shows only one group of comparable models."""
        return APART in self.title


def draw(settings: SweptFigure, tables: Tables) -> Figure:
    """Return the figure. Raises ManifestError for an altered table."""
    runs = [run for run in settings.runs if run.model in settings.swept]
    parameters = {row["run"]: float(row["parameters"]) for row in read_runs(tables["runs"], settings.runs)}
    values = main_values(read_measurements(tables["measurements"], settings.runs), settings.objectives)
    marks = published_values(comparable_values(settings, tables))
    return draw_swept(settings, with_rivals(swept_panels(runs, settings.swept, values, parameters, marks)))


def with_rivals(panels: Sequence["SweptPanel"]) -> list["SweptPanel"]:
    """Return the panels in which at least two models can be compared: panels are removed if they show only one model
    because its score is not comparable with the other models' scores.

    If no panel remains, return one panel without lines, whose title lists all scores.
    """
    kept = [panel for panel in panels if not panel.apart or sum(map(len, panel.lines.values())) > 1]
    names = list(dict.fromkeys(panel.title.partition("\n")[0] for panel in panels))
    return kept if kept or not panels else [SweptPanel(f"{', '.join(names)}: no two models are comparable", "", {})]


def published_values(known: PublishedMarks) -> Values:
    """Return the averages that papers publish for suites of minimal pairs: by the title of our corresponding score,
    then by model.
    """
    found: Values = {}
    for (model, suite, task, metric), value in known.items():
        if title := _title("minimal_pairs", suite, task, metric):
            found.setdefault(title, {})[model] = value.mean
    return found


def main_values(measured: pl.DataFrame, objectives: Mapping[str, str]) -> Values:
    """Return the main scores by title and run: perplexities, the average of each suite of minimal pairs (also at the
    best temperature), the averages over the tasks of each fine-tuning suite, and the BLEU of each test set.

    Perplexities of models with different `objectives` have different titles, because these models predict different
    tokens. Scores of one kind that are not comparable (different values in the column `basis` of `measured`) also have
    different titles.
    """
    found: Values = {}
    bases: dict[str, dict[str, str]] = {}
    tuned = pl.col("kind") == "finetuning"
    for each in measured.filter(~tuned, pl.col("value").is_not_null()).iter_rows(named=True):
        if title := _title(**{column: each[column] for column in ("kind", "suite", "task", "metric")}):
            task = objectives.get(each["model"]) if each["kind"] in PREDICTIONS else None
            if task:
                # In one line, the title would be wider than half of the figure, so split it into two lines.
                title = f"{title} of {task} models".replace(" while", "\nwhile")
            found.setdefault(title, {})[each["run"]] = each["value"]
            bases.setdefault(title, {})[each["run"]] = each["basis"] or ""
    found = {name: by_run for title, by_run in found.items() for name, by_run in _apart(title, by_run, bases[title])}
    by_run = measured.filter(tuned).partition_by("suite", "run", as_dict=True, maintain_order=True)
    for (suite, run), rows in by_run.items():
        for task, mean in _averages(suite, rows):
            found.setdefault(f"{readable(suite)}: {readable(task)} {PERCENT}", {})[run] = mean
    return found


def _apart(title: str, by_run: dict[str, float], bases: Mapping[str, str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield (title, values by run) for each group of comparable values. `bases` states the conditions of each run's
    value. If conditions differ, their differences are appended to `title`.
    """
    for basis, label in distinguishing_labels(bases.values()).items():
        numbers = {run: value for run, value in by_run.items() if bases[run] == basis}
        yield f"{title}{APART}{label}" if label else title, numbers


def _title(kind: str, suite: str, task: str, metric: str) -> str:
    if kind in PREDICTIONS and metric == "perplexity":
        while_training = " while training" if kind == "pretraining" else ""
        return f"{readable(task)} perplexity{while_training}"
    if kind == "minimal_pairs" and (task, metric) == (PHENOMENON_AVERAGE, ACCURACY):
        return f"{readable(suite)}: accuracy {PERCENT}"
    if kind == "minimal_pairs" and (task, metric) == (PARADIGM_AVERAGE, AT_BEST_TEMPERATURE):
        return f"{readable(suite)}: accuracy at the best temperature {PERCENT}"
    if kind == "translation" and metric == BLEU:
        return f"{readable(task)} BLEU"
    return ""


def _averages(suite: str, rows: pl.DataFrame) -> Sequence[tuple[str, float]]:
    """Return (name, value) for each average over the tasks of a suite. `rows` are the measurements of one run.

    If the suite has no average and has a single task, return the name of the task and the mean of its main metric.
    """
    averages = [
        (average.task, average.aggregate.mean)
        for average in task_averages(suite, rows)
        if average.metric == AVERAGE_METRIC and average.aggregate.mean is not None
    ]
    main = rows.filter("primary", "main")
    if averages or main["task"].n_unique() != 1:
        return averages
    mean = aggregate_runs(main).mean
    return [] if mean is None else [(main["task"][0], mean)]


def swept_panels(
    runs: Sequence[SeededRun],
    swept: Mapping[str, SweptValues],
    values: Values,
    parameters: Mapping[str, float],
    published: Values | None = None,
) -> list[SweptPanel]:
    """Return a panel for each score and each group of runs with the same swept keys; a panel without points is omitted.

    `parameters` is the number of parameters by run.
    """
    groups: dict[tuple[bool, tuple[str, ...]], list[SeededRun]] = {}
    for run in runs:
        groups.setdefault((swept[run.model].sized, tuple(swept[run.model].values)), []).append(run)
    panels = []
    for (sized, keys), group in groups.items():
        axis = PARAMETERS if sized else _axis(keys, [swept[run.model] for run in group])
        chosen = [] if sized else list(dict.fromkeys(swept[run.model].values[axis] for run in group))
        ticks = [str(word) for word in chosen] if any(isinstance(word, str) for word in chosen) else []
        for title, by_run in values.items():
            lines: dict[str, dict[str, tuple[float, list[float]]]] = {}
            marks: dict[float, float] = {}
            for run in group:
                if run.name in by_run:
                    own = swept[run.model]
                    rest = [
                        f"{key} {value}" if isinstance(value, str) else f"{key} {value:g}"
                        for key, value in own.values.items()
                        if key != axis
                    ]
                    place = parameters[run.name] if sized else own.values[axis]
                    x = float(ticks.index(str(place))) if ticks else float(place)
                    points = lines.setdefault(", ".join([readable(own.line) if sized else own.line, *rest]), {})
                    points.setdefault(run.model, (x, []))[1].append(by_run[run.name])
                    if run.model in (printed := (published or {}).get(title, {})):
                        marks[x] = printed[run.model]
            made = {name: sorted(point_of(*each) for each in points.values()) for name, points in lines.items()}
            if made:
                panels.append(SweptPanel(title, axis, made, ticks, sorted(marks.items())))
    return panels


def _axis(keys: Sequence[str], models: Sequence[SweptValues]) -> str:
    """Return the key for the x axis: among numeric keys, or all keys if no key is numeric, the key with the largest
    number of different values.

    If several keys have this number, return the first in the configuration file.
    """

    def rank(key: str) -> tuple[bool, int]:
        values = {each.values[key] for each in models}
        return not any(isinstance(value, str) for value in values), len(values)

    return max(keys, key=rank)


def draw_swept(settings: FigureSettings, panels: Sequence[SweptPanel]) -> Figure:
    """Return the figure: panels side by side or, on phones, from top to bottom, with one legend."""
    style, size = settings.style, settings.style.font_size
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    looks = model_styles(names, style)
    joined = {name for panel in panels if panel.has_lines for name in panel.lines}
    handles = [
        Line2D(
            *([], []),
            color=look.colour,
            linestyle=look.dashes if name in joined else "none",
            marker=look.marker,
            markersize=size * 0.5,
            label=name,
        )
        for name, look in looks.items()
    ]
    if any(panel.published for panel in panels):
        handles.append(published_handle(style))
    rows, columns = grid_shape(max(1, len(panels)), 1 if is_narrow(style) else 2)
    legend = legend_rows(handles, style) if handles else 0
    height = rows * (style.width_inches / columns * 0.6 + 3 * size / 72) + (2 + 1.6 * legend) * size / 72
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, panel in zip(grid, panels, strict=False):
        _draw_panel(axes, panel, looks, style)
    if not panels:
        no_measurements(grid[0])
    for axes in grid[max(1, len(panels)) :]:
        axes.remove()
    if handles:
        legend_below(figure, handles, style)
    return figure


def _draw_panel(axes: Axes, panel: SweptPanel, looks: Mapping[str, ModelStyle], style: Style) -> None:
    size = style.font_size
    highest = 100.0 if panel.title.partition("\n")[0].endswith(PERCENT) else None
    for index, (name, points) in enumerate(panel.lines.items()):
        if not panel.has_lines:
            places, means, spreads = ([point[part] for point in points] for part in range(3))
            above = [up_to(highest, mean, spread) for _, mean, spread in points]
            look = looks[name]
            if panel.ticks:
                # Shift dots at the same tick along x, so that no dot covers another.
                places = [place + (index - (len(panel.lines) - 1) / 2) * WORD_GAP for place in places]
            axes.errorbar(places, means, [spreads, above], fmt=look.marker, color=look.colour, ms=size * 0.5)
        else:
            draw_band(axes, points, looks[name], highest, marker=looks[name].marker, markersize=size * 0.5)
    if panel.published:
        axes.plot(*zip(*panel.published, strict=True), **published_mark(style))
    axes.grid(visible=bool(panel.lines))
    name, *rest = panel.title.split("\n")
    width = style.width_inches * 72 / (1 if is_narrow(style) else 2) * 0.8
    axes.set_title("\n".join([name, *(wrapped(part, width, size) for part in rest)]), loc="left")
    axes.set_xlabel(panel.axis)
    if not panel.lines:
        no_measurements(axes, "the tables state the reason")
        return
    ordered = sorted({place for points in panel.lines.values() for place, _, _ in points})
    every = [mean for points in panel.lines.values() for _, mean, _ in points]
    if "perplexity" in panel.title and min(every) > 0 and max(every) >= LOGARITHMIC_PERPLEXITY_FROM * min(every):
        axes.set_yscale("log")
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
        axes.set_xlim(-0.5, len(panel.ticks) - 0.5)
        return
    if ordered[0] > 0 and ordered[-1] >= LOGARITHMIC_FROM * ordered[0]:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 3), numticks=8))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    if panel.axis != PARAMETERS and len(ordered) <= MOST_TICKS:
        axes.set_xticks(ordered, [abbreviated(place) for place in ordered])
        axes.xaxis.set_minor_locator(NullLocator())
