"""The look that all figures share, as a setting, and that of each model in figures, tables and cards.

Separate from the drawing, because settings and pages do not import Matplotlib. Colours are those of Okabe and Ito
(Color Universal Design, 2008), which colour-blind readers can distinguish.
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
# Without diamonds, which mark published values.
MARKERS = ("o", "s", "^", "v", "P", "X", "<", ">", "p", "*", "h")


@dataclass(frozen=True)
class Style(Settings):
    """Style of all figures. Font sizes are in points; heights depend on the content."""

    width_inches: Annotated[float, Range(ge=2, le=40)] = 9
    """Width of every figure in inches."""
    font_size: Annotated[float, Range(ge=4, le=40)] = 10
    """Font size in points."""
    colours: Literal["okabe_ito", "grey"] = "okabe_ito"
    """Palette: okabe_ito has colours for colour-blind readers, grey has shades of grey."""


@dataclass(frozen=True)
class ModelStyle:
    """Look of one model in every figure; hatch and dashes change when the colours repeat.

    The marker changes from model to model, so that dots can be distinguished in grey print as well.
    """

    colour: str
    hatch: str
    dashes: Dashes
    marker: str = MARKERS[0]


def model_styles(models: Sequence[str], style: Style) -> dict[str, ModelStyle]:
    """Return a look for every model, by its place in the configuration."""
    palette = OKABE_ITO if style.colours == "okabe_ito" else GREYS
    # In grey, hatches and dashes distinguish the models from the first one on.
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
