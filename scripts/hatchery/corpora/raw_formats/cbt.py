"""The Children's Book Test's raw books: a line `_BOOK_TITLE_ : Title.txt` begins a book, one sentence per line follows.

Source: `cbt_train.txt`, `cbt_valid.txt` and `cbt_test.txt` of the CBTest release (98, 5 and 5 books), the content of
configuration `raw` on the hub. One book is one text.
"""

from collections.abc import Iterator

from hatchery.corpora.raw_texts import RawText, index_key
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError

_MARK = "_BOOK_TITLE_"


def read(lines: Lines, field: str) -> Iterator[RawText]:
    """The books of a file by their numbers, with their titles; `field` is of no meaning here.

    Raises SourceError naming file and line for text before the first title.
    """
    title: str | None = None
    book: list[str] = []
    index = lines.first
    for line in lines:
        if line.startswith(_MARK):
            if title is not None:
                with lines.put_back():
                    yield RawText(index_key(index), "\n".join(book), title)
                index += 1
            title = line.removeprefix(_MARK).lstrip(" :").strip().removesuffix(".txt").replace("_", " ")
            book = []
        elif title is not None:
            book.append(line)
        elif line.strip():
            raise SourceError(f"{lines.place}: expected a line {_MARK} before the text, got {line[:80]!r}")
    if title is not None:
        yield RawText(index_key(index), "\n".join(book), title)
