"""Learning curves: training and development loss of every model against the tokens it has seen.

The raw training loss of a long run is noise by the thousand, so steps are gathered in at most 200 equal intervals and
their mean is drawn; development losses are drawn as they were measured. Every pretraining seed is a line of its own.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hatchery.analysis.figures.registry import Tables
from hatchery.analysis.pretraining_outputs import CurvePoint
from hatchery.analysis.read_tables import read_curves
from hatchery.analysis.settings import (
    FigureSettings,
    SeededRun,
    models_in_order,
    models_with_counts,
)
from hatchery.rendering.drawing import MUTED, abbreviated, is_narrow, legend_below, legend_columns, model_styles
from hatchery.rendering.figures import Declaration

FIGURE = Declaration(
    title="Learning curves",
    needs=("curves",),
    by_set=True,
    version=3,
    caption="Loss per predicted token against the tokens seen: training loss, and development loss on the "
    "same sequences each time.",
    explanation="""
One line per pretrained model; the legend gives the seeds of each. The left panel shows the training loss in nats per
predicted token (masked models predict hidden tokens, causal ones the next token, translations the tokens of the
target), averaged in at most 200 equal intervals of optimiser steps. Losses of different objectives are not comparable.
The right panel shows the loss on the development split at each evaluation. The lower axes count tokens since the
start of training. The upper axes count optimiser steps; they are left out if the models see different numbers of
tokens per step. Untrained models have no line.

Source: ``curves.parquet``.
""",
)

INTERVALS = 200
# Batches of real text differ a little in tokens; beyond this fraction a second axis of steps would mislead.
STEP_TOLERANCE = 0.02


@dataclass(frozen=True)
class Curve:
    """One run: `training` and `development` are (tokens, loss in nats per predicted token) in order of steps."""

    run: SeededRun
    training: list[tuple[float, float]]
    development: list[tuple[float, float]]


def draw(settings: FigureSettings, tables: Tables) -> Figure:
    """The figure. Raises ManifestError for an altered table."""
    points = read_curves(tables["curves"], settings.runs)
    curves = [curve_of(run, points[run.name]) for run in settings.runs]
    return draw_learning_curves(settings, curves, tokens_per_step(list(points.values())))


def curve_of(run: SeededRun, points: Sequence[CurvePoint]) -> Curve:
    """The two lines of one run, the training loss averaged in intervals of steps."""
    training = [(point.step, point.tokens, point.loss) for point in points if point.loss is not None]
    development = [(float(point.tokens), point.development_loss) for point in points]
    return Curve(run, interval_means(training), [(x, y) for x, y in development if y is not None])


def interval_means(rows: Sequence[tuple[int, int, float]], intervals: int = INTERVALS) -> list[tuple[float, float]]:
    """Mean tokens and mean loss of `rows` (step, tokens, loss) in at most `intervals` equal intervals of steps."""
    if not rows:
        return []
    width = max(1, math.ceil((rows[-1][0] + 1) / intervals))
    groups: dict[int, list[tuple[int, int, float]]] = {}
    for row in rows:
        groups.setdefault(row[0] // width, []).append(row)
    return [
        (sum(tokens for _, tokens, _ in group) / len(group), math.fsum(loss for _, _, loss in group) / len(group))
        for group in groups.values()
    ]


def tokens_per_step(runs: Sequence[Sequence[CurvePoint]]) -> float | None:
    """Tokens per optimiser step when one number describes all points of all runs, otherwise None.

    A point fits when its tokens differ from the straight line by at most 2 % of the most tokens that any run saw.
    """
    points = [point for run in runs for point in run]
    last = max(points, key=lambda point: point.step, default=None)
    if last is None or last.step <= 0 or last.tokens <= 0:
        return None
    slope = last.tokens / last.step
    tolerance = STEP_TOLERANCE * max(point.tokens for point in points)
    return slope if all(abs(point.tokens - slope * point.step) <= tolerance for point in points) else None


def draw_learning_curves(settings: FigureSettings, curves: Sequence[Curve], step_tokens: float | None) -> Figure:
    """The figure: training loss on the left (or above), development loss on the right (below), one legend."""
    untrained = {curve.run.model for curve in curves if not curve.training and not curve.development}
    labels, group = _groups(settings, untrained)
    models = list(labels)
    styles = model_styles(models, settings.style)
    width, size = settings.style.width_inches, settings.style.font_size
    legend_rows = -(-len(models) // legend_columns(list(labels.values()), settings.style))
    stacked = is_narrow(settings.style)
    height = width * (1.2 if stacked else 0.36) + (9 + 9 * stacked + 1.6 * legend_rows) * size / 72
    figure = Figure(figsize=(width, height), layout="constrained")
    rows, columns = (2, 1) if stacked else (1, 2)
    left, right = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for curve in curves:
        look = styles[group[curve.run.model]]
        line = {"color": look.colour, "linestyle": look.dashes, "linewidth": 0.7 if settings.sets else 1.4}
        left.plot(*_columns(curve.training), **line)
        right.plot(*_columns(curve.development), **line, **({} if settings.sets else _dots(size)))
    left.set_title("Training", loc="left")
    right.set_title("Development", loc="left")
    for axes in (left, right):
        _finish_axes(axes, step_tokens)
        axes.set_ylabel("loss (nats per predicted token)")
        axes.tick_params(labelbottom=True)
    if not stacked:
        right.set_ylabel("")
        right.tick_params(labelleft=False)
    handles = []
    for model, label in labels.items():
        look = styles[model]
        text = f"{label}, not trained" if model in untrained else label
        handles.append(Line2D([], [], color=look.colour, linestyle=look.dashes, linewidth=1.6, label=text))
    legend_below(figure, handles, settings.style)
    return figure


def _groups(settings: FigureSettings, untrained: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What is told apart, with its name in the legend, and what of it each model is: itself, or the set of a grid."""
    if not settings.sets:
        return models_with_counts(settings.runs), {model: model for model in models_in_order(settings.runs)}
    trained = Counter(name for model, name in settings.sets.items() if model not in untrained)
    named = dict.fromkeys(settings.sets[model] for model in models_in_order(settings.runs))
    return {
        name: f"{name.replace('_', ' ')} ({trained[name]} model{'s' * (trained[name] != 1)})" for name in named
    }, settings.sets


def _dots(size: float) -> dict[str, Any]:
    return {"marker": "o", "markersize": size * 0.3}


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _finish_axes(axes: Axes, step_tokens: float | None) -> None:
    axes.grid(visible=True)
    axes.set_xlabel("tokens seen")
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if not axes.has_data() or not any(len(line.get_xdata()) for line in axes.lines):  # type: ignore[arg-type]
        axes.text(0.5, 0.5, "no measurements", transform=axes.transAxes, ha="center", color=MUTED)
    if step_tokens is not None:
        functions = (lambda tokens: np.asarray(tokens) / step_tokens, lambda steps: np.asarray(steps) * step_tokens)
        steps = axes.secondary_xaxis("top", functions=functions)
        steps.set_xlabel("optimiser steps")
        steps.xaxis.set_major_formatter(FuncFormatter(abbreviated))
        steps.xaxis.set_major_locator(MaxNLocator(5))
        steps.spines["top"].set_visible(True)
