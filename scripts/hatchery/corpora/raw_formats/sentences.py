"""Lines: every line is a text of its own.

Source: BookCorpus as it stands on the hub, one tokenised lower-case sentence per row, saved as text.
"""

from collections.abc import Iterator

from hatchery.corpora.raw_texts import RawText, index_key
from hatchery.corpora.text_files import Lines


def read(lines: Lines, field: str) -> Iterator[RawText]:
    """The lines that are not blank, by their line numbers from 0; `field` is of no meaning here."""
    for line in lines:
        if line and not line.isspace():
            yield RawText(index_key(lines.line - 1), line)
