"""Selected texts as Parquet: one temporary file (part) per group of input files, and the choice of the texts to keep.

The final shards are joined from the parts by copying whole columns, which is much cheaper than the selection. If the
choice of texts depends on all parts, a part stores a mark of 16 bytes for each text. To remove duplicates, the mark is
a digest of the text, and only the first of equal texts is kept. To draw texts, the mark is a random number, and the
texts with the smallest numbers are kept.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hatchery.artifacts.parquet import ROW_GROUP_BYTES, TableWriter, read_groups

SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("document", pa.string()),
        ("unit", pa.int32()),
        ("text", pa.string()),
        ("n_words", pa.int32()),
        ("n_counted", pa.int32()),
    ]
)
"""Schema of selected texts. `unit` is the index of the text's unit, a group of documents in which equal texts are kept
once. `n_words` is the number of words that single spaces separate, and `n_counted` is the number of counted words (see
`comparison`).
"""

MARK_BYTES = 16
_PART_SCHEMA = pa.schema(
    [*(SCHEMA.field(index) for index in range(1, 6)), ("within", pa.bool_()), ("mark", pa.binary(MARK_BYTES))]
)
_ROW_BYTES = 64


class PartWriter:
    """Writes the texts that one process has selected to a Parquet file, in constant memory."""

    def __init__(self, path: Path) -> None:
        self._table = TableWriter(path, _PART_SCHEMA)
        self._columns: list[list[object]] = [[] for _ in _PART_SCHEMA]
        self._bytes = 0

    def write(
        self, document: str, unit: int, text: str, n_counted: int, mark: bytes | None = None, within: bool = True
    ) -> None:
        """Add a text to the file.

        `document` is the name of the text's document, and `unit` is the index of the document's unit (a group of
        documents). `n_counted` is the number of words that `counted_words` counts. `within` is True if the text
        contains no hyperlink, and all of its words are in the vocabulary of the selection. `mark` determines later
        which texts are kept: it is a digest of the text (to remove duplicates), a random number (to draw texts), or
        None. Lone surrogates become U+FFFD, because Parquet cannot contain them.
        """
        if not text.isascii():
            text = without_surrogates(text)
        values = (document, unit, text, text.count(" ") + 1, n_counted, within, mark)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self._bytes += len(text) + _ROW_BYTES
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        table = pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(self._columns, _PART_SCHEMA, strict=True)],
            schema=_PART_SCHEMA,
        )
        self._table.write_table(table)
        self._columns = [[] for _ in _PART_SCHEMA]
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._table:
            if error is not None:
                raise error
            if self._bytes:
                self._flush()


def without_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def marks_of(paths: Sequence[Path]) -> npt.NDArray[np.uint64]:
    """Return the marks (digests or random numbers) of all texts in the order of the corpus, uint64 [texts, 2]. A mark
    has 16 bytes and is stored as two numbers.
    """
    mark_arrays = [np.empty((0, 2), np.uint64)]
    for path in paths:
        for table in read_groups(path, ["mark"]):
            for chunk in table.column("mark").chunks:
                marks = np.frombuffer(chunk.buffers()[1], ">u8", 2 * len(chunk), offset=chunk.offset * MARK_BYTES)
                mark_arrays.append(marks.astype(np.uint64).reshape(-1, 2))
    return np.concatenate(mark_arrays)


def first_of_equal(marks: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return True for each text to keep, bool [texts]: of several texts with equal marks (digests), the first text is
    kept.
    """
    # lexsort is stable, so texts with equal marks (equal digests) keep the order of the corpus.
    order = np.lexsort((marks[:, 1], marks[:, 0]))
    ordered = marks[order]
    keep = np.zeros(len(marks), np.bool_)
    keep[order[:1]] = True
    keep[order[1:][np.any(ordered[1:] != ordered[:-1], axis=1)]] = True
    return keep


def smallest(marks: npt.NDArray[np.uint64], number: int) -> npt.NDArray[np.bool_]:
    """Return True for each text to keep, bool [texts]: the `number` texts with the smallest marks (random numbers) are
    kept.
    """
    keep = np.zeros(len(marks), np.bool_)
    keep[np.lexsort((marks[:, 1], marks[:, 0]))[:number]] = True
    return keep
