"""Conversion of the user's tables, JSON lines and Parquet files to documents; options select the rows.

Each row is a document. If `document_column` is set, all rows of a file with equal values in this column are one
document (a transcript, a book).
"""

import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from hatchery.corpora.csv_tables import csv_rows, has_surplus
from hatchery.corpora.documents import ReaderContext
from hatchery.corpora.prose import LineForm, Named, NamedRow, Paragraph, paragraphs_in, pieces
from hatchery.corpora.raw_files import Piece, uncompressed_suffix
from hatchery.corpora.rows import PlacedRow, cell, field, is_json_list, json_lines, json_rows, kind_of
from hatchery.corpora.text_files import Lines, pieces_between, with_unified_ends
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource

if TYPE_CHECKING:
    from hatchery.corpora.plain_text_options import PlainTextOptions

Format = Literal["text", "csv", "jsonl", "parquet"]
_FORMATS: dict[str, Format] = {
    ".txt": "text",
    ".md": "text",
    ".markdown": "text",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}
_FINAL_MARKS = (".", "?", "!", ":", ";", ",", '"')


def format_of(file: str, options: "PlainTextOptions") -> Format:
    """Return the format of a file. Raises ConfigError if neither its suffix nor an option determines it."""
    suffix = uncompressed_suffix(file)
    if options.format is None and suffix not in _FORMATS:
        raise ConfigError(f"{file}: the suffix of the file name does not determine the format; set the option `format`")
    return options.format or _FORMATS[suffix]


def _rows(
    source: RawSource, file: str, options: "PlainTextOptions", piece: Piece | None = None
) -> tuple[Lines, Iterator[PlacedRow]]:
    """Return the lines of a table's file, and an iterator over its rows."""
    kind = format_of(file, options)
    if kind == "jsonl":
        lines = json_lines(source, file, options.encoding, piece)
        return lines, json_rows(lines)
    lines = Lines(source, file, options.encoding, piece)
    if kind == "parquet":
        # Import pyarrow's module here, because planning imports this module and does not need pyarrow.
        from hatchery.corpora.parquet_files import parquet_rows

        named = {options.column, options.document_column, options.punctuation_column, options.licence_column}
        wanted = {*named, *options.keep, *options.leave_out, *options.numeric_columns} - {None}
        return lines, parquet_rows(source, file, {str(column) for column in wanted}, piece=piece)
    return lines, csv_rows(lines, options.delimiter or ("\t" if uncompressed_suffix(file) == ".tsv" else ","))


def texts_of_table(source: RawSource, file: str, options: "PlainTextOptions") -> Iterator[str]:
    """Yield the texts of the rows that the options keep."""
    for place, row in _rows(source, file, options)[1]:
        text, problem = _text_or_reason(row, place, options)
        if text is not None and not problem:
            yield text


def pieces_of_table(source: RawSource, file: str, options: "PlainTextOptions", piece_bytes: int) -> Iterator[Piece]:
    """Yield the pieces (consecutive documents) into which a table is divided, of about `piece_bytes` each; yield no
    piece for an undivided table. Raises SourceError if the file cannot be read.
    """
    kind = format_of(file, options)
    if kind == "parquet":
        return _parquet_pieces(source, file, options, piece_bytes)
    if kind == "jsonl" and is_json_list(source, file, options.encoding):
        return iter(())
    lines, rows = _rows(source, file, options)
    if options.document_column is not None:
        return _closed_pieces(rows, lines, options.document_column, piece_bytes)
    kept = (not _text_or_reason(row, place, options)[1] for place, row in rows)
    return pieces_between(kept, lines, piece_bytes, options.lines_per_document or 1)


def _parquet_pieces(source: RawSource, file: str, options: "PlainTextOptions", piece_bytes: int) -> Iterator[Piece]:
    """Divide a Parquet file into pieces of whole rows. If a document can have several rows, the file is not divided,
    and no piece is yielded.
    """
    from hatchery.corpora.parquet_files import pieces_of_column

    if options.document_column is None and options.lines_per_document is None:
        yield from pieces_of_column(Lines(source, file), options.column, piece_bytes, 1)


def _closed_pieces(rows: Iterator[PlacedRow], lines: Lines, column: str, piece_bytes: int) -> Iterator[Piece]:
    """Yield the pieces of a table in which a document can have several rows. Every document is completely inside one
    piece.
    """
    last: dict[str, int] = {}
    begins = array("Q")
    offset, line, number = 0, 0, 0
    for place, row in rows:
        key = cell(row, column, place) or ""
        if key not in last:
            begins.extend((offset, line, number))
        last[key] = number
        offset, line, number = lines.offset, lines.line, number + 1
    start = (0, 0, 0)
    done = -1
    for index, end in enumerate(last.values()):
        offset, line, row_number = begins[3 * index : 3 * index + 3]
        if row_number > done and offset - start[0] >= piece_bytes:
            yield Piece(start[0], offset, start[1], start[2], row_number - start[2])
            start = (offset, line, row_number)
        done = max(done, end)
    yield Piece(start[0], lines.offset, start[1], start[2], number - start[2])


