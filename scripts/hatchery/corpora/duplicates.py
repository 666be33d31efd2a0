"""Texts that occur in a corpus more than once: whole documents, and long lines (at least LONG_LINE characters) in any
document.

Equal texts are recognised by keys of 64 bits, which are kept in memory: one key per document and one key per long line.
In a corpus of a billion lines, the size of the largest corpora, two or more different lines have the same key with a
probability of 3 %.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hatchery.artifacts.parquet import read_groups
from hatchery.corpora.documents import document_text

LONG_LINE = 100
"""Minimum number of characters of a long line, chosen so that equal long lines are unlikely to be coincidence."""
DUPLICATES = "duplicates.csv"
HEADER = (
    *("source", "split", "documents", "repeated_documents", "documents_in_training"),
    *("long_lines", "repeated_long_lines", "long_lines_in_training"),
)
NOTED_SHARE = 0.01
"""Share of repeated documents, or of repeated long lines, above which the job reports the number of repeated texts."""
KEYS = [pa.field("point", pa.uint64()), pa.field("long_lines", pa.list_(pa.field("item", pa.uint64())))]
"""The columns with the keys of documents and long lines. The key of a document is the pseudo-random number that
determines its split (`corpus_writer.point`).
"""

Uints = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


def _key(line: str) -> int:
    return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=8).digest(), "big")


def line_keys(text: str) -> list[int]:
    """Return the keys of a document's long lines (at least LONG_LINE characters), in the order of the lines."""
    return [_key(line) for line in text.split("\n") if len(line) >= LONG_LINE]


def without_lines(text: str, dropped: Iterable[bool]) -> str:
    """Return the text without some of its long lines (at least LONG_LINE characters). `dropped` has one value per long
    line, which is true if the line is removed.
    """
    drops = iter(dropped)
    return document_text(
        [line for line in paragraph.split("\n") if len(line) < LONG_LINE or not next(drops)]
        for paragraph in text.split("\n\n")
    )


def repeated(keys: Uints) -> Bools:
    """Return a mask with the shape of `keys`: True for a key that occurs earlier in `keys`."""
    is_repeated = np.ones(len(keys), dtype=np.bool_)
    is_repeated[np.unique(keys, return_index=True)[1]] = False
    return is_repeated


@dataclass(frozen=True)
class TextKeys:
    """Keys of 64 bits that recognise equal texts: one key per document and one key per long line (at least LONG_LINE
    characters), in corpus order.

    The long lines of document `d` have the indices `starts[d]` to `starts[d + 1] - 1`.
    """

    points: Uints
    """Key of each document, shape (documents,)."""
    lines: Uints
    """Key of each long line, shape (lines,)."""
    starts: npt.NDArray[np.int64]
    sources: list[str]
    """The source of each document."""
    given: list[str | None]
    """The split that the source gives to each document; None if the source is not divided into splits."""

    @classmethod
    def read(cls, parts: Iterable[Path]) -> "TextKeys":
        """Return the keys of the documents in Parquet files."""
        points, lines, counts = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)], [np.zeros(1, np.int64)]
        sources: list[str] = []
        given: list[str | None] = []
        for part in parts:
            for table in read_groups(part, ["source", "split", *(field.name for field in KEYS)]):
                points.append(table["point"].to_numpy())
                for chunk in table["long_lines"].chunks:
                    lines.append(chunk.flatten().to_numpy())
                    counts.append(np.diff(chunk.offsets.to_numpy()))
                sources += table["source"].to_pylist()
                given += table["split"].to_pylist()
        starts = np.cumsum(np.concatenate(counts, dtype=np.int64))
        return cls(np.concatenate(points), np.concatenate(lines), starts, sources, given)


class Duplicates:
    """Flags in corpus order, which are True for texts that occur earlier in the corpus. `documents` contains one flag
    per document, and `lines` contains one flag per long line (at least LONG_LINE characters).
    """

    def __init__(self, keys: TextKeys, splits: list[str]) -> None:
        self.keys = keys
        self.splits = splits
        self.documents = repeated(keys.points)
        self.lines = repeated(keys.lines)

    def lines_of(self, document: int) -> Iterator[bool]:
        """Yield for each long line (at least LONG_LINE characters) of a document whether the line occurs earlier in the
        corpus.
        """
        yield from self.lines[self.keys.starts[document] : self.keys.starts[document + 1]].tolist()

    def any_of(self, start: int, end: int) -> bool:
        """Return whether any of the documents `start` to `end - 1`, or a line of at least LONG_LINE characters in these
        documents, occurs earlier in the corpus.
        """
        lines = self.lines[self.keys.starts[start] : self.keys.starts[end]]
        return bool(self.documents[start:end].any() or lines.any())

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of `duplicates.csv` (columns HEADER): counts by source and split, in corpus order.

        The rows of held-out splits also contain the numbers of documents and long lines (at least LONG_LINE characters)
        that occur anywhere in the training split.
        """
        lengths = np.diff(self.keys.starts)
        trained = np.array([split == "train" for split in self.splits], dtype=np.bool_)
        of_line = np.repeat(trained, lengths)
        in_training = np.isin(self.keys.points, self.keys.points[trained]) & ~trained
        lines_in_training = np.isin(self.keys.lines, self.keys.lines[of_line]) & ~of_line
        counted = np.stack(
            [
                np.ones(len(self.splits), dtype=np.int64),
                self.documents,
                in_training,
                lengths,
                self._sums(self.lines),
                self._sums(lines_in_training),
            ]
        )
        groups: dict[tuple[str, str], list[int]] = {}
        for index, group in enumerate(zip(self.keys.sources, self.splits, strict=True)):
            groups.setdefault(group, []).append(index)
        return [(*group, *counted[:, indices].sum(axis=1).tolist()) for group, indices in groups.items()]

    def _sums(self, flags: Bools) -> npt.NDArray[np.int64]:
        """Return for each document the number of its long lines (at least LONG_LINE characters) with the flag True.
        `flags` contains one flag per long line of the corpus.
        """
        return np.diff(np.concatenate([[0], np.cumsum(flags)])[self.keys.starts])


def duplicates_note(rows: Iterable[tuple[Any, ...]], source: str) -> str:
    """Return the job's note about repeated texts of a source; empty if few texts are repeated."""
    counts = [row[2:] for row in rows if row[0] == source]
    documents, again, _, lines, lines_again, _ = (
        (sum(column) for column in zip(*counts, strict=True)) if counts else [0] * 6
    )
    counted = [
        f"{number:,} of {total:,} {what}"
        for number, total, what in ((again, documents, "documents"), (lines_again, lines, "long lines"))
        if number > NOTED_SHARE * total
    ]
    return f"{' and '.join(counted)} repeat an earlier text of the corpus" if counted else ""
