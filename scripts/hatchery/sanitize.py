"""Escapes text from files before it is shown in a terminal, on a page or in a CSV file that a spreadsheet opens.

Examples are the name of a paradigm, a sample of a corpus, and a message that quotes a file. This module imports only
the standard library, because every program imports this module.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# Spreadsheets read a cell that begins with one of these characters as a formula if the cell contains a letter or digit.
_FORMULA = re.compile(r"[=+\-@＝＋－＠](?=.*\w)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:e[+-]?\d+)?%?", re.IGNORECASE)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINES = re.compile("[\t\n\u2028\u2029]")


def visible(text: str) -> str:
    """Return text with control characters, direction overrides and lone surrogates replaced by U+FFFD.

    These characters could control a terminal, or could reorder or hide the text around them. Tabs and line feeds are
    kept.
    """
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def plain_name(name: str) -> str:
    """Return a name from a file, made safe for tables, terminals and pages: line breaks and control characters become
    U+FFFD, and an apostrophe precedes text that a spreadsheet would read as a formula.
    """
    return str(csv_cell(_LINES.sub("\ufffd", name)))


def csv_cell(value: object) -> object:
    """Return a value that is safe in a cell of a CSV file.

    Before text that a spreadsheet would read as a formula, an apostrophe is inserted. Control characters become U+FFFD,
    as in `visible`. The function is idempotent.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if _FORMULA.match(text.lstrip()) and not _NUMBER.fullmatch(text) else text


def csv_text(header: Sequence[str] | None, rows: Iterable[Sequence[object]], as_they_are: bool = False) -> str:
    """Return the text of a CSV file with a header. Lines end in line feeds, and None becomes an empty field.

    If `header` is None, the text has no header and continues a file. Text that a spreadsheet would read as a formula is
    escaped. If `as_they_are` is true, cells are not escaped, because a later stage reads the file.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows(rows if as_they_are else ([csv_cell(value) for value in row] for row in rows))
    return text.getvalue()