def documents_of_table(
    source: RawSource, file: str, context: ReaderContext, form: LineForm
) -> Iterator[Named | NamedRow]:
    """Yield the documents of a table or, if `context.piece` is set, of this piece of the table; rejected rows are
    counted.
    """
    options: PlainTextOptions = context.options
    if options.document_column is not None:
        yield from _grouped(source, file, context, form, options.document_column)
        return
    if options.lines_per_document is not None:
        rows = _row_paragraphs(source, file, context, form)
        kept = (paragraphs for _, paragraphs, _, _ in rows if paragraphs is not None)
        yield from pieces((), kept, options.lines_per_document, context.before)
        return
    # In Parquet files, the row number in a document's name also counts rejected rows. A process that reads only a piece
    # of the file knows the number of rows before this piece, but not the number of rejected rows.
    all_count = format_of(file, options) == "parquet"
    number = context.before
    for _, paragraphs, licence, numbers in _row_paragraphs(source, file, context, form):
        if paragraphs is not None:
            yield (f"{number:06d}",), paragraphs, licence, numbers
        number += all_count or paragraphs is not None


def _grouped(source: RawSource, file: str, context: ReaderContext, form: LineForm, column: str) -> Iterator[Named]:
    """Yield documents in the order of their first rows. A document is yielded as soon as it and all earlier documents
    are complete.

    The table is read twice. The first pass counts the rows of each document, so that the second pass knows when a
    document is complete.
    """
    rows = _rows(source, file, context.options, context.piece)[1]
    left = Counter(cell(row, column, place) or "" for place, row in rows)
    kept: dict[str, list[list[Paragraph]]] = {}
    waiting = iter(dict.fromkeys(left))
    current = next(waiting, None)
    for key, paragraphs, _, _ in _row_paragraphs(source, file, context, form):
        left[key] -= 1
        if paragraphs is not None:
            kept.setdefault(key, []).append(paragraphs)
        while current is not None and not left[current]:
            lines = kept.pop(current, None)
            if lines is not None:
                yield from pieces((current,), lines, context.options.lines_per_document)
            current = next(waiting, None)


def _row_paragraphs(
    source: RawSource, file: str, context: ReaderContext, form: LineForm
) -> Iterator[tuple[str, list[Paragraph] | None, str | None, dict[str, float]]]:
    """Yield for each row of a table its value in `document_column` (empty without this option), its paragraphs, its
    licence, and its values in the `numeric_columns`.

    A rejected row has no paragraphs and no values. A table without a column of licences has no licences. Raises
    SourceError if an accepted row has no finite number in one of the `numeric_columns`.
    """
    options: PlainTextOptions = context.options
    for place, row in _rows(source, file, options, context.piece)[1]:
        key = "" if options.document_column is None else cell(row, options.document_column, place) or ""
        text, reason = _text_or_reason(row, place, options)
        if reason or text is None:
            context.rejections.count(reason, sample=text)
            yield key, None, None, {}
            continue
        if options.punctuation_column is not None:
            mark = options.punctuation.get(cell(row, options.punctuation_column, place) or "", ".")
            text = text.rstrip()
            text = text if text.endswith(_FINAL_MARKS) else text + mark
        named = options.licence_column
        licence = None if named is None else (cell(row, named, place) or "").strip()
        numbers = {column: _number(row, column, place) for column in options.numeric_columns}
        yield key, list(paragraphs_in(with_unified_ends(text).split("\n"), context, form)), licence, numbers


def _number(row: Mapping[str, Any], column: str, place: str) -> float:
    value = cell(row, column, place)
    try:
        number = float(value or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SourceError(f"{place}: numeric_columns: got {value!r} in the column {column!r}, expected a finite number")
    return number


def _matches(value: str, pattern: str) -> bool:
    """Return True if a value matches a pattern, in which * matches any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), value, re.DOTALL) is not None


def _text_or_reason(row: Mapping[str, Any], place: str, options: "PlainTextOptions") -> tuple[str | None, str]:
    """Return the text of a row and the reason for rejecting the row. The reason is empty for an accepted row."""
    text = field(row, options.column, place)
    if has_surplus(row):
        return text, "row with more fields than the header: quote texts with the delimiter"
    if not isinstance(text, str | None):
        return json.dumps(text, ensure_ascii=False), f"row whose text is {kind_of(text)}"
    if any(cell(row, column, place) not in values for column, values in options.keep.items()):
        return text, "row not kept by the option `keep`"
    for column, patterns in options.leave_out.items():
        value = cell(row, column, place)
        if value is not None and any(_matches(value, pattern) for pattern in patterns):
            return text, "row left out by the option `leave_out`"
    if text is None or not text.strip():
        return None, "row without text"
    return text, ""
