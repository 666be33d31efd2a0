"""Text from outside, made harmless where it is shown: in a terminal, and in a CSV file that a spreadsheet opens.

Names of paradigms, samples of a corpus and messages that quote them come from files that strangers may have made.
It needs the standard library alone, because every command imports it.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence

# A spreadsheet takes a cell for a formula that begins so. Signs alone are none.
_FORMULA = re.compile(r"[=+\-@＝＋－＠](?=.*\w)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[\d.,]+(?:e[+-]?\d+)?%?", re.IGNORECASE)
# Control characters, directions of writing and other invisible marks, halves of characters, ends of lines.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str, keep: str = "") -> str:
    """The text with U+FFFD for every character that steers a terminal or hides, but for those in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(character) in _HIDDEN and character not in keep else character
        for character in text
    )


def plain_name(name: str) -> str:
    """A name from a file as it may stand in tables, on terminals and in pages: one line, and no formula."""
    return str(csv_cell(printable(name)))


def csv_cell(value: object) -> object:
    """A value for a cell of a CSV file; a text that a spreadsheet would calculate gets an apostrophe in front.

    Characters that steer a terminal become U+FFFD here, too. A second time it changes nothing.
    """
    if not isinstance(value, str):
        return value
    text = printable(value, keep="\n\t")
    return f"'{text}" if _FORMULA.match(text.lstrip()) and not _NUMBER.fullmatch(text) else text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The text of a CSV file with a header and line ends `\\n`; its cells are made harmless, None is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue()
