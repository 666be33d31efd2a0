"""Pages and cards from Jinja2 templates in the folder `templates/`, and drawings embedded in pages.

Inserted values are escaped, as HTML in `*.html.j2` and as Markdown in `*.md.j2`, unless they are `Markup`. An undefined
variable is an error.

A page embeds the contents of SVG files, so a figure on the page always equals its file. The file may contain a second
drawing for phones (`drawing.save_drawings`); the page then shows the drawing that fits the window.

A card is a page of short sections with prose, tables and sample texts. Its Markdown version contains no sample texts.
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
    """Render a template. In files `.html.j2` and `.md.j2`, inserted values are escaped."""
    return Markup(_environment(template.endswith(".html.j2")).get_template(template).render(values))


@cache
def _script() -> Markup:
    return Markup((FOLDER / "tables.js").read_text(encoding="utf-8"))


def _script_digest() -> str:
    """Return the value with which a page's content security policy allows its only script: the SHA-256 (base64) of this
    script.
    """
    return f"sha256-{b64encode(sha256(_script().encode()).digest()).decode()}"


@cache
def _environment(html: bool) -> "Environment":
    # Import Jinja2 only here: commands that write no pages then start faster.
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
    """Return the HTML id of a heading with the text `text`."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())


def coded(text: str) -> Markup:
    """Return prose as HTML; text in backquotes becomes code."""
    parts = [html_text(part) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(p) if n % 2 else p for n, p in enumerate(parts))


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markdown(value: Any) -> Any:
    return markdown_text(value, foreign=False) if isinstance(value, str) and not isinstance(value, Markup) else value


NARROW_ID = "narrow"
# Maximum factor by which a page enlarges a drawing. With a larger factor, the drawing's letters would be larger than
# the page's headings.
MOST_ENLARGED = 1.35
_POINTS = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"')
_SYMBOL = re.compile(rf'<symbol id="[^"]*{NARROW_ID}" (viewBox="[^"]*")>(.*?)</symbol>\n?', flags=re.DOTALL)


def embedded_figure(path: Path, caption: str, explanation: Sequence[str] = ()) -> Markup:
    """Return the SVG file at `path` as a figure of an HTML page; screen readers read the caption as its description.

    The paragraphs of `explanation` are hidden until a reader opens them. Raises EvaluationError if the file is missing
    or is not an SVG.
    """
    text = read_text(path)
    start = text.find("<svg")
    if start < 0 or "</svg>" not in text:
        raise EvaluationError(f"{path}: expected an SVG drawing")
    # Ids are unique only within a drawing, and a page contains several drawings, so add a prefix to each id.
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
    """Return the SVG with `prefix` before each id and each reference to an id."""
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", svg)


def read_text(path: Path) -> str:
    """Return the text of a file that is inserted into a page. Raises EvaluationError if the file cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read: {error}") from error


def _most_pixels(points: float) -> int:
    """Return the maximum width, in CSS pixels, at which a page shows a drawing that is `points` wide."""
    return round(points * 4 / 3 * MOST_ENLARGED)


@dataclass(frozen=True)
class Text:
    """A sample text of a corpus; the heading states the text's origin."""

    heading: str
    text: str


@dataclass
class Section:
    """One section of a card. `prose` is written by Hatchery's code, not by third parties, and may contain Markdown."""

    title: str
    prose: list[str] = field(default_factory=list)
    tables: list["Table"] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def card_html(title: str, description: str, sections: Sequence[Section]) -> str:
    """Return a card (title, description and sections) as an HTML page."""
    return render("card.html.j2", title=title, description=description, sections=sections)


def card_markdown(title: str, description: str, sections: Sequence[Section], front_matter: Sequence[str] = ()) -> str:
    """Return a card (title, description and sections) as Markdown, without sample texts; `front_matter` is written
    above the card as YAML.
    """
    return render("card.md.j2", title=title, description=description, sections=sections, front_matter=front_matter)
