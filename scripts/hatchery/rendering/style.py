"""The look that all figures share, as a setting; apart from the drawing, because settings load no matplotlib."""

from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError


@dataclass(frozen=True)
class Style:
    """The look that all figures share. Fonts are in points; heights follow from what is drawn."""

    width_inches: float = 9.0
    font_size: float = 10.0
    colours: Literal["okabe_ito", "grey"] = "okabe_ito"

    def __post_init__(self) -> None:
        if not 2.0 <= self.width_inches <= 40.0:
            raise ConfigError(f"style.width_inches: expected 2 to 40 inches, got {self.width_inches}")
        if not 4.0 <= self.font_size <= 40.0:
            raise ConfigError(f"style.font_size: expected 4 to 40 points, got {self.font_size}")
