"""A table for display: columns, groups of rows, caption and notes, with methods for every output format.

A cell is plain text, or a `Cell` with a deviation, a remark, bold face or a link. Each output format escapes the text.
A cell may also be `Markup` (HTML from a template); its table can then be shown only as HTML.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

from markupsafe import Markup

from hatchery.errors import ConfigError
from hatchery.rendering.escaping import breakable, html_text, latex_text, markdown_paragraph, markdown_text
from hatchery.rendering.templates import render
from hatchery.sanitize import csv_text, visible

NOT_COMPARABLE = "†"
MOST_COLUMNS_OF_A_PHONE = 3
_HEADING_CHARACTERS = 16
# In LaTeX, a column of words is wrapped if one of its cells has more than this number of characters. All wrapped
# columns together are this fraction of the line width wide.
_CHARACTERS_ON_A_LINE, _SHARE_OF_SENTENCES = 60, 0.8
# If a LaTeX table has more than this number of rows, its notes are in smaller type, and its height is limited. Table,
# caption and notes then fit on a page.
_LINES_WITH_NOTES = 40

Item = TypeVar("Item")


@dataclass(frozen=True)
class Column:
    """A column of a table. If `words` is true, its cells are left-aligned and may be wrapped; otherwise, they are
    right-aligned numbers.
    """

    heading: str
    words: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell with more than plain text: `text ± deviation (remark)`, in bold face, as code or as a link. `spoken` is
    the tooltip of the link.

    If `comparable` is false, a mark after the number shows that the number is not comparable.
    """

    text: str
    deviation: str = ""
    remark: str = ""
    bold: bool = False
    comparable: bool = True
    code: bool = False
    link: str = ""
    spoken: str = ""


Content = str | Cell


@dataclass(frozen=True)
class Row:
    """A row of a table; `anchor` is its HTML id, to which other pages can link."""

    cells: Sequence[Content]
    anchor: str = ""


@dataclass(frozen=True)
class Group:
    """A group of rows in a table; `heading` may be empty."""

    rows: Sequence[Sequence[Content] | Row]
    heading: Content = ""


