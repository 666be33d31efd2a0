"""Documents on their way from a raw input to a shard: the value that readers yield and the text form that all share.

The text of a document has one sentence per line and one blank line between paragraphs; headings, lists and quotes may
carry Markdown marks where the source had them.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hatchery.corpora.cutting import Piece

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
