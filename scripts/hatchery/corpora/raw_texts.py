"""Unprocessed texts of large corpora, whatever format they are handed out in: streamed, one file at a time.

The vocabulary filter and the reader `raw_text` both start here. A format is a file in `raw_formats`; none of them
cleans, lower-cases or splits anything, and none drops a text without an error. `by_suffix` is for corpora that come in
two forms: fetched from the hub as Parquet, or in the files of their makers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from annotated_types import MinLen

from hatchery.corpora.cutting import Piece
from hatchery.corpora.packed_files import matching_names, uncompressed_suffix, where_in
from hatchery.corpora.raw_formats import FORMATS, texts_of
from hatchery.corpora.rows import json_lines as json_lines_of
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import Settings

BY_SUFFIX = "by_suffix"
# WikiExtractor's files are called wiki_00. A .txt file does not tell whether it holds a text, sentences or books.
_SUFFIXES = {".json": "json_lines", ".jsonl": "json_lines", ".parquet": "parquet", "": "wikiextractor"}

if TYPE_CHECKING:
    RawFormat = str
else:
    RawFormat = Literal[(*FORMATS, BY_SUFFIX)]
Patterns = Annotated[tuple[str, ...], MinLen(1)]


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


@dataclass(frozen=True)
class RawTextOptions(Settings):
    """Which files of a large corpus are read, and how."""

    format: RawFormat
    """Format of the files; by_suffix: .json and .jsonl, .parquet, or WikiExtractor without a suffix."""
    files: Patterns = ("*",)
    """Shell patterns of the files inside the source."""
    exclude: tuple[str, ...] = ()
    """Shell patterns of files that are left out."""
    field: str = "text"
    """Field or column with the text, for json_lines and parquet; in the latter, `translation.en` is a field of an
    object."""
    encoding: str = "utf-8"
    """Encoding of the files; Parquet is UTF-8 always."""


def raw_text_files(source: RawSource, options: RawTextOptions) -> list[str]:
    """The names of the files to read, sorted. Raises SourceError when no file matches."""
    return matching_names(source, options.files, options.exclude)


def raw_texts(source: RawSource, file: str, options: RawTextOptions) -> Iterator[RawText]:
    """The texts of one file in their order, streamed.

    Raises SourceError naming file and place of what is damaged, or a file whose suffix does not tell its format.
    """
    return texts_in(raw_lines(source, file, options), options)


def texts_in(lines: Lines, options: RawTextOptions) -> Iterator[RawText]:
    """The texts in what `raw_lines` gives."""
    return texts_of(format_of(lines.source, lines.name, options), lines, options.field)


def raw_lines(source: RawSource, file: str, options: RawTextOptions, piece: Piece | None = None) -> Lines:
    """What a format reads: the lines of a file, or of a piece of it."""
    is_json = format_of(source, file, options) == "json_lines"
    return (json_lines_of if is_json else Lines)(source, file, options.encoding, piece)


def format_of(source: RawSource, file: str, options: RawTextOptions) -> str:
    """The name of a file's format. Raises SourceError where its suffix should tell it and does not."""
    name: str = options.format
    if name == BY_SUFFIX:
        suffix = uncompressed_suffix(file)
        if suffix not in _SUFFIXES:
            raise SourceError(f"{where_in(source, file)}: the suffix does not tell the format; set the option `format`")
        name = _SUFFIXES[suffix]
    return name