@dataclass(frozen=True)
class Table:
    """A table for display. `caption` is shown above the table; `label` is only read by screen readers.

    `foreign` is True if cells contain text of third parties, in which all markup must be escaped. `names` is True if
    cells are names from the configuration, which may be wrapped after an underscore.
    """

    columns: Sequence[Column]
    groups: Sequence[Group]
    caption: str = ""
    label: str = ""
    notes: Sequence[str] = ()
    foreign: bool = False
    names: bool = False
    kind: str = field(default="", kw_only=True)
    """CSS class of the table's HTML element."""

    @property
    def rows(self) -> list[Row]:
        """Rows of all groups of the table, in the order of the groups."""
        return [_row(row) for group in self.groups for row in group.rows]

    @property
    def headings(self) -> list[str]:
        """Headings of the columns."""
        return [column.heading for column in self.columns]

    def csv(self) -> str:
        """Return the headings and the texts of all cells as CSV. A text that a spreadsheet would read as a formula is
        escaped.
        """
        return csv_text(self.headings, ([_plain(cell) for cell in row.cells] for row in self.rows))

    def records(self) -> list[dict[str, str]]:
        """Return one mapping per row. The mapping contains the text of each cell of the row, by heading of the column,
        and under the key `group` the heading of the row's group.
        """
        return [
            {"group": _plain(group.heading), **dict(zip(self.headings, map(_plain, _row(row).cells), strict=True))}
            for group in self.groups
            for row in group.rows
        ]

    def markdown(self, aligned: bool = False) -> str:
        """Return the table in Markdown, without the caption. If `aligned` is true, cells are padded so that columns
        align.
        """
        header = [markdown_text(text, self.foreign) for text in self.headings]
        rows = [header, [":--" if column.words else "--:" for column in self.columns]]
        for group in self.groups:
            if group.heading:
                rows.append([f"**{self._markdown(group.heading)}**", *[""] * (len(header) - 1)])
            rows += [[self._markdown(cell) for cell in _row(row).cells] for row in group.rows]
        if aligned:
            rows = _lined_up(rows, [column.words for column in self.columns])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def captioned_markdown(self) -> str:
        """Return the table in Markdown; the caption is a paragraph above the table."""
        return f"{markdown_paragraph(self.caption)}\n\n{self.markdown()}"

    def _markdown(self, cell: Content) -> str:
        if isinstance(cell, Markup):
            raise TypeError("a table with HTML cells can only be shown as HTML")
        if not isinstance(cell, Cell):
            return markdown_text(cell, self.foreign)
        text = markdown_text(cell.text, self.foreign)
        # Markdown has no escape character inside a code span. A text that would end the code span or the cell is
        # therefore shown as plain text.
        code = cell.code and not set(cell.text) & set("`|\r\n")
        text = f"`{visible(cell.text)}`" if code else f"[{text}]({cell.link})" if cell.link else text
        parts = [f"**{text}**" if cell.bold else text, f"± {cell.deviation}" if cell.deviation else ""]
        parts.append(f"({cell.remark})" if cell.remark else "")
        return " ".join(filter(None, parts)) + ("" if cell.comparable else NOT_COMPARABLE)

    def html(self, swatches: Mapping[str, str] | None = None) -> Markup:
        """Return the table as HTML, inside an element that scrolls horizontally; the first cell of each row is the
        row's heading.

        If there are many columns, a phone shows each cell on a separate line. `swatches` maps names to colours: before
        a cell or heading that consists of such a name, a swatch shows the colour.
        """
        groups = [(group.heading, [_row(row) for row in group.rows]) for group in self.groups]
        shown = breakable if self.names else html_text
        return render(
            "table.html.j2",
            table=self,
            groups=groups,
            shown=shown,
            swatches=swatches or {},
            stacked=len(self.columns) > MOST_COLUMNS_OF_A_PHONE,
        )

    def latex(self, title: str, label: str, wrap: bool = False) -> str:
        """Return a LaTeX `table` environment with caption, label and notes; the text ends in a newline.

        The environment needs the packages `booktabs` and `graphicx`. The caption contains `title`. If `wrap` is true,
        columns of sentences are wrapped. All text is escaped to ASCII, so that every LaTeX engine compiles it.
        """
        sides, long = "".join(self._latex_sides(wrap)), len(self.rows) > _LINES_WITH_NOTES
        caption = self.caption.removesuffix(".")
        lines = [
            rf"% {title}, with Hatchery's numbers. Needs \usepackage{{booktabs}} and \usepackage{{graphicx}}.",
            r"\begin{table}[p]",
            r"\centering",
            # LaTeX's document classes expect the caption below the table and put no space below a caption. This caption
            # is above the table, so put 4 pt below it.
            r"\setlength{\belowcaptionskip}{4pt}",
            rf"\caption{{{latex_text(f'{caption} ({title}).')}}}",
            rf"\label{{tab:{label}}}",
            r"\scriptsize",
            r"\setlength{\tabcolsep}{3pt}",
            # Limit the height of a table with many rows, so that table, caption and notes fit on a page.
            *([_WITHIN_HEIGHT] if long else []),
            # Shrink a wide table to the line width, but do not enlarge a narrow table.
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            _latex_row([latex_text(c.heading) if c.words else _latex_heading(c.heading) for c in self.columns]),
        ]
        for group in self.groups:
            lines.append(r"\midrule")
            if group.heading:
                heading = latex_text(_plain(group.heading))
                lines += [
                    rf"\multicolumn{{{len(self.columns)}}}{{l}}{{\textit{{{heading}}}}} \\",
                    r"\midrule",
                ]
            lines += [
                _latex_row([_latex_cell(*pair) for pair in zip(_row(row).cells, self.columns, strict=True)])
                for row in group.rows
            ]
        lines += [r"\bottomrule", r"\end{tabular}}" + "}" * long]
        if self.notes:
            # Remove the backquotes around code, because LaTeX would print them.
            sentences = (f"{note.removesuffix('.')}.".replace("`", "") for note in self.notes)
            notes, size = " ".join(map(latex_text, sentences)), r"\tiny" if long else r"\scriptsize"
            # The notes are too long for the caption, so write them into a separate box of the line's width.
            lines += [r"\par\smallskip", rf"\begin{{minipage}}{{\linewidth}}{size} {notes}\end{{minipage}}"]
        return "\n".join([*lines, r"\end{table}"]) + "\n"

    def latex_or_reason(self, title: str, label: str, wrap: bool = False) -> str:
        """Return the table as LaTeX. If a character has no LaTeX command, return a LaTeX comment that names this
        character, so that other formats and other tables can still be written.
        """
        try:
            return self.latex(title, label, wrap)
        except ConfigError as error:
            reason = f"% {self.caption or self.label}: not written: {error}\n"
            return reason.encode("ascii", "replace").decode("ascii")

    def _latex_sides(self, wrap: bool) -> list[str]:
        """Return the LaTeX specification of each column. If `wrap` is true, columns of sentences share most of the line
        width.
        """
        cells = [[_plain(row.cells[index]) for row in self.rows] for index in range(len(self.columns))]
        sentences = [
            wrap and column.words and max(map(len, texts), default=0) > _CHARACTERS_ON_A_LINE
            for column, texts in zip(self.columns, cells, strict=True)
        ]
        width = rf"p{{{_SHARE_OF_SENTENCES / max(1, sum(sentences)):.2f}\linewidth}}"
        pairs = zip(self.columns, sentences, strict=True)
        return [width if wraps else "l" if column.words else "r" for column, wraps in pairs]

    def text(self, widths: Sequence[int]) -> list[str]:
        """Return the table as lines for a terminal, headings first; `widths` are the widths of the columns in
        characters.

        The width of a column of numbers includes the spaces between this column and the previous column. A text that is
        too long is truncated and ends in two dots. Lines have no trailing spaces.
        """
        sides = [column.words for column in self.columns]
        rows = [self.headings, *([_plain(cell) for cell in row.cells] for row in self.rows)]
        return [
            "".join(_fitted(text, width, words) for text, width, words in zip(row, widths, sides, strict=True)).rstrip()
            for row in rows
        ]


