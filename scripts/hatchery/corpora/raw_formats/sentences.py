"""Lines: every line is a text of its own.

Source: BookCorpus as it stands on the hub, one tokenised lower-case sentence per row, saved as text.
"""

from collections.abc import Iterator

from hatchery.corpora.raw_formats.record import RawText, index_key
from hatchery.corpora.text_files import open_lines
from hatchery.storage.sources import RawSource


def read(source: RawSource, file: str, field: str, encoding: str) -> Iterator[RawText]:
    """The lines that are not blank, by their line numbers from 0; `field` is of no meaning here."""
    for index, line in enumerate(open_lines(source, file, encoding)):
        if line and not line.isspace():
            yield RawText(index_key(index), line)
