"""Figures inside pages: the SVG files themselves, so that page and file cannot disagree, with what they show.

A file may hold a second drawing for phones (`drawing.save_drawings`); the page then shows the one that fits.
"""

import re
from pathlib import Path

from hatchery.analysis.cards.tables import html_text
from hatchery.analysis.figures.published_marks import PUBLISHED_LABEL
from hatchery.analysis.figures.registry import declared_figures
from hatchery.analysis.figures.run_dots import FAILED_LABEL
from hatchery.errors import EvaluationError
from hatchery.rendering.drawing import NARROW_ID, prefixed_ids
from hatchery.storage.verified import vouched

# Said only of a drawing whose legend says it, too.
MARKS = {PUBLISHED_LABEL: "Open diamonds are published values.", FAILED_LABEL: "Hollow marks are failed runs."}
# Letters grow with a drawing: beyond this factor they would be larger than those of headings.
MOST_ENLARGED = 1.35
_POINTS = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"')
_SYMBOL = re.compile(rf'<symbol id="[^"]*{NARROW_ID}" (viewBox="[^"]*")>(.*?)</symbol>\n?', flags=re.DOTALL)


def figure_of(path: Path) -> str:
    """The figure with its caption, and a sentence for every mark that it has.

    Raises ManifestError when it was altered.
    """
    drawing = read_text(vouched(path))
    # Matplotlib writes every text of a drawing, whose letters are paths, into a comment beside it.
    marks = [sentence for label, sentence in MARKS.items() if f"<!-- {label} -->" in drawing]
    return embedded_figure(path, " ".join([declared_figures()[path.stem].caption, *marks]))


def embedded_figure(path: Path, caption: str) -> str:
    """The SVG file at `path` as a figure of an HTML page; its caption is also its text for those who cannot see it.

    Raises EvaluationError when the file is missing or not an SVG.
    """
    text = read_text(path)
    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise EvaluationError(f"{path}: not an SVG drawing")
    # Ids are unique within one drawing only, and several drawings share the page.
    drawing = prefixed_ids(text[start:], f"{path.stem}-")
    name = html_text(path.stem.replace("_", " "))
    described = html_text(f"caption-{path.stem}")
    role = f'role="img" aria-label="{name}" aria-describedby="{described}"'
    symbol = _SYMBOL.search(drawing)
    narrow = ""
    if symbol is not None:
        drawing = drawing.replace(symbol[0], "")
        size = float(symbol[1].split()[2])
        narrow = f'<svg {role} class="narrow" {symbol[1]}{_limit(size)}>{symbol[2]}</svg>'
    kind = ' class="wide"' if narrow else ""
    points = _POINTS.search(drawing)
    most = "" if points is None else _limit(float(points[1]))
    drawing = drawing.replace("<svg", f"<svg {role}{kind}", 1)
    return (
        f'<figure>\n<div class="drawing" tabindex="0" role="region" aria-label="Figure: {name}"{most}>'
        f'{drawing}{narrow}</div>\n<figcaption id="{described}">{html_text(caption)}</figcaption>\n</figure>'
    )


def _limit(points: float) -> str:
    """The attribute that keeps a drawing of that width from growing too large."""
    return f' style="max-width: {points * 4 / 3 * MOST_ENLARGED:.0f}px"'


def read_text(path: Path) -> str:
    """The text of a file that a page shows. Raises EvaluationError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error
