"""Pages and cards as Jinja2 templates, from `templates/` next to this file, and drawings embedded in them.

Inserted values are escaped: as HTML in `*.html.j2`, as Markdown in `*.md.j2`; only `Markup` is not. An unknown name is
an error, never an empty place.

A page contains the SVG files themselves, so that page and file cannot disagree. A file may hold a second drawing for
phones (`drawing.save_drawings`); the page then shows the drawing that fits.

A card is a page of short sections, each with prose of our own, tables, figures and texts. Its Markdown version omits
figures and texts.
"""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from hatchery.errors import EvaluationError
from hatchery.rendering.citation import how_to_cite
from hatchery.rendering.escaping import breakable, html_text, markdown_paragraph, markdown_text, readable
from hatchery.sanitize import visible

if TYPE_CHECKING:
    from jinja2 import Environment

    from hatchery.rendering.table import Table

FOLDER = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> Markup:
    """Render a template; `.html.j2` and `.md.j2` escape inserted values."""
    return Markup(_environment(template.endswith(".html.j2")).get_template(template).render(values))


@cache
def _script() -> Markup:
    return Markup((FOLDER / "tables.js").read_text(encoding="utf-8"))


def _script_digest() -> str:
    """Return the source that a page's security policy allows: the SHA-256 of the one script, in base64."""
    return f"sha256-{b64encode(sha256(_script().encode()).digest()).decode()}"


@cache
def _environment(html: bool) -> "Environment":
    # Imported here, because commands that show no page need not wait for it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not html,
        finalize=_shown if html else _markdown,
    )
    made.globals |= {"how_to_cite": how_to_cite, "script": _script, "script_digest": _script_digest}
    made.filters |= {"anchor": anchor, "breakable": breakable, "count": "{:,}".format}
    made.filters |= {"coded": coded}
    made.filters |= {"foreign": lambda text: Markup(markdown_text(text))}
    made.filters |= {"paragraph": lambda text: Markup(markdown_paragraph(text))}
    return made


def anchor(text: str) -> str:
    """Return the id of a heading."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())


def coded(text: str) -> Markup:
    """Convert prose of our own to HTML, in which `this` is code."""
    parts = [html_text(part) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(p) if n % 2 else p for n, p in enumerate(parts))


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markdown(value: Any) -> Any:
    return markdown_text(value, foreign=False) if isinstance(value, str) and not isinstance(value, Markup) else value


NARROW_ID = "narrow"
# Letters grow with a drawing: above this factor they would be larger than those of headings.
MOST_ENLARGED = 1.35
_POINTS = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"')
_SYMBOL = re.compile(rf'<symbol id="[^"]*{NARROW_ID}" (viewBox="[^"]*")>(.*?)</symbol>\n?', flags=re.DOTALL)


def embedded_figure(path: Path, caption: str, explanation: Sequence[str] = ()) -> Markup:
    """Return the SVG file at `path` as a figure of an HTML page; its caption is also its alternative text.

    The paragraphs of `explanation` can be unfolded. Raises EvaluationError if the file is missing or not an SVG.
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
    """Return the drawing with `prefix` before every id and every reference to one."""
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg)


def read_text(path: Path) -> str:
    """Read the text of a file that a page shows. Raises EvaluationError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error


def _most_pixels(points: float) -> int:
    """Return the width that keeps a drawing from growing too large."""
    return round(points * 4 / 3 * MOST_ENLARGED)


@dataclass(frozen=True)
class Text:
    """A text of the corpus, with the known facts about it."""

    heading: str
    text: str


@dataclass
class Section:
    """One section of a card; its prose is ours, and may have marks of Markdown."""

    title: str
    prose: list[str] = field(default_factory=list)
    tables: list["Table"] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def card_html(title: str, description: str, sections: Sequence[Section]) -> str:
    """Return the card as an HTML page."""
    return render("card.html.j2", title=title, description=description, sections=sections)


def card_markdown(title: str, description: str, sections: Sequence[Section], front_matter: Sequence[str] = ()) -> str:
    """Return title, prose and tables of the card in Markdown, below `front_matter`, lines of YAML."""
    return render("card.md.j2", title=title, description=description, sections=sections, front_matter=front_matter)
