"""The value that all raw formats share: one unprocessed text with a name inside its file."""

from typing import NamedTuple


class RawText(NamedTuple):
    """One unprocessed text (a web page, an article, a book, a sentence) of a file."""

    key: str
    """Its number or identifier, different for every text of the file; empty where the file is the text."""
    text: str
    """The text as it stands in the file; nothing is cleaned, and it may be empty."""
    title: str = ""
    """Its title, where the format keeps one apart from the text."""


def index_key(index: int) -> str:
    """The key of the `index`-th text of a file whose texts have no identifiers; sorts as the numbers do."""
    return f"{index:08d}"
