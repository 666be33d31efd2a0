"""Escape text from files before it is shown in a terminal, on a page or in a CSV file that a spreadsheet opens.

Names of paradigms, samples of a corpus and messages that quote them come from files that strangers may have written.
This module imports the standard library only, because every command imports it.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# A spreadsheet reads a cell that begins with one of these characters as a formula. A cell of signs only is text.
_FORMULA = re.compile(r"[=+\-@＝＋－＠](?=.*\w)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:e[+-]?\d+)?%?", re.IGNORECASE)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINES = re.compile("[\t\n\u2028\u2029]")


def visible(text: str) -> str:
    """Replace control characters, direction overrides and lone surrogates by U+FFFD; keep tabs and line ends.

    The replaced characters control a terminal, or reorder and hide the text around them.
    """
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def plain_name(name: str) -> str:
    """Make a name from a file safe for tables, terminals and pages: one line, and no formula."""
    return str(csv_cell(_LINES.sub("\ufffd", name)))


def csv_cell(value: object) -> object:
    """Make a value safe for a cell of a CSV file; a text that a spreadsheet would calculate gets an apostrophe in
    front.

    Characters that control a terminal become U+FFFD, as in `visible`. The function is idempotent.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if _FORMULA.match(text.lstrip()) and not _NUMBER.fullmatch(text) else text


def csv_text(header: Sequence[str] | None, rows: Iterable[Sequence[object]], as_they_are: bool = False) -> str:
    """Return the text of a CSV file with a header and line ends `
    `; formulas are escaped, None is an empty field.

    Text without a header continues a file. With `as_they_are`, cells are unchanged, because a later stage reads them.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows(rows if as_they_are else ([csv_cell(value) for value in row] for row in rows))
    return text.getvalue()
