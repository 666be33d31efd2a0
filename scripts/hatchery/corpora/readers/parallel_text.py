"""Parallel text as documents of two lines: two text files line by line, or two columns of a table.

A document is a sentence pair: its first line is the sentence in the first language, and its second line is the sentence
in the second language. So all stages treat a parallel corpus like any other corpus: one tokenizer is trained on both
languages, and token shards store a pair as a document of two sentences. Only the objective distinguishes the source
language from the target language. White space within a line becomes one space, so a text contains no line ends.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from hatchery.corpora.csv_tables import csv_rows
from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext, Split
from hatchery.corpora.raw_files import matching_names, uncompressed_suffix
from hatchery.corpora.rows import RECORD_BYTES, field, json_lines, json_rows, kind_of
from hatchery.corpora.text_files import Lines
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import RefusedError, Settings
from hatchery.settings.fields import Unique

EMPTY_SIDE = "a side without text"
Pairs = Iterator[tuple[str, ...]]


@dataclass(frozen=True)
class ParallelTextOptions(Settings):
    """Options of the reader `parallel_text`: the files of each split, and their format."""

    files: Annotated[dict[Literal["train", "dev", "test", "any"], Annotated[tuple[str, ...], MinLen(1)]], MinLen(1)]
    """Shell patterns by split: two text files with one sentence per line, first language first, or one table (.tsv,
    .csv, .jsonl, .parquet). If patterns match several files, files whose wildcards match the same text form a pair:
    `a.de` and `a.en` with `*.de` and `*.en`. Files under the key `any` belong to no split; their text is divided into
    splits according to the corpus's key `split`.
    """
    columns: Annotated[tuple[str, ...], MinLen(2), Unique()] | None = None
    """For a table, its two columns or fields, first language first; `translation.de` is a field of an object. Numbers,
    such as ["1", "2"], are columns of tab-separated text without a header. For text files, `null`.
    """
    encoding: str = "utf-8"
    """Encoding of all files; Parquet is always UTF-8."""

    def __post_init__(self) -> None:
        for split, patterns in self.files.items():
            if len(patterns) > 2:
                raise RefusedError(f"files.{split}", f"got {len(patterns)} patterns, expected two files or one table")
        if self.columns is not None and len(self.columns) != 2:
            raise RefusedError(
                "columns", f"got {len(self.columns)} columns, expected two columns, one for each language"
            )
        for number in self.columns or ():
            if number.isdigit() and int(number) == 0:
                raise RefusedError("columns", f'got {number!r}, expected numbers from 1: the first column is "1"')
        for split, patterns in self.files.items():
            if self.columns is not None and len(patterns) == 2:
                raise RefusedError(
                    "columns",
                    f"got columns, but files.{split} names two text files; expected one table, or no columns",
                )


@dataclass(frozen=True, kw_only=True)
class ParallelTextSource(CorpusSourceKeys):
    """Source of sentences and their translations."""

    reader: Literal["parallel_text"]
    """Reader of two text files line by line, or of two columns of a table; every pair becomes a document of two
    lines."""
    options: ParallelTextOptions
    """Options of the reader."""


def files(source: RawSource, options: ParallelTextOptions) -> list[str]:
    """Return the names of the first-language files or, for tables with both languages, of the tables. They are in the
    order of the splits in the option `files`.

    Raises SourceError if a pattern matches no file, if two patterns match the same file, or if a file has no partner in
    the other language. Raises ConfigError for a table without `columns`.
    """
    return [file for _, file, _ in _listed(source, options)]


def companions(source: RawSource, file: str, options: ParallelTextOptions) -> list[str]:
    """Return the second-language file of a first-language file. For a table, which contains both languages, return an
    empty list."""
    partner = _entry(source, file, options)[2]
    return [] if partner is None else [partner]


def split_of(source: RawSource, file: str, options: ParallelTextOptions) -> Split | None:
    """Return the split of a file: the key in the option `files` whose patterns match the file. Return None for the key
    `any`, because the conversion then draws the held-out pairs.
    """
    return _entry(source, file, options)[0]


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the sentence pairs of one table, or of one file and its partner in the other language, streamed. Pairs with
    an empty sentence are counted as rejected.

    Raises SourceError naming file and line of mismatches, such as two files of different length.
    """
    options: ParallelTextOptions = context.options
    split, _, partner = _entry(source, file, options)
    if partner is None:
        pairs = rows(source, file, options.columns or (), options.encoding)
    else:
        pairs = _lines(source, file, partner, options)
    return documents_of(pairs, file, split, context)