_WITHIN_HEIGHT = r"\resizebox*{!}{\ifdim\totalheight>0.75\textheight 0.75\textheight\else\totalheight\fi}{%"
# The widest table of the papers has thirteen columns of numbers, so pages are landscape with narrow margins.
_PREAMBLE = r"""% Shows all tables, from the files in this folder.
\documentclass[10pt]{article}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage[a4paper,landscape,hmargin=1.5cm,top=0.8cm,bottom=1.1cm,footskip=0.6cm]{geometry}
\begin{document}
"""


def latex_of_files(numbers: Iterable[tuple[str, int]]) -> str:
    """Return a LaTeX document that includes one file `<name>.tex` per page, from the document's folder.

    `numbers` are (name, number of the table in its paper). The caption contains this number.
    """
    inputs = (
        f"\\setcounter{{table}}{{{number - 1}}}\n\\input{{{name}.tex}}\n\\clearpage\n" for name, number in numbers
    )
    return f"{_PREAMBLE}{''.join(inputs)}\\end{{document}}\n"


def as_json(table: Table) -> dict[str, Any]:
    """Return a table as a JSON object for a later stage that shows the table. Anchors of rows are left out."""
    written = asdict(table)
    for group in written["groups"]:
        group["rows"] = [row["cells"] if isinstance(row, dict) else row for row in group["rows"]]
    return written


def from_json(value: Mapping[str, Any]) -> Table:
    """Return the table that `as_json` has written as the JSON object `value`."""
    groups = [
        Group([[_read(cell) for cell in row] for row in group["rows"]], _read(group["heading"]))
        for group in value["groups"]
    ]
    return Table(**{**value, "columns": [Column(**column) for column in value["columns"]], "groups": groups})


