"""Tables of text with a header and with columns separated by commas, semicolons, tabs, vertical bars or spaces.

Four deviations from RFC 4180 are accepted:

- blank rows, and Excel's line `sep=;`, before the header
- the header of R's `write.table`, in which the column of row names has no name
- quotes in a quoted cell that are escaped by a backslash, as R writes them
- in tab-separated tables, quotes that are ordinary characters
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError

# The default limit of the module csv on the length of a cell (131,072 characters) is shorter than many web pages.
# Without a limit, one quote that is never closed would make the rest of the file one cell.
csv.field_size_limit(2**26)

# Key under which a row contains its surplus fields, for which the header has no column.
SURPLUS = None
DELIMITERS = ",;\t|"
ROWS_SEEN = 20
"""Number of rows that are inspected to recognise a header in which the column of row names has no name."""

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_QUOTED_BETWEEN_BLANKS = re.compile(r'"[^"]*"(?: "[^"]*")+')


class TableHead(NamedTuple):
    """The header of a table: column names, delimiter, and the number of lines from the start of the file to the
    header's end.
    """

    columns: list[str]
    delimiter: str
    lines: int


def read_head(lines: Lines, delimiter: str | None = None) -> TableHead:
    """Return the header of a table. `lines` may begin at a later line of the file; the header is read from the file's
    beginning.

    A line `sep=;` sets the delimiter; otherwise the delimiter is `delimiter` or, if this is None, the most frequent
    delimiter in the header. Raises SourceError for a header that is not well formed, has two columns with the same
    name, or has a single column whose name contains a delimiter.
    """
    all_lines = Lines(lines.source, lines.name, lines.encoding, has_options=lines.has_options)
    all_lines.where, all_lines.mark = lines.where, lines.mark
    first, stated_delimiter = "", ""
    for line in all_lines:
        if not stated_delimiter and (separator_line := _SEPARATOR_LINE.fullmatch(line)):
            stated_delimiter = separator_line[1]
        elif line.strip(f" {DELIMITERS}"):
            first = line
            break
    delimiter = stated_delimiter or delimiter or _most_frequent(first)
    place = all_lines.place
    columns = _first_record(first, all_lines, delimiter)
    end = all_lines.line
    _check_columns(columns, place, delimiter, lines.has_options)
    if _lacks_name_of_row_names(first, list(islice(_records(all_lines, delimiter, len(columns)), ROWS_SEEN)), columns):
        columns = ["", *columns]
    return TableHead(columns, delimiter, end)


def csv_rows(
    lines: Lines, delimiter: str | None = ",", head: TableHead | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield pairs of a position and a row, for a table with a header. The position (file and line) is for messages. A
    row may have surplus fields (`has_surplus`).

    `delimiter` is as in `read_head`, whose result may be passed as `head`. The position and `lines.record_line` refer
    to the first line of the row. In tab-separated tables, every line is a row, and quotes are special only if they
    enclose a cell. Raises SourceError for a table that is not well formed, for example if it ends inside quotes or has
    two columns with the same name.
    """
    head = head or read_head(lines, delimiter)
    if not lines.offset:
        for _ in islice(lines, head.lines):
            pass
    columns = head.columns
    missing = [None] * len(columns)
    for cells in _records(lines, head.delimiter, len(columns)):
        # A row that is longer than the header has surplus fields. A column of row names without a name in the header is
        # no reason for a longer row, because `read_head` has added an empty name.
        row: dict[Any, Any] = dict(zip(columns, [*cells, *missing[len(cells) :]], strict=False))
        if len(cells) > len(columns):
            row[SURPLUS] = cells[len(columns) :]
        yield f"{lines.where}{lines.mark}{lines.record_line}", row


def has_surplus(row: Mapping[str, Any]) -> bool:
    """Return whether a row has more fields than the header of its table, for example because an unquoted text contains
    commas.
    """
    return SURPLUS in row


def _most_frequent(header: str) -> str:
    """Return the most frequent delimiter outside quotes in a header; a space if only spaces separate quoted names."""
    bare = _QUOTED.sub("", header)
    delimiter = max(DELIMITERS, key=bare.count)
    return " " if delimiter not in bare and _QUOTED_BETWEEN_BLANKS.fullmatch(header.strip()) else delimiter


