"""Texts that exist as Markdown, shown on a page: a whole document, or one section of it. Raw HTML stays text."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hatchery.analysis.pages.document import html_document

DEEPEST = 6


def rendered(markdown: str, deeper: int = 0, prefix: str = "") -> str:
    """The document as HTML; every heading goes `deeper` levels down and has an id that begins with `prefix`."""
    parser = _parser()
    return _html(parser, parser.parse(markdown), deeper, prefix)


def section_of(markdown: str, title: str, deeper: int = 0, prefix: str = "") -> str:
    """What stands below the heading `title` of level 2, as HTML; empty where there is no such section."""
    parser = _parser()
    for name, tokens in _sections(parser.parse(markdown)):
        if name == title:
            return _html(parser, tokens, deeper, prefix)
    return ""


def introductions(markdown: str) -> list[tuple[str, str]]:
    """The first paragraph, as plain text, of every section of level 2 that begins with one and goes on with a table."""
    found = []
    for name, tokens in _sections(_parser().parse(markdown)):
        kinds = [token.type for token in tokens[:4]]
        if kinds == ["paragraph_open", "inline", "paragraph_close", "table_open"]:
            found.append((name, tokens[1].content))
    return found


def markdown_page(title: str, markdown: str) -> str:
    """A page of its own for a document with a heading of level 1; `title` is what the browser calls it."""
    return html_document(title, rendered(markdown))


def anchor(text: str) -> str:
    """The id of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _sections(tokens: Sequence[Token]) -> list[tuple[str, list[Token]]]:
    sections: list[tuple[str, list[Token]]] = []
    for index, token in enumerate(tokens):
        if token.tag in ("h1", "h2") and token.type == "heading_open":
            sections.append((tokens[index + 1].content if token.tag == "h2" else "", []))
        elif sections and not _belongs_to_heading(tokens, index):
            sections[-1][1].append(token)
    return [(name, body) for name, body in sections if name]


def _belongs_to_heading(tokens: Sequence[Token], index: int) -> bool:
    """Whether a token is the text or the end of a heading of level 1 or 2."""
    token, before = tokens[index], tokens[index - 1]
    return (token.type == "heading_close" and token.tag in ("h1", "h2")) or (
        before.type == "heading_open" and before.tag in ("h1", "h2")
    )


def _html(parser: MarkdownIt, tokens: Sequence[Token], deeper: int, prefix: str) -> str:
    label = "Table"
    pieces: list[Token] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            label = tokens[index + 1].content
            token.attrSet("id", prefix + anchor(label))
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(DEEPEST, int(token.tag[1]) + deeper)}"
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if token.type == "table_open":
            frame = Token("table_frame", "div", 1, block=True)
            frame.attrs = {"class": "table", "tabindex": "0", "role": "region", "aria-label": label}
            pieces.append(frame)
        pieces.append(token)
        if token.type == "table_close":
            pieces.append(Token("table_frame", "div", -1, block=True))
    return parser.renderer.render(pieces, parser.options, {})
