"""Plain text: a file is one text, as in the replicated BookCorpus (`books1`, one `.epub.txt` file per book)."""

from collections.abc import Iterator

from hatchery.corpora.raw_texts import RawText
from hatchery.corpora.text_files import Lines


def read(lines: Lines, field: str) -> Iterator[RawText]:
    """The one text of the file, which has no key of its own; `field` is of no meaning here."""
    yield RawText("", "\n".join(lines))
