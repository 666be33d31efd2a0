"""Pages and cards as Jinja2 templates, which lie in `templates/` beside this file.

What a template fills in is escaped: as HTML in `*.html.j2`, as Markdown in `*.md.j2`; only `Markup` is not. An unknown
name is an error, never an empty place.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from hatchery.rendering.escaping import breakable, html_text, markdown_paragraph, markdown_text
from hatchery.sanitize import visible

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).with_name("templates")


def render(template: str, **values: Any) -> Markup:
    """The text that a template makes of the values; `.html.j2` and `.md.j2` escape what they fill in."""
    return Markup(_environment(template.endswith(".html.j2")).get_template(template).render(values))


@cache
def _environment(html: bool) -> "Environment":
    # Commands that show no page need not wait for it.
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
    made.filters |= {"anchor": anchor, "breakable": breakable, "count": "{:,}".format}
    made.filters |= {"coded": coded}
    made.filters |= {"foreign": lambda text: Markup(markdown_text(text))}
    made.filters |= {"paragraph": lambda text: Markup(markdown_paragraph(text))}
    return made


def anchor(text: str) -> str:
    """The id of a heading."""
    return "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in text.lower()).split())


def coded(text: str) -> Markup:
    """Prose of our own for HTML, in which `this` is code."""
    parts = [html_text(part) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(p) if n % 2 else p for n, p in enumerate(parts))


def _shown(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markdown(value: Any) -> Any:
    return markdown_text(value, foreign=False) if isinstance(value, str) and not isinstance(value, Markup) else value
