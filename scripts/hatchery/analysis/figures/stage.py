"""Stage `draw_figure`: any figure of an experiment, as a drawing for wide screens and one for phones in one file."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from hatchery.analysis.figures.registry import declared_figures
from hatchery.analysis.settings import FigureSettings
from hatchery.errors import ConfigError
from hatchery.rendering.drawing import save_figure
from hatchery.typed import build, stage_body


def draw_figure(
    settings: Mapping[str, Any], results: Mapping[str, Path], output: Path, published: Path | None = None
) -> None:
    """Draw the figure that `settings` name into `output` (SVG), from the manifests of `results` by name.

    Raises ConfigError, ManifestError or EvaluationError naming the input at fault.
    """
    chosen = build(FigureSettings, stage_body(settings))
    if not results:
        raise ConfigError("--results: no input is given, so there is nothing to draw")
    draw = import_module(f"hatchery.analysis.figures.{chosen.figure}").draw
    save_figure(
        lambda style: draw(replace(chosen, style=style), results, published),
        chosen.style,
        output,
        f"{declared_figures()[chosen.figure].title} of {chosen.experiment}",
        chosen.left_out,
    )
