"""Text from outside, made harmless where it is shown: in a terminal, on a page, in a CSV file that a spreadsheet opens.

Names of paradigms, samples of a corpus and messages that quote them come from files that strangers may have made.
It needs the standard library alone, because every command imports it.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# A spreadsheet takes a cell for a formula that begins so. Signs alone are none.
_FORMULA = re.compile(r"[=+\-@＝＋－＠](?=.*\w)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:e[+-]?\d+)?%?", re.IGNORECASE)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINES = re.compile("[\t\n\u2028\u2029]")


def visible(text: str) -> str:
    """The text with control characters, direction overrides and lone surrogates replaced by U+FFFD.

    They steer a terminal, or reorder and hide what stands around them. Tabs and ends of lines stay.
    """
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def plain_name(name: str) -> str:
    """A name from a file as it may stand in tables, on terminals and in pages: one line, and no formula."""
    return str(csv_cell(_LINES.sub("\ufffd", name)))


def csv_cell(value: object) -> object:
    """A value for a cell of a CSV file; a text that a spreadsheet would calculate gets an apostrophe in front.

    Characters that steer a terminal become U+FFFD here, too. A second time it changes nothing.
    """
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if _FORMULA.match(text.lstrip()) and not _NUMBER.fullmatch(text) else text


def csv_text(header: Sequence[str] | None, rows: Iterable[Sequence[object]], as_they_are: bool = False) -> str:
    """The text of a CSV file with a header and line ends `\\n`; formulas in cells are escaped, None is an empty field.

    Text without a header continues a file. With `as_they_are`, cells are unchanged, because a later stage reads them.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows(rows if as_they_are else ([csv_cell(value) for value in row] for row in rows))
    return text.getvalue()
