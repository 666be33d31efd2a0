"""Stage `draw_figure`: any figure of an experiment, as a drawing for wide screens and one for phones in one file."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchery.analysis.settings import FigureSettings
from hatchery.errors import ConfigError
from hatchery.rendering.drawing import save_figure
from hatchery.typed import build, stage_body
from hatchery.views.figures.registry import Tables, declared_figures, tables_of


def draw_figure(settings: Mapping[str, Any], tables: Tables, output: Path) -> None:
    """Draw the figure that `settings` name into `output` (SVG).

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault.
    """
    chosen = build(FigureSettings, stage_body(settings))
    declared = declared_figures()[chosen.figure]
    if lacking := [table for table in tables_of(declared) if table not in tables]:
        raise ConfigError(f"--tables: {' and '.join(lacking)} must be given, which {chosen.figure} draws")
    draw = import_module(f"hatchery.views.figures.{chosen.figure}").draw
    save_figure(
        lambda style: draw(replace(chosen, style=style), tables),
        chosen.style,
        output,
        f"{declared.title} of {chosen.experiment}",
        "\n".join(remarks(chosen)),
    )


def remarks(settings: FigureSettings) -> Iterator[str]:
    """What stands above the drawing: what is not in it."""
    if settings.left_out:
        yield f"{settings.left_out:,} more models are not drawn: see summary.csv"
    if settings.without:
        yield f"not evaluated in this way: {', '.join(settings.without)}"
