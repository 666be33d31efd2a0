"""A table as Markdown and as HTML, and the escaping that text of a corpus needs in either.

Words, samples and names come from texts that anybody may have written: nothing of them reaches a page as markup.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hatchery.harmless_text import visible

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|&~$@]|:(?=//)|(?<=www)\.)")
_BLOCK = re.compile(r"^(\d*)([-#+=.)])")


@dataclass(frozen=True)
class Table:
    """A table for people: cells are plain text; the first `left` columns and a last one of notes are flush left.

    With `names`, cells are names of the configuration, which may be broken behind an underscore.
    """

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: int = 1
    notes_last: bool = False
    names: bool = False

    def markdown(self) -> str:
        """The table in Markdown with its caption above."""
        rule = [":--" if self._is_prose(column) else "--:" for column in range(len(self.header))]
        rows = [[markdown_text(cell) for cell in row] for row in (self.header, *self.rows)]
        lines = [rows[0], rule, *rows[1:]]
        return f"{markdown_paragraph(self.caption)}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def html(self) -> str:
        """The table in HTML; its first column heads the rows."""
        header = "".join(f'<th scope="col"{self._side(i)}>{html_text(text)}</th>' for i, text in enumerate(self.header))
        body = "\n".join(f"<tr>{self._row(row)}</tr>" for row in self.rows)
        return (
            f'<div class="table" tabindex="0" role="region" aria-label="{html_text(self.caption)}"><table>\n'
            f"<caption>{html_text(self.caption)}</caption>\n"
            f"<thead><tr>{header}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    def _row(self, row: Sequence[str]) -> str:
        shown = breakable if self.names else html_text
        first = f'<th scope="row">{shown(row[0])}</th>'
        return first + "".join(f"<td{self._side(i)}>{shown(text)}</td>" for i, text in enumerate(row) if i)

    def _side(self, column: int) -> str:
        return ' class="prose"' if self._is_prose(column) else ' class="number"'

    def _is_prose(self, column: int) -> bool:
        return column < self.left or (self.notes_last and column == len(self.header) - 1)


def html_text(text: str) -> str:
    """The text for an HTML element or a quoted attribute."""
    return html.escape(visible(text), quote=True)


def breakable(text: str) -> str:
    """Like `html_text`, for names in narrow columns: lines may break behind an underscore."""
    return re.sub(r"(?<=[^_]_)(?=[^_])", "<wbr>", html_text(text))


def markdown_text(text: str) -> str:
    """The text on one line of Markdown, without meaning as Markdown or HTML, also inside a table."""
    return _MARKDOWN.sub(r"\\\1", " ".join(visible(text).split()))


def markdown_paragraph(text: str) -> str:
    """Like `markdown_text`, for text that begins a line, where it must not begin a heading or a list."""
    return _BLOCK.sub(r"\1\\\2", markdown_text(text))


def count(value: float | None) -> str:
    """A number with thousands separators, empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