def _read(cell: str | Mapping[str, Any]) -> Content:
    return cell if isinstance(cell, str) else Cell(**cell)


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Content] | Row],
    *,
    words: int | Sequence[int] = 1,
    caption: str = "",
    label: str = "",
    foreign: bool = False,
    names: bool = False,
) -> Table:
    """Return a table with one group of rows.

    `words` are the indices of the columns that contain words. An integer n means the first n columns; columns of
    numbers follow.
    """
    worded = range(words) if isinstance(words, int) else [index % len(header) for index in words]
    columns = [Column(heading, index in worded) for index, heading in enumerate(header)]
    return Table(columns, [Group(list(rows))], caption, label, (), foreign, names)


def divided(items: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """Split the items, in their order, into the smallest number of parts with at most `most` items each.

    The parts have about equal sizes.
    """
    parts = -(-len(items) // most)
    bounds = [round(index * len(items) / parts) for index in range(parts + 1)] if parts else []
    return [items[first:end] for first, end in pairwise(bounds)]


def shortened(text: str, width: int) -> str:
    """Return a text; if it is longer than `width` characters, return its beginning followed by two dots."""
    return text if len(text) <= width else text[: width - 2] + ".."


GAP = 2
"""Number of spaces before a column of numbers on a terminal."""


def _fitted(text: str, width: int, words: bool) -> str:
    return shortened(text, width).ljust(width) if words else shortened(text, width - GAP).rjust(width)


def _row(row: Sequence[Content] | Row) -> Row:
    return row if isinstance(row, Row) else Row(row)


def _plain(cell: Content) -> str:
    return cell.text if isinstance(cell, Cell) else cell


def _lined_up(rows: Sequence[Sequence[str]], words: Sequence[bool]) -> list[list[str]]:
    widths = [max(3, *(len(cell) for cell in column)) for column in zip(rows[0], *rows[2:], strict=True)]
    rule = [":" + "-" * (w - 1) if flush else "-" * (w - 1) + ":" for w, flush in zip(widths, words, strict=True)]
    return [
        [cell.ljust(w) if flush else cell.rjust(w) for cell, w, flush in zip(row, widths, words, strict=True)]
        for row in (rows[0], rule, *rows[2:])
    ]


def _latex_heading(text: str) -> str:
    """Return the LaTeX heading of a column of numbers, wrapped if it is long."""
    lines = textwrap.wrap(text, _HEADING_CHARACTERS, break_long_words=False, break_on_hyphens=False)
    parts = [latex_text(line) for line in lines]
    return parts[0] if len(parts) == 1 else r"\shortstack[r]{" + r" \\ ".join(parts) + "}"


def _latex_row(cells: Sequence[str]) -> str:
    # LaTeX would read a bracket or star at the beginning of a row as an option of the preceding line break, so put
    # braces around it.
    return " & ".join(f"{{{text}}}" if text.startswith(("[", "*")) else text for text in cells) + r" \\"


def _latex_cell(cell: Content, column: Column) -> str:
    if not isinstance(cell, Cell):
        # In a column of numbers, a hyphen in text denotes a range or a missing number, so print it as a dash.
        return latex_text(cell) if column.words else latex_text(cell).replace("-", "--")
    number = latex_text(cell.text) if column.words else _latex_number(cell.text)
    parts = [rf"\textbf{{{number}}}" if cell.bold else number]
    if cell.deviation:
        parts.append(rf"{{\tiny $\pm$ {_latex_number(cell.deviation)}}}")
    if cell.remark:
        parts.append(rf"{{\tiny ({latex_text(cell.remark)})}}")
    return " ".join(parts) + ("" if cell.comparable else r"\textsuperscript{\dag}")


def _latex_number(text: str) -> str:
    # A cell that is only a hyphen denotes a missing number, so print a dash, not a minus sign.
    return "--" if text == "-" else latex_text(text).replace("-", "$-$").replace("+", "$+$")
