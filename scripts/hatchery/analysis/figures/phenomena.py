"""Accuracy on minimal pairs by phenomenon, for all models, with the line of chance at 50 %.

Bars lie on their side, so that the names of phenomena need no rotation and the figure grows downwards with their
number. With several pretraining seeds a bar is their mean and the whisker their sample standard deviation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from hatchery.analysis.aggregates import Aggregate, aggregate_runs
from hatchery.analysis.figures.drawing import (
    MUTED,
    ModelStyle,
    figure_style,
    legend_below,
    legend_columns,
    model_styles,
    models_with_counts,
    save_svg,
)
from hatchery.analysis.measurements import (
    PARADIGM_AVERAGE,
    PHENOMENON_AVERAGE,
    Measurement,
    minimal_pair_measurements,
    read_verified,
)
from hatchery.analysis.settings import (
    FigureSettings,
    cells_by_name,
    evaluations_named,
    match_evaluations,
    models_in_order,
)
from hatchery.analysis.summary_layout import readable
from hatchery.errors import ConfigError
from hatchery.typed import build, stage_body

AVERAGES = (PHENOMENON_AVERAGE, PARADIGM_AVERAGE)
CHANCE = 50.0


@dataclass(frozen=True)
class SuiteBars:
    """One panel: accuracy in percent by (phenomenon, model), phenomena from top to bottom."""

    suite: str
    phenomena: list[str]
    bars: dict[tuple[str, str], Aggregate]


def plot_phenomena(settings: Mapping[str, Any], minimal_pairs: Mapping[str, Path], output: Path) -> None:
    """Draw the accuracies behind the manifests named `CELL:SUITE` into `output` (SVG), a panel per suite.

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault.
    """
    figure_settings = build(FigureSettings, stage_body(settings))
    cells = cells_by_name(figure_settings.cells)
    suites = evaluations_named(minimal_pairs, "--minimal-pairs")
    if not suites:
        raise ConfigError("--minimal-pairs: no input is given, so there is nothing to draw")
    inputs = match_evaluations(minimal_pairs, figure_settings.cells, suites, "--minimal-pairs")
    measurements: dict[str, list[Measurement]] = {suite: [] for suite in suites}
    for (cell, suite), path in inputs.items():
        measurements[suite] += minimal_pair_measurements(cells[cell], suite, read_verified(path))
    panels = [suite_bars(suite, runs) for suite, runs in measurements.items()]
    with figure_style(figure_settings.style):
        save_svg(draw_phenomena(figure_settings, panels), output, f"Minimal pairs of {figure_settings.experiment}")


def suite_bars(suite: str, measurements: Sequence[Measurement]) -> SuiteBars:
    """Mean and deviation over seeds; phenomena by name, then the average over phenomena where there are several."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for run in measurements:
        groups.setdefault((run.task, run.cell.run), []).append(run)
    phenomena = sorted({task for task, _ in groups}.difference(AVERAGES))
    if len(phenomena) > 1:
        phenomena.append(PHENOMENON_AVERAGE)
    return SuiteBars(suite, phenomena, {key: aggregate_runs(runs) for key, runs in groups.items()})


def draw_phenomena(settings: FigureSettings, panels: Sequence[SuiteBars]) -> Figure:
    """The figure: a panel of grouped bars per suite below each other, one legend at the bottom."""
    models = models_in_order(settings.cells)
    styles = model_styles(models, settings.style)
    style = settings.style
    bar_inches = max(0.13, style.font_size * 0.95 / 72) if len(models) > 1 else style.font_size * 1.3 / 72
    heights = [len(panel.phenomena) * (len(models) + 0.8) * bar_inches for panel in panels]
    labels = models_with_counts(settings.cells)
    line = style.font_size * 1.5 / 72
    height = (
        sum(heights)
        + len(panels) * 3.2 * line
        + (1 + -(-len(models) // legend_columns(list(labels.values()), style))) * line
    )
    figure = Figure(figsize=(style.width_inches, height), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights}, sharex=True)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _draw_panel(axes, panel, models, styles, style.font_size)
    grid.flat[-1].set_xlabel("accuracy (%)")
    handles = [
        Patch(facecolor=styles[model].colour, hatch=styles[model].hatch, edgecolor="white", label=label)
        for model, label in labels.items()
    ]
    legend_below(figure, handles, style)
    return figure


def _draw_panel(
    axes: Axes, panel: SuiteBars, models: Sequence[str], styles: Mapping[str, ModelStyle], font_size: float
) -> None:
    thickness = 1 / (len(models) + 0.8)
    for group, phenomenon in enumerate(panel.phenomena):
        for index, model in enumerate(models):
            bar = panel.bars[phenomenon, model]
            assert bar.mean is not None
            place = group + (index - (len(models) - 1) / 2) * thickness
            look = styles[model]
            axes.barh(
                place, bar.mean, height=thickness * 0.94, color=look.colour, hatch=look.hatch, edgecolor="white", lw=0.3
            )
            deviation = bar.std or 0.0
            if bar.std is not None:
                axes.errorbar(bar.mean, place, xerr=bar.std, color="black", lw=0.8, capsize=font_size * 0.15)
            axes.annotate(
                f"{bar.mean:.1f}",
                (min(bar.mean + deviation, 100.0), place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center_baseline",
                fontsize=font_size * 0.72,
            )
    axes.axvline(CHANCE, color="black", linestyle="--", linewidth=0.9)
    axes.text(CHANCE, -0.52, "chance", ha="center", va="bottom", fontsize=font_size * 0.8, color=MUTED)
    if panel.phenomena[-1] == PHENOMENON_AVERAGE:
        axes.axhline(len(panel.phenomena) - 1.5, color=MUTED, linewidth=0.8)
    axes.set_yticks(range(len(panel.phenomena)), [readable(name) for name in panel.phenomena])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(panel.phenomena) - 0.5, -0.5)
    axes.set_xlim(0, 108)
    axes.set_xticks(range(0, 101, 10))
    axes.tick_params(axis="x", labelbottom=True)
    axes.grid(visible=True, axis="x")
    axes.set_title(readable(panel.suite), loc="left")
