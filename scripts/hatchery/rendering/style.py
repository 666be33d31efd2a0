"""Settings for the style of all figures, and the style of each model in figures, tables and cards.

Settings and pages import this module and must not import Matplotlib, so the code for drawing is elsewhere. The colours
are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can distinguish.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from hatchery.settings.base import Range, Settings

# Yellow is last, because a yellow line on white is the hardest to see.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442")
GREYS = ("#4D4D4D", "#808080", "#B3B3B3", "#262626", "#D9D9D9")
HATCHES = ("", "//", "xx", "..", "\\\\", "++")
Dashes = Literal["-", "--", ":", "-."]
DASHES: tuple[Dashes, ...] = ("-", "--", ":", "-.")
# Figures mark published values with diamonds, so this list has no diamonds.
MARKERS = ("o", "s", "^", "v", "P", "X", "<", ">", "p", "*", "h")


@dataclass(frozen=True)
class Style(Settings):
    """Style of all figures; the height of a figure depends on its content."""

    width_inches: Annotated[float, Range(ge=2, le=40)] = 9
    """Width of the figures in inches."""
    font_size: Annotated[float, Range(ge=4, le=40)] = 10
    """Font size in points."""
    colours: Literal["okabe_ito", "grey"] = "okabe_ito"
    """Palette of the models: `okabe_ito` has colours that colour-blind readers can distinguish, and `grey` has shades
    of grey.
    """


@dataclass(frozen=True)
class ModelStyle:
    """Style of one model in all figures. Among at most 20 models, models with the same colour have different hatches
    and dashes.

    The first 11 models have different markers, so that dots can be distinguished in grey print.
    """

    colour: str
    hatch: str
    dashes: Dashes
    marker: str = MARKERS[0]


def model_styles(models: Sequence[str], style: Style) -> dict[str, ModelStyle]:
    """Return the style of each model. The style depends on the position of the model in `models`."""
    palette = OKABE_ITO if style.colours == "okabe_ito" else GREYS
    # With a palette of colours, hatch and dashes change after every colour was used once. With a palette of greys,
    # hatch and dashes change from model to model.
    stride = len(palette) if style.colours == "okabe_ito" else 1
    return {
        model: ModelStyle(
            palette[index % len(palette)],
            HATCHES[index // stride % len(HATCHES)],
            DASHES[index // stride % len(DASHES)],
            MARKERS[index % len(MARKERS)],
        )
        for index, model in enumerate(models)
    }
