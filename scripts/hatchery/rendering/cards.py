"""Cards: pages of short sections, each with prose of our own, tables, figures and texts, as HTML and as Markdown.

Figures and texts are left out of the Markdown version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from hatchery.rendering.svg import embedded_figure
from hatchery.rendering.table import Table
from hatchery.rendering.templates import render


@dataclass(frozen=True)
class Drawing:
    """A figure of a card: an SVG file and what it shows."""

    path: Path
    caption: str

    def html(self) -> Markup:
        """The figure on a page. Raises EvaluationError when the file is not an SVG."""
        return embedded_figure(self.path, self.caption)


@dataclass(frozen=True)
class Text:
    """A text of the corpus, with what is known of it."""

    heading: str
    text: str


@dataclass
class Section:
    """One section of a card; its prose is ours, and may have marks of Markdown."""

    title: str
    prose: list[str] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def card_html(title: str, description: str, sections: Sequence[Section]) -> str:
    """The page. Raises EvaluationError when a drawing is not an SVG."""
    return render("card.html.j2", title=title, description=description, sections=sections)


def card_markdown(title: str, description: str, sections: Sequence[Section]) -> str:
    """Title, prose and tables of the card in Markdown."""
    return render("card.md.j2", title=title, description=description, sections=sections)
