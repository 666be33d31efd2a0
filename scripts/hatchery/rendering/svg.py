"""SVG files inside pages: the files themselves, so that page and file cannot disagree, with what they show.

A file may hold a second drawing for phones (`drawing.save_drawings`); the page then shows the one that fits.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from hatchery.errors import EvaluationError
from hatchery.rendering.escaping import html_text, readable
from hatchery.rendering.templates import render

NARROW_ID = "narrow"
# Letters grow with a drawing: beyond this factor they would be larger than those of headings.
MOST_ENLARGED = 1.35
_POINTS = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"')
_SYMBOL = re.compile(rf'<symbol id="[^"]*{NARROW_ID}" (viewBox="[^"]*")>(.*?)</symbol>\n?', flags=re.DOTALL)


def embedded_figure(path: Path, caption: str, explanation: Sequence[str] = ()) -> Markup:
    """The SVG file at `path` as a figure of an HTML page; its caption is also its text for those who cannot see it.

    The paragraphs of `explanation` can be folded out.
    Raises EvaluationError when the file is missing or not an SVG.
    """
    text = read_text(path)
    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise EvaluationError(f"{path}: not an SVG drawing")
    # Ids are unique within one drawing only, and several drawings share the page.
    drawing = prefixed_ids(text[start:], f"{path.stem}-")
    name, described = readable(path.stem), f"caption-{path.stem}"
    narrow: dict[str, object] | None = None
    if symbol := _SYMBOL.search(drawing):
        drawing = drawing.replace(symbol[0], "")
        most = _most_pixels(float(symbol[1].split()[2]))
        narrow = {"view_box": Markup(symbol[1]), "most": most, "body": Markup(symbol[2])}
    points = _POINTS.search(drawing)
    kind = ' class="wide"' if narrow else ""
    role = f'role="img" aria-label="{html_text(name)}" aria-describedby="{html_text(described)}"'
    return render(
        "figure.html.j2",
        name=name,
        described=described,
        caption=caption,
        explanation=explanation,
        most=None if points is None else _most_pixels(float(points[1])),
        wide=Markup(drawing.replace("<svg", f"<svg {role}{kind}", 1)),
        narrow=narrow,
    )


def prefixed_ids(svg: str, prefix: str) -> str:
    """The drawing with `prefix` before every id and every reference to one."""
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg)


def read_text(path: Path) -> str:
    """The text of a file that a page shows. Raises EvaluationError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error


def _most_pixels(points: float) -> int:
    """The width that keeps a drawing from growing too large."""
    return round(points * 4 / 3 * MOST_ENLARGED)
