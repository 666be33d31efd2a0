"""The Children's Book Test's raw books: a line `_BOOK_TITLE_ : Title.txt` begins a book, one sentence per line follows.

Source: `cbt_train.txt`, `cbt_valid.txt` and `cbt_test.txt` of the CBTest release (98, 5 and 5 books), the content of
configuration `raw` on the hub. One book is one text.
"""

from collections.abc import Iterator

from hatchery.corpora.raw_formats.record import RawText, index_key
from hatchery.corpora.text_files import open_lines, where_in
from hatchery.errors import SourceError
from hatchery.storage.sources import RawSource

_MARK = "_BOOK_TITLE_"


def read(source: RawSource, file: str, field: str, encoding: str) -> Iterator[RawText]:
    """The books of a file by their numbers, with their titles; `field` is of no meaning here.

    Raises SourceError naming file and line for text before the first title.
    """
    title: str | None = None
    book: list[str] = []
    index = 0
    for number, line in enumerate(open_lines(source, file, encoding), start=1):
        if line.startswith(_MARK):
            if title is not None:
                yield RawText(index_key(index), "\n".join(book), title)
                index += 1
            title = line.removeprefix(_MARK).lstrip(" :").strip().removesuffix(".txt").replace("_", " ")
            book = []
        elif title is not None:
            book.append(line)
        elif line.strip():
            place = f"{where_in(source, file)}: line {number}"
            raise SourceError(f"{place}: expected a line {_MARK} before the text, got {line[:80]!r}")
    if title is not None:
        yield RawText(index_key(index), "\n".join(book), title)
