"""Plain text that the user brings: a file, folder or zip archive of text files, CSV tables or JSON lines.

Text is split into paragraphs and sentences; tables can be filtered and grouped by a column (a transcript, a book).
A text file is a document; where there are few of them, or one is long, they are cut into documents (`cutting`), so that
some can be held out. Encoding, columns and grouping are options, and what does not fit them is an error with its place.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Literal

from hatchery.corpora.cutting import PIECE_BYTES, Piece, cut_text, pieces_of
from hatchery.corpora.documents import RawDocument, Reading
from hatchery.corpora.prose import Paragraph, blocks_of, documents_of, finished, paragraphs_of, pieces
from hatchery.corpora.rows import Row, cell, csv_rows, field, has_surplus, json_rows, kind_of
from hatchery.corpora.settings import PlainTextOptions
from hatchery.corpora.tagged_text import tagged_sentence
from hatchery.corpora.text_files import (
    decoded_lines,
    is_direct,
    matching_names,
    open_lines,
    text_blocks,
    uncompressed_suffix,
    where_in,
)
from hatchery.errors import ConfigError, SourceError
from hatchery.storage.sources import RawSource

Format = Literal["text", "csv", "jsonl"]
Named = tuple[tuple[str, ...], list[Paragraph]]
_FORMATS: dict[str, Format] = {".txt": "text", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
# A twentieth of fewer text files, the default development split, is less than one.
FEW_FILES = 20
LONG_FILE_BYTES = 1 << 20
_PACKED_PIECES = 16
_FINAL_MARKS = (".", "?", "!", ":", ";", ",", '"')


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


def divide(source: RawSource, file: str, options: PlainTextOptions, count: int) -> Iterator[Piece]:
    """The pieces of a text file that is cut into documents; none of another file. It is read once, to its end.

    Raises SourceError where it cannot be read.
    """
    if _format_of(file, options) != "text" or not is_cut(source, file, options, count):
        return
    # To begin in the middle of a compressed file, all before it is decompressed: then a few large pieces are better.
    stored = source.kind != "zip" and PurePosixPath(file).suffix == uncompressed_suffix(file)
    unpacked = source.files[file][0] * (1 if source.kind == "zip" else 4)
    size = PIECE_BYTES if stored and is_direct(options.encoding) else max(PIECE_BYTES, unpacked // _PACKED_PIECES)
    yield from pieces_of(text_blocks(source, file, options.encoding), size)


def read_piece(source: RawSource, file: str, reading: Reading, piece: Piece) -> Iterator[RawDocument]:
    """The documents of a piece of a text file. Raises SourceError where it is not what it was when it was divided."""
    return documents_of(file, _cut(source, file, reading, piece), reading, reading.options.minimum_words)


def is_cut(source: RawSource, file: str, options: PlainTextOptions, count: int | None) -> bool:
    """Whether one of `count` files is cut into documents by its size, not by a number of lines."""
    if options.lines_per_document is not None or options.tagged or options.cut_files == "never":
        return False
    few = count is not None and count < FEW_FILES
    return options.cut_files == "always" or few or source.size(file) > LONG_FILE_BYTES


def _format_of(file: str, options: PlainTextOptions) -> Format:
    suffix = uncompressed_suffix(file)
    if options.format is None and suffix not in _FORMATS:
        raise ConfigError(f"{file}: the suffix does not tell the format; set the option `format`")
    return options.format or _FORMATS[suffix]


def _delimiter(file: str, options: PlainTextOptions) -> str:
    return options.delimiter or ("\t" if uncompressed_suffix(file) == ".tsv" else ",")


def _text(source: RawSource, file: str, reading: Reading) -> Iterator[Named]:
    options: PlainTextOptions = reading.options
    if is_cut(source, file, options, reading.files):
        return _cut(source, file, reading, None)
    paragraphs = _paragraphs(open_lines(source, file, options.encoding), reading)
    return pieces((), ([paragraph] for paragraph in paragraphs), options.lines_per_document)


def _cut(source: RawSource, file: str, reading: Reading, piece: Piece | None) -> Iterator[Named]:
    """The numbered documents of a text file, or of a piece of it."""
    options: PlainTextOptions = reading.options
    start, end, first = (0, None, 0) if piece is None else (piece.start, piece.end, piece.first)
    checksum = hashlib.sha256()
    blocks = text_blocks(source, file, options.encoding, start, end)
    for number, (offset, content) in enumerate(cut_text(blocks, start), first):
        checksum.update(content)
        lines = decoded_lines(source, file, options.encoding, offset, content)
        yield (f"{number:06d}",), list(_paragraphs(lines, reading))
    if piece is not None and checksum.hexdigest() != piece.sha256:
        raise SourceError(f"{where_in(source, file)}: has changed since this conversion began; start it again")


def _table(source: RawSource, file: str, reading: Reading) -> Iterator[Named]:
    options: PlainTextOptions = reading.options

    def rows() -> Iterator[Row]:
        if _format_of(file, options) == "jsonl":
            return json_rows(source, file, options.encoding)
        return csv_rows(source, file, options.encoding, _delimiter(file, options))

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
        text = field(row, options.column, place)
        if has_surplus(row):
            reading.rejections.count(
                "row with more fields than the header: quote texts with the delimiter", sample=text
            )
            yield key, None
            continue
        if not isinstance(text, str | None):
            reading.rejections.count(f"row whose text is {kind_of(text)}", sample=json.dumps(text, ensure_ascii=False))
            yield key, None
            continue
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
