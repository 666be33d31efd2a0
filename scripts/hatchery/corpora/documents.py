"""Documents on their way from a raw input to a shard, and what reads them: the text form, losses, readers.

The text of a document has one sentence per line and one blank line between paragraphs; headings, lists and quotes may
carry Markdown marks where the source had them.

A reader is a record (`READER`) in its own file of `readers/`, beside its options and what a corpus says of it. It says
which files of a source it reads and turns one file into documents, streaming. Files are read in different processes, so
a document depends on nothing but its file. Whoever plans imports the file too, so what is slow to import (lxml,
pyarrow) waits inside the functions or in modules that they import.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from hatchery.corpora.raw_files import Piece
from hatchery.raw.registration import RawSource
from hatchery.raw.settings import SourceKeys
from hatchery.settings.fields import ABSENT, BlockName, DataName, NameOr, OneOfKeys, hints_of

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
SAMPLES_KEPT = 5
SAMPLE_CHARACTERS = 300


@dataclass(frozen=True)
class RawDocument:
    """A document as a reader yields it. `split` is set only where the source itself is split."""

    doc_id: str
    source: str
    text: str
    split: Split | None = None
    licence: str | None = None
    """The licence of this document, if its source has a column with licences; empty if the document has none there."""


@dataclass
class Rejections:
    """What a reader left out: counts by reason (`rejected.csv`), and a few samples (`samples.csv`)."""

    counts: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[str]] = field(default_factory=dict)

    def count(self, reason: str, number: int = 1, sample: str | None = None) -> None:
        """Add `number` records that were left out for `reason`, and offer the text of one of them as a sample."""
        self.counts[reason] += number
        if sample is not None:
            self.samples[reason] = chosen_samples([*self.samples.get(reason, ()), sample])

    def merge(self, other: "Rejections") -> None:
        """Add what another reader left out."""
        self.counts.update(other.counts)
        for reason, samples in other.samples.items():
            self.samples[reason] = chosen_samples([*self.samples.get(reason, ()), *samples])


def chosen_samples(texts: Iterable[str]) -> list[str]:
    """Up to SAMPLES_KEPT different texts, cut to SAMPLE_CHARACTERS: those with the smallest SHA-256.

    The choice is the same whatever the order of the texts and however they were divided among processes.
    """
    cut_texts = {text[:SAMPLE_CHARACTERS] for text in texts}
    return sorted(cut_texts, key=lambda text: hashlib.sha256(text.encode("utf-8", "replace")).digest())[:SAMPLES_KEPT]


@dataclass(frozen=True)
class ReaderContext:
    """What a reader gets beside the file: how its source is called, its options, and the tools of the corpus."""

    name: str
    """Name of the source in the corpus, the first part of every document's name."""
    options: Any
    """The reader's options dataclass."""
    rejections: Rejections
    """Takes what is left out."""
    split_sentences: Callable[[str], list[str]]
    """The sentences of one paragraph."""
    files: int | None = None
    """How many files of the source are read; None where nobody counted."""
    piece: Piece | None = None
    """The part of its file that is read; None for the whole file."""
    english: bool = False
    """Whether the corpus says that all its text is English."""
    assumed: Counter[str] = field(default_factory=Counter)
    """Takes what a reader decides by itself, and how often."""

    @property
    def before(self) -> int:
        """How many records its file has before that part."""
        return 0 if self.piece is None else self.piece.first


def document_text(paragraphs: Iterable[Sequence[str]]) -> str:
    """The shared text form of paragraphs of sentences; empty sentences and paragraphs vanish."""
    blocks = (
        "\n".join(stripped for sentence in paragraph if (stripped := sentence.strip())) for paragraph in paragraphs
    )
    return "\n\n".join(block for block in blocks if block)


def count_sentences(text: str) -> int:
    """Number of lines that are not blank."""
    return sum(1 for line in text.split("\n") if line)


def count_words(text: str) -> int:
    """Number of words separated by white space."""
    return len(text.split())


def cut(lines: Iterable[str], lines_per_document: int | None) -> Iterator[list[str]]:
    """Group lines into documents: an empty line ends one, and so does reaching `lines_per_document` lines.

    The cut is what makes a corpus without boundaries (AO-CHILDES, the Children's Book Test) one that can be split and
    shuffled.
    """
    document: list[str] = []
    for line in lines:
        if line:
            document.append(line)
        if document and (not line or len(document) == lines_per_document):
            yield document
            document = []
    if document:
        yield document


@dataclass(frozen=True, kw_only=True)
class CorpusSourceKeys(OneOfKeys):
    """A raw source of a corpus."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("data",): "data: my_text", ("embedded",): "embedded: text"}

    name: BlockName
    """Appears in the documents and the statistics."""
    data: Annotated[DataName | SourceKeys, NameOr()] = ABSENT
    """Name of a raw input in config.yaml, or the keys that it would have there. Then it is called like the corpus, and
    one source alone may say it so."""
    embedded: Literal[
        "bnc", "babylm", "text", "childes", "c4", "wikipedia", "bookcorpus", "cbt", "parallel", "multilingual"
    ] = ABSENT
    """Folder of the generated miniature sources."""


@dataclass(frozen=True)
class Reader:
    """A reader: its source in a corpus's file, the files that it reads, and the documents of one of them."""

    source: Any
    """What a corpus says of a source with this reader: its `reader` is the name of the reader's file."""
    files: Callable[[RawSource, Any], list[str]]
    """Names of the members that are read, in reading order. Raises SourceError when there is none."""
    read: Callable[[RawSource, str, ReaderContext], Iterator[RawDocument]]
    """The documents of one file, or of its piece. Raises SourceError or CorpusError naming file and place."""
    divide: Callable[[RawSource, str, Any, int], Iterator[Piece]] | None = None
    """The pieces of one of so many files of a source, with the documents of the whole; none where it is not divided."""
    companions: Callable[[RawSource, str, Any], list[str]] | None = None
    """Files that are read together with one of those that are listed, such as its translation."""
    skipped: Callable[[RawSource, Any], Counter[str]] | None = None
    """Files that nobody chose to leave out and that are not read, by the ending of their names."""

    @property
    def options(self) -> Any:
        """The class of its options."""
        return hints_of(self.source)["options"]
