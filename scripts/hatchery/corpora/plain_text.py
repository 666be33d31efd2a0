"""Plain text that the user brings: a file, folder or zip archive of text files, CSV tables or JSON lines.

Text is split into paragraphs and sentences; tables can be filtered and grouped by a column (a transcript, a book).
Nothing is guessed: encoding, columns and grouping are options, and what does not fit them is an error with its place.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from hatchery.corpora.documents import RawDocument, Reading
from hatchery.corpora.prose import Paragraph, ProseOptions, blocks_of, documents_of, finished, paragraphs_of, pieces
from hatchery.corpora.rows import Row, cell, csv_rows, json_rows
from hatchery.corpora.tagged_text import tagged_sentence
from hatchery.corpora.text_files import matching_names, open_lines, uncompressed_suffix
from hatchery.errors import ConfigError
from hatchery.storage.sources import RawSource

Format = Literal["text", "csv", "jsonl"]
Named = tuple[tuple[str, ...], list[Paragraph]]
_FORMATS: dict[str, Format] = {".txt": "text", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
_FINAL_MARKS = (".", "?", "!", ":", ";", ",", '"')


@dataclass(frozen=True)
class PlainTextOptions(ProseOptions):
    """How the files are read. Only `files` matters for plain text; tables need `column`."""

    files: str | tuple[str, ...] = ("*.txt", "*.csv", "*.jsonl", "*.json")
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files that are left out."""
    format: Format | None = None
    """Format of all files; by default from the suffix (.txt, .csv, .jsonl, .json, also with .gz, .bz2, .xz, .zst)."""
    encoding: str = "utf-8"
    """Encoding of all files."""
    column: str = "text"
    """Column or field with the text."""
    document_column: str | None = None
    """Rows of a file with the same value here form one document; without it every row is a document."""
    keep: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Only rows with one of these values in each of these columns."""
    tagged: bool = False
    """Whether the text is "word/TAG word/TAG", one sentence per line, as in the Brown corpus."""
    punctuation_column: str | None = None
    """Column that decides the final mark of a row without one, for transcripts."""
    punctuation: dict[str, str] = field(default_factory=lambda: {"question": "?"})
    """Final mark by the value of that column; `.` for other values."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.punctuation_column and self.tagged:
            raise ConfigError("punctuation_column: cannot be set beside `tagged`, whose text has marks of its own")


def files(source: RawSource, options: PlainTextOptions) -> list[str]:
    """The names of all matching files, sorted. Raises SourceError when there is none."""
    patterns = (options.files,) if isinstance(options.files, str) else options.files
    return matching_names(source, patterns, options.exclude)


def read(source: RawSource, file: str, reading: Reading) -> Iterator[RawDocument]:
    """The documents of one file, streamed: a text file cut into pieces, and a table, pass in the memory of a document.

    Rows of one document may stand apart in the file; then all documents that are open at the same time are in memory.
    """
    options: PlainTextOptions = reading.options
    named = _text(source, file, reading) if _format_of(file, options) == "text" else _table(source, file, reading)
    return documents_of(file, named, reading, options.minimum_words)


def _format_of(file: str, options: PlainTextOptions) -> Format:
    suffix = uncompressed_suffix(file)
    if options.format is None and suffix not in _FORMATS:
        raise ConfigError(f"{file}: the suffix does not tell the format; set the option `format`")
    return options.format or _FORMATS[suffix]


def _text(source: RawSource, file: str, reading: Reading) -> Iterator[Named]:
    options: PlainTextOptions = reading.options
    paragraphs = _paragraphs(open_lines(source, file, options.encoding), reading)
    return pieces((), ([paragraph] for paragraph in paragraphs), options.lines_per_document)


def _table(source: RawSource, file: str, reading: Reading) -> Iterator[Named]:
    options: PlainTextOptions = reading.options
    read_rows = csv_rows if _format_of(file, options) == "csv" else json_rows

    def rows() -> Iterator[Row]:
        return read_rows(source, file, options.encoding)

    if options.document_column is not None:
        yield from _grouped(rows, options.document_column, reading)
        return
    kept = (row for _, row in _row_paragraphs(rows(), reading) if row is not None)
    if options.lines_per_document is not None:
        yield from pieces((), kept, options.lines_per_document)
        return
    for index, paragraphs in enumerate(kept):
        yield (f"{index:06d}",), paragraphs


def _grouped(rows: Callable[[], Iterator[Row]], column: str, reading: Reading) -> Iterator[Named]:
    """Documents in the order of their first rows, each as soon as its last row and all documents before it are read.

    The table is read twice, first to count the rows of each document: nothing else says where a document ends.
    """
    left = Counter(cell(row, column, place) or "" for place, row in rows())
    kept: dict[str, list[list[Paragraph]]] = {}
    waiting = iter(dict.fromkeys(left))
    current = next(waiting, None)
    for key, paragraphs in _row_paragraphs(rows(), reading):
        left[key] -= 1
        if paragraphs is not None:
            kept.setdefault(key, []).append(paragraphs)
        while current is not None and not left[current]:
            lines = kept.pop(current, None)
            if lines is not None:
                yield from pieces((current,), lines, reading.options.lines_per_document)
            current = next(waiting, None)


def _row_paragraphs(rows: Iterable[Row], reading: Reading) -> Iterator[tuple[str, list[Paragraph] | None]]:
    """The key of its document and the paragraphs of each row; None for a row that is left out."""
    options: PlainTextOptions = reading.options
    for place, row in rows:
        key = "" if options.document_column is None else cell(row, options.document_column, place) or ""
        text = cell(row, options.column, place)
        if any(cell(row, column, place) not in values for column, values in options.keep.items()):
            reading.rejections.count("row not kept by the option `keep`", sample=text)
            yield key, None
            continue
        if text is None or not text.strip():
            reading.rejections.count("row without text")
            yield key, None
            continue
        if options.punctuation_column is not None:
            text = _with_mark(text, options.punctuation.get(cell(row, options.punctuation_column, place) or "", "."))
        yield key, list(_paragraphs(text.split("\n"), reading))


def _with_mark(text: str, mark: str) -> str:
    text = text.rstrip()
    return text if text.endswith(_FINAL_MARKS) else text + mark


def _paragraphs(lines: Iterable[str], reading: Reading) -> Iterator[Paragraph]:
    """The paragraphs of a text, each a list of sentences."""
    options: PlainTextOptions = reading.options
    if not options.tagged:
        return paragraphs_of(lines, options, reading.split_sentences)
    return ([finished(tagged_sentence(line), options) for line in block] for block in blocks_of(lines, options))
