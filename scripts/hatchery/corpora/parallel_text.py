"""Parallel text: two text files line by line, or two columns of a table, as documents of two lines.

A document is a pair: its first line is the sentence in the first language, its second line that in the second. So a
parallel corpus is a corpus like any other: one tokenizer learns from both sides, token shards keep the pair apart as
two sentences, and which side is translated is a matter of the objective. White space within a line becomes one space,
so nothing in a text can pass for the end of a line.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from hatchery.corpora.documents import RawDocument, ReaderContext, Split
from hatchery.corpora.packed_files import matching_names, uncompressed_suffix, where_in
from hatchery.corpora.rows import RECORD_BYTES, csv_rows, field, json_lines, json_rows, kind_of
from hatchery.corpora.settings import ParallelTextOptions
from hatchery.corpora.text_files import Lines
from hatchery.errors import ConfigError, SourceError
from hatchery.storage.sources import RawSource

EMPTY_SIDE = "a side without text"
_ROWS_PER_BATCH = 1000
Pairs = Iterator[tuple[str, ...]]


def files(source: RawSource, options: ParallelTextOptions) -> list[str]:
    """The files of the first language, or the tables, split by split.

    Raises SourceError when a pattern matches nothing or the two sides have different numbers of files, and ConfigError
    for a table without `columns`.
    """
    return [file for _, file, _ in _listed(source, options)]


def beside(source: RawSource, file: str, options: ParallelTextOptions) -> list[str]:
    """The file of the second language that belongs to one of the first; none for a table."""
    partner = _entry(source, file, options)[2]
    return [] if partner is None else [partner]


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """The pairs of one file and its partner, streamed; those with an empty side are counted as rejected.

    Raises SourceError naming file and line of what does not fit, such as two files of different length.
    """
    options: ParallelTextOptions = context.options
    split, _, partner = _entry(source, file, options)
    pairs = _rows(source, file, options) if partner is None else _lines(source, file, partner, options)
    for number, (first, second) in enumerate(pairs):
        sides = [" ".join(side.split()) for side in (first, second)]
        if all(sides):
            yield RawDocument(f"{context.name}/{file}/{number:07d}", context.name, "\n".join(sides), split)
        else:
            context.rejections.count(EMPTY_SIDE, sample=" ||| ".join(sides))


def _listed(source: RawSource, options: ParallelTextOptions) -> Iterator[tuple[Split | None, str, str | None]]:
    """Split, file and partner of everything that is read."""
    for split, patterns in options.files.items():
        known: Split | None = None if split == "any" else split
        first, *second = (matching_names(source, (pattern,)) for pattern in patterns)
        if second and len(first) != len(second[0]):
            raise SourceError(
                f"{source.root}: files.{split}: {len(first)} files match {patterns[0]}, but {len(second[0])} match "
                f"{patterns[1]}; expected a file of the second language for each of the first"
            )
        if not second and options.columns is None:
            raise ConfigError(f"files.{split}: one table, {patterns[0]}, needs `columns`, the two columns of the pairs")
        for file, partner in zip(first, second[0] if second else [None] * len(first), strict=True):
            yield known, file, partner


def _entry(source: RawSource, file: str, options: ParallelTextOptions) -> tuple[Split | None, str, str | None]:
    return next(entry for entry in _listed(source, options) if entry[1] == file)


def _lines(source: RawSource, file: str, partner: str, options: ParallelTextOptions) -> Pairs:
    sides = [Lines(source, name, options.encoding, longest=RECORD_BYTES) for name in (file, partner)]
    for first, second in zip_longest(*sides):
        if first is None or second is None:
            longer, shorter = (sides[1], sides[0]) if first is None else (sides[0], sides[1])
            raise SourceError(
                f"{shorter.where}: ends after {shorter.line:,} lines, but {longer.where} goes on; expected a "
                "translation of every line"
            )
        yield first, second


def _rows(source: RawSource, file: str, options: ParallelTextOptions) -> Pairs:
    columns = options.columns or ()
    suffix = uncompressed_suffix(file)
    if suffix == ".parquet":
        yield from _parquet(source, file, columns)
    elif suffix in (".jsonl", ".json"):
        for place, row in json_rows(json_lines(source, file, options.encoding)):
            yield tuple(_cell(row, column, place) for column in columns)
    elif all(column.isdigit() for column in columns):
        yield from _numbered(source, file, [int(column) for column in columns], options)
    else:
        delimiter = "\t" if suffix == ".tsv" else ","
        for place, row in csv_rows(Lines(source, file, options.encoding), delimiter):
            yield tuple(_cell(row, column, place) for column in columns)


def _numbered(source: RawSource, file: str, numbers: list[int], options: ParallelTextOptions) -> Pairs:
    """Columns, counted from 1, of lines with tabs, where a quote is a quote."""
    lines = Lines(source, file, options.encoding, longest=RECORD_BYTES)
    for line in lines:
        cells = line.split("\t")
        if len(cells) < max(numbers):
            raise SourceError(
                f"{lines.where}: line {lines.line}: {len(cells)} columns between tabs, expected at least {max(numbers)}"
            )
        yield tuple(cells[number - 1] for number in numbers)


def _cell(row: Any, column: str, place: str) -> str:
    """The text in a column; `translation.de` is the field `de` of the object in `translation`."""
    value = row
    for part in column.split("."):
        if not isinstance(value, dict):
            raise SourceError(f"{place}: {column!r}: expected an object, got {kind_of(value)}")
        value = field(value, part, place)
    if not isinstance(value, str):
        raise SourceError(f"{place}: {column!r} holds {kind_of(value)}, expected a text")
    return value


def _parquet(source: RawSource, file: str, columns: tuple[str, ...]) -> Pairs:
    import pyarrow as pa
    import pyarrow.parquet as pq

    where, done = where_in(source, file), 0
    try:
        with source.open(file) as handle:
            table = pq.ParquetFile(handle, pre_buffer=False)
            tops = list(dict.fromkeys(column.partition(".")[0] for column in columns))
            if missing := [name for name in tops if name not in table.schema_arrow.names]:
                there = ", ".join(table.schema_arrow.names)
                raise SourceError(f"{where}: there is no column {missing[0]!r}; there are: {there}")
            for batch in table.iter_batches(_ROWS_PER_BATCH, columns=tops, use_threads=False):
                for row in batch.to_pylist():
                    done += 1
                    yield tuple(_cell(row, column, f"{where}: row {done}") for column in columns)
    except (OSError, EOFError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SourceError(f"{where}: after row {done}: not readable as Parquet: {reason}") from error
