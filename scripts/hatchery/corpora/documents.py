"""Documents on their way from a raw input to a shard: the value that readers yield and the text form that all share.

The text of a document has one sentence per line and one blank line between paragraphs; headings, lists and quotes may
carry Markdown marks where the source had them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")
SCHEMA = pa.schema(
    [
        ("doc_id", pa.string()),
        ("source", pa.string()),
        ("split", pa.string()),
        ("text", pa.string()),
        ("n_sentences", pa.int32()),
        ("n_words", pa.int32()),
    ]
)


@dataclass(frozen=True)
class RawDocument:
    """A document as a reader yields it. `split` is set only where the source itself is split."""

    doc_id: str
    source: str
    text: str
    split: Split | None = None


@dataclass
class Rejections:
    """Counts of what a reader left out, by reason; they end in `rejected.csv`."""

    counts: Counter[str] = field(default_factory=Counter)

    def count(self, reason: str, number: int = 1) -> None:
        """Add `number` records that were left out for `reason`."""
        self.counts[reason] += number


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