def _first_record(first: str, rest: Lines, delimiter: str) -> list[str]:
    """Return the cells of a table's header. `first` is the first line of the header, which may continue in the lines
    `rest`.
    """
    if delimiter == "\t":
        return _tab_cells(first)

    def with_ends() -> Iterator[str]:
        yield f"{first}\n"
        yield from _with_ends(rest, delimiter)

    try:
        return next(csv.reader(with_ends(), strict=True, delimiter=delimiter), [])
    except csv.Error as error:
        raise SourceError(f"{rest.place}: not a well-formed table: {error}") from error


def _records(lines: Lines, delimiter: str, width: int) -> Iterator[list[str]]:
    """Yield the cells of each non-empty row of a table; `width` is the number of columns. `lines.record_line` is the
    number of the first line of the current row.
    """
    if delimiter == "\t":
        for line in lines:
            if line:
                lines.record_line = lines.line
                yield _tab_cells(line, width)
        return
    done = lines.line
    try:
        for cells in csv.reader(_with_ends(lines, delimiter), strict=True, delimiter=delimiter):
            begins, done = done + 1, lines.line
            if cells:
                lines.record_line = begins
                yield cells
    except csv.Error as error:
        raise SourceError(f"{lines.place}: not a well-formed table: {error}") from error


def _tab_cells(line: str, width: int | None = None) -> list[str]:
    """Return the cells of a line between tabs, without the quotes that enclose cells. All quotes stay in the cells in
    two cases: if the line is malformed when quotes enclose cells, and if the line has `width` cells only when quotes
    are ordinary characters.
    """
    plain = line.split("\t")
    if '"' not in line:
        return plain
    try:
        (quoted,) = csv.reader([_with_doubled_quotes(line, "\t")], strict=True, delimiter="\t")
    except csv.Error:
        return plain
    # Accept `width + 1` cells, because R writes a name for each row, but no column name for these row names.
    return plain if len(quoted) not in (width, (width or 0) + 1) and len(plain) == width else quoted


def _with_ends(lines: Lines, delimiter: str) -> Iterator[str]:
    return (f"{_with_doubled_quotes(line, delimiter)}\n" for line in lines)


def _with_doubled_quotes(line: str, delimiter: str) -> str:
    r"""Return the line with `""` for each `\"`, if backslashes escape the quotes in its cells.

    In RFC 4180, a backslash is an ordinary character, so the quote of `\"` ends a quoted cell, and a delimiter or the
    line end follows. Backslashes therefore count as escapes only under two conditions: a character other than a
    delimiter or a quote follows some `\"` of the line; and the line also contains quotes without a backslash, which
    enclose cells.
    """
    if '\\"' not in line:
        return line
    escaped = re.search(rf'\\"(?![{re.escape(delimiter)}"]|$)', line)
    return line.replace('\\"', '""') if escaped and re.search(r'(?<!\\)"', line) else line


def _check_columns(columns: Sequence[str], place: str, delimiter: str, has_options: bool) -> None:
    for column, count in Counter(columns).items():
        # Allow several columns with an empty name, because spreadsheets export such columns.
        if count > 1 and column:
            raise SourceError(f"{place}: {count} columns are called {column!r}; rename all but one")
    if len(columns) == 1 and (other_delimiters := [mark for mark in DELIMITERS if mark in columns[0]]):
        remedy = (
            f"set the option `delimiter`, perhaps to {other_delimiters[0]!r}" if has_options else "rename this column"
        )
        raise SourceError(f"{place}: got one column, {columns[0]!r}, with the delimiter {delimiter!r}; {remedy}")


def _lacks_name_of_row_names(header: str, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> bool:
    """Return True if the rows begin with a column of row names that the header does not name.

    Such a table has one cell more in each row than in the header, and its first cells are distinct. Unquoted commas in
    texts also lengthen rows. Therefore a further condition must hold, as in R's tables: the first cells are integers,
    or the column names are in quotes.
    """
    if not rows or any(len(row) != len(columns) + 1 for row in rows):
        return False
    names = [row[0] for row in rows]
    return len(set(names)) == len(names) and (header.startswith('"') or all(name.isdecimal() for name in names))
