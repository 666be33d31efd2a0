"""The curves of one run in one small drawing: loss, learning rate, gradient norm and, where measured, divergences.

Long runs are averaged in at most 200 equal intervals of steps, as in the learning curves of an experiment; what is
measured at few steps is drawn as it was measured.
"""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hatchery.analysis.tidy_tables import DIVERGENCES
from hatchery.rendering.drawing import abbreviated, grid_shape, is_narrow, save_drawings
from hatchery.rendering.figures import Declaration
from hatchery.rendering.style import OKABE_ITO, Style
from hatchery.views.figures.learning_curves import interval_means
from hatchery.views.run_cards.facts import RunFacts

FIGURE = Declaration(
    title="Curves",
    caption="Against optimiser steps: training loss (line, averaged in at most 200 equal intervals) and development "
    "loss (dots) in nats per labelled token; the learning rate; the norm of the gradient before clipping, averaged "
    "like the loss.",
    also={"divergences": "Divergences of the model's output are in nats, at the steps where they were measured."},
)

Line = tuple[str, list[tuple[float, float]], bool]


def has_curves(run: RunFacts) -> bool:
    """Whether anything was measured while the model was trained."""
    return any(run.series(name) for name in ("loss", "development_loss", *DIVERGENCES))


def caption_of(run: RunFacts) -> str:
    """What the drawing shows."""
    return FIGURE.caption_with(*["divergences"] * bool(measured_divergences(run)))


def measured_divergences(run: RunFacts) -> list[str]:
    """The divergences that the run has, in the order in which they are always told."""
    return [name for name in DIVERGENCES if run.series(name)]


def plot_run_curves(run: RunFacts, style: Style, output: Path) -> None:
    """Draw the curves of a run into `output` (SVG); the same run gives the same bytes."""
    panels = _panels(run)
    save_drawings(lambda style: _figure(panels, style), style, output, f"{FIGURE.title} of {run.name}")


def _figure(panels: Sequence[tuple[str, str, list[Line]]], style: Style) -> Figure:
    rows, columns = grid_shape(len(panels), 1 if is_narrow(style) else 2 if len(panels) != 3 else 3)
    panel = style.width_inches / columns
    figure = Figure(figsize=(style.width_inches, rows * panel * (0.6 if columns < 3 else 0.8)), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, (title, unit, lines) in zip(grid.flat, panels, strict=False):
        _draw(axes, title, unit, lines, style)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    return figure


def _panels(run: RunFacts) -> list[tuple[str, str, list[Line]]]:
    loss: list[Line] = [("training", _averaged(run.series("loss")), False)]
    loss.append(("development", _plain(run.series("development_loss")), True))
    panels = [
        ("Loss", "nats per labelled token", loss),
        ("Learning rate", "rate", [("", _plain(run.series("learning_rate")), False)]),
        ("Gradient norm", "norm before clipping", [("", _averaged(run.series("gradient_norm")), False)]),
    ]
    named = measured_divergences(run)
    if named:
        lines: list[Line] = [(DIVERGENCES[name], _plain(run.series(name)), True) for name in named]
        panels.append(("Divergences", "nats", lines))
    kept = [(title, unit, [line for line in lines if line[1]]) for title, unit, lines in panels]
    return [panel for panel in kept if panel[2]]


def _averaged(points: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    return interval_means([(step, step, value) for step, value in points])


def _plain(points: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    return [(float(step), value) for step, value in points]


def _draw(axes: Axes, title: str, unit: str, lines: Sequence[Line], style: Style) -> None:
    for index, (label, points, marked) in enumerate(lines):
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=OKABE_ITO[index],
            linewidth=1.2,
            linestyle=("-", "--", ":", "-.", (0, (5, 1)))[index % 5],
            marker="o" if marked else None,
            markersize=style.font_size * 0.3,
            label=label or None,
        )
    axes.set_title(title, loc="left")
    axes.set_ylabel(unit)
    axes.set_xlabel("optimiser steps")
    axes.grid(visible=True)
    axes.xaxis.set_major_formatter(FuncFormatter(abbreviated))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if len(lines) > 1:
        axes.legend()
