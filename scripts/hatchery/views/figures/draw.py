"""Draw any figure of an experiment as one SVG file, with a layout for wide screens and a layout for phones."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from hatchery.analysis.settings import FigureSettings
from hatchery.errors import ConfigError
from hatchery.rendering.drawing import save_figure
from hatchery.views.figures.registry import declared_figures, tables_of


def draw(settings: FigureSettings, tables: Mapping[str, Path], output: Path) -> None:
    """Draw the figure of `settings`; the stage `draw_figure` calls this function."""
    declared = declared_figures()[settings.figure]
    if lacking := [table for table in tables_of(declared) if table not in tables]:
        raise ConfigError(f"tables: expected {' and '.join(lacking)}, which the figure {settings.figure} needs")
    figure = import_module(f"hatchery.views.figures.{settings.figure}").draw
    save_figure(
        lambda style: figure(replace(settings, style=style), tables),
        settings.style,
        output,
        f"{declared.title} of {settings.experiment}",
        "\n".join(remarks(settings)),
    )


def remarks(settings: FigureSettings) -> Iterator[str]:
    """Yield remarks about models and experiments that are not drawn. The remarks are printed above the drawing."""
    if settings.left_out:
        yield f"{settings.left_out:,} more models are not drawn: see summary.csv"
    if settings.without:
        yield f"experiments without these evaluations: {', '.join(settings.without)}"
