"""Reading the documents of a corpus for tokenization: streamed in batches, cut into sentences.

The layout is that of the conversion stage: Parquet shards, sentences separated by one newline, paragraphs by a blank
line. Only one batch of documents is in memory at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.errors import CorpusError

COLUMNS = ("doc_id", "source", "text")


@dataclass(frozen=True)
class DocumentBatch:
    """Some documents of one shard; the three lists are parallel."""

    doc_ids: list[str]
    sources: list[str]
    texts: list[str]


def count_documents(shards: list[Path]) -> int:
    """Number of documents in the given shards, read from their footers."""
    total = 0
    for path in shards:
        with _open(path) as file:
            total += file.metadata.num_rows
    return total


def read_batches(path: Path, documents_per_batch: int) -> Iterator[DocumentBatch]:
    """Stream one shard in batches. Raises CorpusError naming the file when it is damaged or lacks a column."""
    with _open(path) as file:
        missing = [column for column in COLUMNS if column not in file.schema_arrow.names]
        if missing:
            raise CorpusError(f"{path}: lacks the column {missing[0]!r} of a document shard")
        try:
            for batch in file.iter_batches(batch_size=documents_per_batch, columns=list(COLUMNS)):
                columns = [batch.column(name).to_pylist() for name in COLUMNS]
                if any(not isinstance(value, str) for column in columns for value in column):
                    raise CorpusError(f"{path}: a document id, source or text is missing or not a string")
                yield DocumentBatch(*columns)
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise CorpusError(f"{path}: the documents cannot be read: {str(error).splitlines()[0]}") from error


def split_sentences(text: str) -> tuple[list[str], list[bool]]:
    """Cut a document into stripped sentences; the second list says which of them ends a paragraph.

    Lines that are empty after stripping separate paragraphs. The last sentence always ends one.
    """
    sentences: list[str] = []
    ends_paragraph: list[bool] = []
    for line in text.split("\n"):
        sentence = line.strip()
        if sentence:
            sentences.append(sentence)
            ends_paragraph.append(False)
        elif ends_paragraph:
            ends_paragraph[-1] = True
    if ends_paragraph:
        ends_paragraph[-1] = True
    return sentences, ends_paragraph


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise CorpusError(f"{path}: not a readable document shard: {str(error).splitlines()[0]}") from error
