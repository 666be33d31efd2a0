"""Diagrams of boxes and arrows for the documentation, as SVG files that can be read on light and dark screens.

What is drawn stands in columns and rows; arrows lead downwards only. So a diagram needs no program that finds places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hatchery.errors import HatcheryError

SORTS = ("plan", "show", "model", "text", "ground")


@dataclass(frozen=True)
class Box:
    """Where a box stands (columns may be fractions, row 0 is the highest), its colour (of SORTS), and what it is."""

    column: float
    row: int
    sort: str
    purpose: str
    wide: bool = False
    """Over the whole width."""


_WIDTH, HEIGHT = 174, 42
_STEP_X, _STEP_Y = 184, 74
_LEFT = 100
WIDTH = 1020
# Light and dark follow the reader's settings; each has a background of its own, because a page need not follow them.
_STYLE = """
text { font-family: sans-serif; fill: #1a1a1a; text-anchor: middle; }
.name { font-size: 15px; font-weight: bold; }
.purpose { font-size: 12px; }
.legend { font-size: 13px; text-anchor: start; }
.paper { fill: #ffffff; }
.box { stroke: #555555; stroke-width: 1; fill: #ffffff; }
.arrow { stroke: #767676; stroke-width: 1.6; fill: none; }
.head { fill: #767676; }
.plan { fill: #dbe8fa; } .show { fill: #ebddf7; } .model { fill: #d8f0dc; }
.text { fill: #fbeacb; } .ground { fill: #e6e6e6; }
@media (prefers-color-scheme: dark) {
text { fill: #f2f2f2; }
.paper { fill: #161b22; }
.box { stroke: #9a9a9a; fill: #161b22; }
.arrow { stroke: #a0a0a0; } .head { fill: #a0a0a0; }
.plan { fill: #1f3a63; } .show { fill: #4a2c66; } .model { fill: #1d4a2a; }
.text { fill: #5c4312; } .ground { fill: #3a3a3a; }
}
"""


def diagram(
    title: str,
    boxes: Mapping[str, Box],
    arrows: Sequence[tuple[str, str]],
    legend: Mapping[str, str],
    head: Sequence[str] = (),
    foot: str = "",
) -> str:
    """An SVG file: the legend (words by sort), what `head` draws above y = 82, boxes and arrows, and a line below.

    Raises HatcheryError for an arrow that does not lead downwards.
    """
    for upper, lower in arrows:
        if boxes[upper].row >= boxes[lower].row:
            raise HatcheryError(f"{title}: {upper} -> {lower}: expected a lower row for {lower}; move one of the boxes")
    top = 96 if head else 40
    height = top + _STEP_Y * max(box.row for box in boxes.values()) + HEIGHT + (48 if foot else 12)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        'role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0,0 L8,4 L0,8 z"/></marker></defs>',
        f'<rect class="paper" width="{WIDTH}" height="{height:g}"/>',
        *_legend(legend),
        *head,
        *(_arrow(boxes[upper], boxes[lower], top) for upper, lower in arrows),
        *(_placed(name, box, top) for name, box in boxes.items()),
    ]
    if foot:
        parts.append(f'<text class="purpose" x="{WIDTH / 2:g}" y="{height - 20:g}">{escape(foot)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def essential(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows of a graph without circles that do not follow from the others, sorted."""

    def below(name: str) -> set[str]:
        return graph[name].union(*map(below, graph[name]))

    return sorted((name, low) for name in graph for low in graph[name] - set().union(*map(below, graph[name])))


def box(name: str, purpose: str, middle: float, top: float, width: float, sort: str = "") -> str:
    """A box at a place in pixels; without a sort, one that stands outside."""
    style = f'class="box {sort}"' if sort else 'class="box" stroke-dasharray="5 3"'
    return (
        f'<rect {style} x="{middle - width / 2:g}" y="{top:g}" width="{width:g}" height="{HEIGHT}" rx="6"/>'
        f'<text class="name" x="{middle:g}" y="{top + 18:g}">{escape(name)}</text>'
        f'<text class="purpose" x="{middle:g}" y="{top + 34:g}">{escape(purpose)}</text>'
    )


def _placed(name: str, place: Box, top: float) -> str:
    middle, upper = _middle(place, top)
    # Wide enough for bold letters of any usual font.
    width = max(_WIDTH, 10.6 * len(name))
    return box(
        name, place.purpose, WIDTH / 2 if place.wide else middle, upper, WIDTH - 20 if place.wide else width, place.sort
    )


def _middle(place: Box, top: float) -> tuple[float, float]:
    """The middle of the upper edge."""
    return _LEFT + _STEP_X * place.column, top + _STEP_Y * place.row


def _arrow(upper: Box, lower: Box, top: float) -> str:
    """From the lower edge of a box to the upper edge of another, leaving and arriving upright."""
    (left, start), (right, end) = _middle(upper, top), _middle(lower, top)
    start += HEIGHT
    # Where arrows of several boxes arrive, they come from their own sides.
    shift = max(-50.0, min(50.0, (left - right) / 4))
    left, right = left - shift, right + shift
    bend = (end - start) / 2
    return (
        f'<path class="arrow" marker-end="url(#head)" d="M{left:g},{start:g} C{left:g},{start + bend:g} '
        f'{right:g},{end - bend:g} {right:g},{end - 2:g}"/>'
    )


def _legend(legend: Mapping[str, str]) -> list[str]:
    room = (WIDTH - 20) / len(legend)
    return [
        f'<rect class="box {sort}" x="{10 + index * room:g}" y="7" width="14" height="14"/>'
        f'<text class="legend" x="{30 + index * room:g}" y="19">{escape(words)}</text>'
        for index, (sort, words) in enumerate(legend.items())
    ]
