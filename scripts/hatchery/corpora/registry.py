"""The readers by name: what a corpus configuration may say under `reader`.

A reader says which files of a source it reads and turns one file into documents, streaming; its options are a
dataclass. Files are read in different processes, so a document depends on nothing but its file. Adding a reader means
one file and one line here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.corpora import bnc_xml, parallel_text, plain_text, raw_text_reader
from hatchery.corpora.babylm import reader as babylm
from hatchery.corpora.cutting import Piece
from hatchery.corpora.documents import RawDocument, ReaderContext
from hatchery.errors import ConfigError
from hatchery.raw.registration import RawSource
from hatchery.typed import build


@dataclass(frozen=True)
class Reader:
    """A registered reader: its options, the files that it reads, and the documents of one of them."""

    options: type
    files: Callable[[RawSource, Any], list[str]]
    """Names of the members that are read, in reading order. Raises SourceError when there is none."""
    read: Callable[[RawSource, str, ReaderContext], Iterator[RawDocument]]
    """The documents of one file, or of its piece. Raises SourceError or CorpusError naming file and place."""
    divide: Callable[[RawSource, str, Any, int], Iterator[Piece]] | None = None
    """The pieces of one of so many files of a source, with the documents of the whole; none where it is not divided."""
    beside: Callable[[RawSource, str, Any], list[str]] | None = None
    """Files that are read together with one of those that are listed, such as its translation."""
    skipped: Callable[[RawSource, Any], Counter[str]] | None = None
    """Files that nobody chose to leave out and that are not read, by the ending of their names."""


READERS: dict[str, Reader] = {
    "babylm": Reader(babylm.BabylmOptions, babylm.files, babylm.read),
    "bnc_xml": Reader(bnc_xml.BncOptions, bnc_xml.files, bnc_xml.read),
    "parallel_text": Reader(
        parallel_text.ParallelTextOptions, parallel_text.files, parallel_text.read, beside=parallel_text.beside
    ),
    "plain_text": Reader(
        plain_text.PlainTextOptions, plain_text.files, plain_text.read, plain_text.divide, skipped=plain_text.skipped
    ),
    "raw_text": Reader(
        raw_text_reader.RawTextReaderOptions, raw_text_reader.files, raw_text_reader.read, raw_text_reader.divide
    ),
}


def reader_and_options(name: str, options: Mapping[str, Any], where: str) -> tuple[Reader, Any]:
    """The reader called `name` and its checked options. Raises ConfigError, beginning with `where`."""
    if name not in READERS:
        raise ConfigError(f"{where}.reader: there is no reader {name!r}; there are: {', '.join(sorted(READERS))}")
    try:
        return READERS[name], build(READERS[name].options, options)
    except ConfigError as error:
        raise ConfigError(f"{where}.options.{error}") from error
