"""Drawing of any figure of an experiment, for wide screens and for phones in one file."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from hatchery.analysis.settings import FigureSettings
from hatchery.errors import ConfigError
from hatchery.rendering.drawing import save_figure
from hatchery.views.figures.registry import declared_figures, tables_of


def draw(settings: FigureSettings, tables: Mapping[str, Path], output: Path) -> None:
    """Draw the figure of `settings`; see the stage `draw_figure`."""
    declared = declared_figures()[settings.figure]
    if lacking := [table for table in tables_of(declared) if table not in tables]:
        raise ConfigError(f"tables: {' and '.join(lacking)} must be given, which {settings.figure} draws")
    figure = import_module(f"hatchery.views.figures.{settings.figure}").draw
    save_figure(
        lambda style: figure(replace(settings, style=style), tables),
        settings.style,
        output,
        f"{declared.title} of {settings.experiment}",
        "\n".join(remarks(settings)),
    )


def remarks(settings: FigureSettings) -> Iterator[str]:
    """Yield sentences above the drawing on models and experiments that it leaves out."""
    if settings.left_out:
        yield f"{settings.left_out:,} more models are not drawn: see summary.csv"
    if settings.without:
        yield f"not evaluated in this way: {', '.join(settings.without)}"
