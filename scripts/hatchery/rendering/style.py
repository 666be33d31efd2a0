"""The look that all figures share, as a setting; apart from the drawing, because settings load no matplotlib."""

from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.settings.base import Range, Settings


@dataclass(frozen=True)
class Style(Settings):
    """The look that all figures share. Fonts are in points; heights follow from what is drawn."""

    width_inches: Annotated[float, Range(ge=2, le=40)] = 9
    """Width of every figure."""
    font_size: Annotated[float, Range(ge=4, le=40)] = 10
    """Size of the letters in points."""
    colours: Literal["okabe_ito", "grey"] = "okabe_ito"
    """Colours that the colour-blind can tell apart, or shades of grey."""
