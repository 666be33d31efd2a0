"""The documents that readers produce from raw inputs, and the interface of readers.

The text of a document has one sentence per line, or one paragraph per line if paragraphs are not split, and one blank
line between paragraphs; headings, lists and quotes may have Markdown marks if the source has such elements.

A reader is an object `READER` of the class `Reader`. Each reader has its own file in `readers/`, which also defines the
reader's options and the keys of its source. A reader lists the files to read in a source, and streams the documents of
one file. Files are read in different processes, so a document does not depend on documents of other files. Snakemake's
planning also imports the reader's file, so slow imports (lxml, pyarrow) are inside the functions or in modules that the
functions import.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """A document from a reader. `split` is set only if the source itself is divided into splits."""

    doc_id: str
    source: str
    text: str
    split: Split | None = None
    licence: str | None = None
    """The licence of this document; None if the source has no column of licences, and an empty text if this column is
    empty for this document.
    """
    numbers: Mapping[str, float] | None = None
    """The numbers of this document by column, for the columns in the option `numeric_columns` of its source; None or
    empty if the option names no column.
    """


@dataclass
class Rejections:
    """Texts that were left out: counts by reason (`rejected.csv`), and a few samples (`samples.csv`)."""

    counts: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[str]] = field(default_factory=dict)

    def count(self, reason: str, number: int = 1, sample: str | None = None) -> None:
        """Add `number` to the count of texts rejected for `reason`. `sample`, one of these texts, becomes a candidate
        for the sample texts.
        """
        self.counts[reason] += number
        if sample is not None:
            self.samples[reason] = chosen_samples([*self.samples.get(reason, ()), sample])

    def merge(self, other: "Rejections") -> None:
        """Add the counts and samples of `other` to the counts and samples of this object."""
        self.counts.update(other.counts)
        for reason, samples in other.samples.items():
            self.samples[reason] = chosen_samples([*self.samples.get(reason, ()), *samples])


def chosen_samples(texts: Iterable[str]) -> list[str]:
    """Return at most SAMPLES_KEPT different texts: those with the smallest SHA-256, each truncated to
    SAMPLE_CHARACTERS.

    The choice depends neither on the order of the texts nor on their division among processes.
    """
    cut_texts = {text[:SAMPLE_CHARACTERS] for text in texts}
    return sorted(cut_texts, key=lambda text: hashlib.sha256(text.encode("utf-8", "replace")).digest())[:SAMPLES_KEPT]


@dataclass(frozen=True)
class ReaderContext:
    """Inputs of a reader's function `read`, in addition to the source and the file: name and options of the source, the
    sentence splitter, the part of the file to read, and counters of rejected texts and of assumptions that the reader
    makes if an option is not set.
    """

    name: str
    """Name of the source in the corpus, the first part of every document's name."""
    options: Any
    """Options of the source, an instance of the reader's options class."""
    rejections: Rejections
    """Counts and samples of the texts that the reader leaves out."""
    split_sentences: Callable[[str], list[str]]
    """Function that splits one paragraph into sentences."""
    files: int | None = None
    """Number of files that the reader reads from the source; None if unknown."""
    piece: Piece | None = None
    """Piece of the file to read; None if the complete file is read."""
    english: bool = False
    """True if all text of the corpus is English according to its settings."""
    assumed: Counter[str] = field(default_factory=Counter)
    """Counts of the assumptions that a reader makes if no option is set, for `assumed.csv`."""

    @property
    def before(self) -> int:
        """Number of records (documents, rows or texts; counted as in `Piece.first`) in the file before the part
        `piece`; 0 if the complete file is read.
        """
        return 0 if self.piece is None else self.piece.first


def document_text(paragraphs: Iterable[Sequence[str]]) -> str:
    """Return the text of a document, given the sentences of each paragraph. Empty sentences and empty paragraphs are
    omitted.
    """
    blocks = (
        "\n".join(stripped for sentence in paragraph if (stripped := sentence.strip())) for paragraph in paragraphs
    )
    return "\n\n".join(block for block in blocks if block)


def count_sentences(text: str) -> int:
    """Return the number of sentences in a text: the number of its lines that are not empty."""
    return sum(1 for line in text.split("\n") if line)


def count_words(text: str) -> int:
    """Return the number of words in a text; words are separated by white space."""
    return len(text.split())


def cut(lines: Iterable[str], lines_per_document: int | None) -> Iterator[list[str]]:
    """Yield the lines of each document. A document ends at an empty line or after `lines_per_document` lines.

    The limit `lines_per_document` makes it possible to split and shuffle a corpus without document boundaries
    (AO-CHILDES, the Children's Book Test).
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
    """A source of a corpus: its name and its raw files."""

    ONE_OF: ClassVar[dict[tuple[str, ...], str]] = {("data",): "data: my_text", ("embedded",): "embedded: text"}

    name: BlockName
    """Name of the source in documents and statistics."""
    data: Annotated[DataName | SourceKeys, NameOr()] = ABSENT
    """Raw input: its name under `data` in config.yaml, or the keys of a raw input. If the keys are given, the raw input
    has the name of the corpus. Therefore, at most one source of a corpus can give keys.
    """
    embedded: Literal[
        "bnc",
        "babylm",
        "text",
        "childes",
        "c4",
        "wikipedia",
        "bookcorpus",
        "cbt",
        "parallel",
        "multilingual",
        "minimal_pairs",
    ] = ABSENT
    """Instead of `data`, the folder in the generated demo data that contains the raw files."""


@dataclass(frozen=True)
class Reader:
    """A reader: the class of its sources, and functions that list the files of a source and read one file."""

    source: Any
    """Settings class of a source with this reader; the value of the key `reader` is the name of the reader's file."""
    files: Callable[[RawSource, Any], list[str]]
    """Function that returns the names of the files to read, in reading order. Raises SourceError if there is no file.
    """
    read: Callable[[RawSource, str, ReaderContext], Iterator[RawDocument]]
    """Function that yields the documents of one file or of a piece. Raises SourceError or CorpusError naming file and
    position.
    """
    divide: Callable[[RawSource, str, Any, int], Iterator[Piece]] | None = None
    """Function that yields the pieces of a file, given the number of files of its source; it yields no piece for a file
    that is not divided.
    """
    companions: Callable[[RawSource, str, Any], list[str]] | None = None
    """Function that returns the files that are read together with a listed file, such as its translation."""
    skipped: Callable[[RawSource, Any], Counter[str]] | None = None
    """Function that counts, by file suffix, the files that the reader ignores although no option excludes them."""
    holds: Literal["texts", "translations", "preferences"] = "texts"
    """Content of a document: running text, a sentence and its translation, or a chosen and a rejected text. Sources of
    translations and preferences name the files of their splits in the option `files`.
    """

    @property
    def options(self) -> Any:
        """Return the class of the reader's options."""
        return hints_of(self.source)["options"]