def documents_of(pairs: Pairs, file: str, split: Split | None, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the pairs of a file as documents of one line per text: two sentences, or two texts with a prompt before
    them. Pairs with an empty text are counted as rejected."""
    for number, pair in enumerate(pairs):
        sides = [" ".join(side.split()) for side in pair]
        if all(sides):
            yield RawDocument(f"{context.name}/{file}/{number:07d}", context.name, "\n".join(sides), split)
        else:
            context.rejections.count(EMPTY_SIDE, sample=" ||| ".join(sides))


def _listed(source: RawSource, options: ParallelTextOptions) -> Iterator[tuple[Split | None, str, str | None]]:
    """Yield (split, table, None) for each table, and (split, first-language file, second-language file) for each pair
    of files.
    """
    matched_by: dict[str, str] = {}
    for split, patterns in options.files.items():
        document_split: Split | None = None if split == "any" else split
        sides = [matching_names(source, (pattern,)) for pattern in patterns]
        for pattern, names in zip(patterns, sides, strict=True):
            place = f"files.{split}: {pattern}"
            for name in names:
                if name in matched_by:
                    raise SourceError(
                        f"{source.root}: {name} is matched by {matched_by[name]} and by {place}; expected every file "
                        "in one split and one language, because held-out text could otherwise become training text; "
                        "use narrower patterns"
                    )
                matched_by[name] = place
        if len(sides) == 1 and options.columns is None:
            raise ConfigError(f"files.{split}: one table, {patterns[0]}, needs `columns`, the two columns of the pairs")
        if len(sides) == 1:
            yield from ((document_split, file, None) for file in sides[0])
        else:
            yield from ((document_split, *pair) for pair in _partners(source, split, patterns, sides))


def _partners(
    source: RawSource, split: str, patterns: Sequence[str], sides: Sequence[Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yield pairs of a first-language and a second-language file: two files are a pair if the wildcards of both
    patterns match the same text.

    If each language has only one file, these two files are a pair, for any names.
    """
    if [len(names) for names in sides] == [1, 1]:
        yield sides[0][0], sides[1][0]
        return
    first, second = (
        {_shared(pattern, name): name for name in names} for pattern, names in zip(patterns, sides, strict=True)
    )
    for these, others, other in ((first, second, patterns[1]), (second, first, patterns[0])):
        if alone := next((name for shared, name in these.items() if shared not in others), None):
            raise SourceError(
                f"{source.root}: files.{split}: {alone} has no partner among the files that {other} "
                "matches; expected a file in whose name the wildcards match the same text"
            )
    yield from ((name, second[shared]) for shared, name in first.items())


def _shared(pattern: str, name: str) -> tuple[str, ...]:
    """Return the text that the wildcards of a pattern match in a file name: `a` for the file `a.de` and the pattern
    `*.de`.
    """
    parts = re.split(r"(\*+|\?|\[[^\]]+\])", pattern)
    groups = {"*": "(.*)", "?": "(.)", "[": "({})"}
    text = "".join(
        groups[part[0]].format(part.replace("[!", "[^")) if index % 2 else re.escape(part)
        for index, part in enumerate(parts)
    )
    match = re.fullmatch(text, name, re.DOTALL)
    return match.groups() if match else (name,)


def _entry(source: RawSource, file: str, options: ParallelTextOptions) -> tuple[Split | None, str, str | None]:
    return next(entry for entry in _listed(source, options) if entry[1] == file)


def _lines(source: RawSource, file: str, partner: str, options: ParallelTextOptions) -> Pairs:
    sides = [Lines(source, name, options.encoding, longest=RECORD_BYTES) for name in (file, partner)]
    for first, second in zip_longest(*sides):
        if first is None or second is None:
            longer, shorter = (sides[1], sides[0]) if first is None else (sides[0], sides[1])
            raise SourceError(
                f"{shorter.where}: ends after {shorter.line:,} lines, but {longer.where} continues; expected a "
                "translation of every line"
            )
        yield first, second


def rows(source: RawSource, file: str, columns: Sequence[str], encoding: str) -> Pairs:
    """Yield the texts in `columns` of each row of a table. Raises SourceError, naming file and line, for a row without
    one of these columns, and for a value that is not text.
    """
    suffix = uncompressed_suffix(file)
    if suffix == ".parquet":
        # Import pyarrow's module here, because planning imports this module and does not need pyarrow.
        from hatchery.corpora.parquet_files import parquet_rows

        tops = {column.partition(".")[0] for column in columns}
        for place, row in parquet_rows(source, file, tops):
            yield tuple(_cell(row, column, place) for column in columns)
    elif suffix in (".jsonl", ".json"):
        for place, row in json_rows(json_lines(source, file, encoding)):
            yield tuple(_cell(row, column, place) for column in columns)
    elif all(column.isdigit() for column in columns):
        yield from _numbered(source, file, [int(column) for column in columns], encoding)
    else:
        delimiter = "\t" if suffix == ".tsv" else ","
        for place, row in csv_rows(Lines(source, file, encoding), delimiter):
            yield tuple(_cell(row, column, place) for column in columns)


def _numbered(source: RawSource, file: str, numbers: list[int], encoding: str) -> Pairs:
    """Yield the sentence pairs in the columns `numbers` (counted from 1) of tab-separated lines, in which quotes are
    ordinary characters."""
    lines = Lines(source, file, encoding, longest=RECORD_BYTES)
    for line in lines:
        cells = line.split("\t")
        if len(cells) < max(numbers):
            raise SourceError(f"{lines.place}: {len(cells)} columns between tabs, expected at least {max(numbers)}")
        yield tuple(cells[number - 1] for number in numbers)


def _cell(row: Any, column: str, place: str) -> str:
    """Return the text in a column; `translation.de` is the field `de` of the object in `translation`."""
    value = row
    for part in column.split("."):
        if not isinstance(value, dict):
            raise SourceError(f"{place}: {column!r}: expected an object, got {kind_of(value)}")
        value = field(value, part, place)
    if not isinstance(value, str):
        raise SourceError(f"{place}: {column!r} holds {kind_of(value)}, expected a text")
    return value


READER = Reader(ParallelTextSource, files, read, companions=companions, holds="translations")
