"""Unprocessed texts of large corpora, whatever format they are handed out in: streamed, one file at a time.

The vocabulary filter and the reader `raw_text` both start here. A format is one function in `raw_formats` and one line
in FORMATS; none of them cleans, lower-cases or splits anything, and none drops a text without an error. `by_suffix` is
for corpora that come in two forms: fetched from the hub as Parquet, or in the files of their makers.
"""

from collections.abc import Callable, Iterator

from hatchery.corpora.cutting import Piece
from hatchery.corpora.packed_files import matching_names, uncompressed_suffix, where_in
from hatchery.corpora.raw_formats import lines as line_formats
from hatchery.corpora.raw_formats import parquet, wikiextractor
from hatchery.corpora.raw_formats.lines import RawText
from hatchery.corpora.rows import json_lines as json_lines_of
from hatchery.corpora.settings import RawTextOptions
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

__all__ = ["BY_SUFFIX", "FORMATS", "RawText", "RawTextOptions", "raw_text_files", "raw_texts"]

FORMATS: dict[str, Callable[[Lines, str], Iterator[RawText]]] = {
    "cbt": line_formats.read_cbt,
    "json_lines": line_formats.read_json_lines,
    "parquet": parquet.read,
    "sentences": line_formats.read_sentences,
    "text": line_formats.read_text,
    "wikiextractor": wikiextractor.read,
}
BY_SUFFIX = "by_suffix"
# WikiExtractor's files are called wiki_00. A .txt file does not tell whether it holds a text, sentences or books.
_SUFFIXES = {".json": "json_lines", ".jsonl": "json_lines", ".parquet": "parquet", "": "wikiextractor"}


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
    return FORMATS[format_of(lines.source, lines.name, options)](lines, options.field)


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
