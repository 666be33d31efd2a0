"""One text with a name inside its file, which all raw formats share, and the formats that are lines of text."""

from collections.abc import Iterator
from typing import NamedTuple

from hatchery.corpora.rows import json_rows
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError


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


def read_text(lines: Lines, field: str) -> Iterator[RawText]:
    """Plain text: a file is one text, as in the replicated BookCorpus (`books1`, one `.epub.txt` file per book).

    The one text of the file, which has no key of its own; `field` is of no meaning here.
    """
    yield RawText("", "\n".join(lines))


def read_sentences(lines: Lines, field: str) -> Iterator[RawText]:
    """Lines: every line is a text of its own.

    The lines that are not blank, by their line numbers from 0; `field` is of no meaning here.

    Source: BookCorpus as it stands on the hub, one tokenised lower-case sentence per row, saved as text.
    """
    for line in lines:
        if line and not line.isspace():
            yield RawText(index_key(lines.line - 1), line)


def read_json_lines(lines: Lines, field: str) -> Iterator[RawText]:
    """JSON lines: one object per line, the text in a field of it, as C4 and most web corpora are handed out.

    The texts in the field `field`, in the order of the lines; a null is an empty text.

    Raises SourceError for a damaged line, a missing field, or a field that holds something else than text.

    Source: the C4 files of the hub (`c4-train.00000-of-01024.json.gz` with `text`, `timestamp`, `url`). Every line
    becomes one text; a line that is not an object with that field is an error with file and line.
    """
    for index, (place, row) in enumerate(json_rows(lines), lines.first):
        if field not in row:
            raise SourceError(f"{place}: there is no field {field!r}; there are: {', '.join(sorted(row))}")
        text = row[field]
        if text is None:
            text = ""
        elif not isinstance(text, str):
            raise SourceError(f"{place}: field {field!r}: expected text, got {type(text).__name__}")
        yield RawText(index_key(index), text)


_MARK = "_BOOK_TITLE_"


def read_cbt(lines: Lines, field: str) -> Iterator[RawText]:
    """The Children's Book Test's raw books: a line `_BOOK_TITLE_ : Title.txt` begins a book, one sentence per line
    follows.

    The books of a file by their numbers, with their titles; `field` is of no meaning here.

    Raises SourceError naming file and line for text before the first title.

    Source: `cbt_train.txt`, `cbt_valid.txt` and `cbt_test.txt` of the CBTest release (98, 5 and 5 books), the
    content of configuration `raw` on the hub. One book is one text.
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
            raise SourceError(
                f"{lines.where}: line {lines.line}: expected a line {_MARK} before the text, got {line[:80]!r}"
            )
    if title is not None:
        yield RawText(index_key(index), "\n".join(book), title)
