"""Transcripts of talks from WIT3 for IWSLT: `train.tags.de-en.de` and `*.xml`, with one file per language.

Source: "A Natural Bias for Language Generation Models", Section 4.1 (IWSLT'14). Training files have one sentence per
line. Other lines are tags that describe a talk (<url>, <talkid>, <speaker>, ...) and are left out, but titles and
descriptions are read as sentences. In held-out files, which are XML, each `<seg>` element is a sentence. Sentences with
the same index in both languages form a document of two lines, as in `parallel_text`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import zip_longest
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from hatchery.corpora.documents import CorpusSourceKeys, RawDocument, Reader, ReaderContext
from hatchery.corpora.raw_files import uncompressed_suffix
from hatchery.corpora.readers import parallel_text
from hatchery.corpora.rows import RECORD_BYTES
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import Settings

SENTENCE = re.compile(r"\s*<(title|description)>(.*)</\1>\s*")
ABOUT_A_TALK = re.compile(r"\s*</?(url|keywords|speaker|talkid|title|description|reviewer|translator|doc)\b.*")
SEGMENT = re.compile(r"\s*<seg\b[^>]*>(.*)</seg>\s*")
Names = Annotated[tuple[str, ...], MinLen(2), MaxLen(2)]


@dataclass(frozen=True)
class Wit3Options(Settings):
    """Options of the reader `wit3`: the files of each split."""

    files: Annotated[dict[Literal["train", "dev", "test", "any"], Names], MinLen(1)]
    """Shell patterns by split, first language first: `["train.tags.de-en.de", "train.tags.de-en.en"]`, or
    `["*.de-en.de.xml", "*.de-en.en.xml"]`. Files under the key `any` belong to no split; their text is divided into
    splits according to the corpus's key `split`.
    """

    @property
    def as_text(self) -> parallel_text.ParallelTextOptions:
        """Return the options of the reader `parallel_text` for the same files. With these options, functions of
        `parallel_text` list the files and find the split of a file.
        """
        return parallel_text.ParallelTextOptions(dict(self.files))


@dataclass(frozen=True, kw_only=True)
class Wit3Source(CorpusSourceKeys):
    """Source with transcripts of talks and their translations."""

    reader: Literal["wit3"]
    """Reader of WIT3's files for IWSLT: lines between tags, and XML; every pair becomes a document of two lines."""
    options: Wit3Options
    """Options of the reader."""


def files(source: RawSource, options: Wit3Options) -> list[str]:
    """Return the files of the first language. Raises SourceError if a pattern matches no file, if two patterns match
    the same file, or if a file has no partner in the other language.
    """
    return parallel_text.files(source, options.as_text)


def companions(source: RawSource, file: str, options: Wit3Options) -> list[str]:
    """Return the second-language file of a first-language file, as a list with one name."""
    return parallel_text.companions(source, file, options.as_text)


def read(source: RawSource, file: str, context: ReaderContext) -> Iterator[RawDocument]:
    """Yield the sentence pairs of a file and its partner in the other language, streamed. Pairs with an empty sentence
    are counted as rejected.

    Raises SourceError if one of the two files is shorter, naming this file, and if a `<seg>` element does not end in
    its line, naming the line.
    """
    options: Wit3Options = context.options
    (partner,) = companions(source, file, options)
    split = parallel_text.split_of(source, file, options.as_text)
    return parallel_text.documents_of(_pairs(source, file, partner), file, split, context)


def _pairs(source: RawSource, file: str, partner: str) -> parallel_text.Pairs:
    sides = [Lines(source, name, longest=RECORD_BYTES) for name in (file, partner)]
    for number, pair in enumerate(zip_longest(*map(_sentences, sides))):
        if None in pair:
            ended = sides[pair.index(None)]
            raise SourceError(f"{ended.where}: ends after {number:,} sentences, but the other language continues")
        yield pair


def _sentences(lines: Lines) -> Iterator[str]:
    """Yield the sentences of a file. The sentences of an XML file are its segments. The sentences of a training file
    are the contents of the tags <title> and <description>, and the lines that are not tags.
    """
    is_xml = uncompressed_suffix(lines.name) == ".xml"
    for line in lines:
        if is_xml:
            if segment := SEGMENT.fullmatch(line):
                yield unescape(segment[1])
            elif "<seg" in line:
                raise SourceError(
                    f"{lines.where}: line {lines.line}: a <seg> element does not end in this line, expected </seg>"
                )
        elif sentence := SENTENCE.fullmatch(line):
            yield sentence[2]
        elif not ABOUT_A_TALK.fullmatch(line):
            yield line


READER = Reader(Wit3Source, files, read, companions=companions, holds="translations")
