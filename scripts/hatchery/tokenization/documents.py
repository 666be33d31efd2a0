"""Reading the documents of a corpus for tokenization: shards by split, streamed in batches, cut into sentences.

The layout is that of the conversion stage: Parquet shards `{split}-{i}-of-{n}.parquet`, sentences separated by one
newline, paragraphs by a blank line. Only one batch of documents is in memory at a time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.errors import CorpusError
from hatchery.storage.manifests import Manifest, OutputFile

SHARD_NAME = re.compile(r"(?P<split>[a-z]+)-(?P<index>\d{5})-of-(?P<total>\d{5})\.(?:parquet|arrow)")
COLUMNS = ("doc_id", "source", "text")


@dataclass(frozen=True)
class DocumentBatch:
    """Some documents of one shard; the three lists are parallel."""

    doc_ids: list[str]
    sources: list[str]
    texts: list[str]


def shards_by_split(manifest: Manifest, suffix: str = ".parquet", only: str | None = None) -> dict[str, list[Path]]:
    """The shards that a manifest names, by split (sorted) and within a split in order of their number.

    Their bytes are compared with the manifest's checksums, of one split alone where `only` names it ("" for none).
    Raises ManifestError for a shard that differs, and CorpusError when there is none, or when a split lacks a shard or
    mixes two runs.
    """
    shards: dict[str, dict[int, OutputFile]] = {}
    totals: dict[str, set[int]] = {}
    for output in manifest.listed(suffix):
        match = SHARD_NAME.fullmatch(output.path.name)
        if match:
            shards.setdefault(match["split"], {})[int(match["index"])] = output
            totals.setdefault(match["split"], set()).add(int(match["total"]))
    if not shards:
        raise CorpusError(f"{manifest.path}: names no file like train-00000-of-00001{suffix}")
    for split, paths in shards.items():
        if totals[split] != {len(paths)} or sorted(paths) != list(range(len(paths))):
            raise CorpusError(f"{manifest.path}: the shards of split {split!r} are not complete: found {sorted(paths)}")
    return {
        split: [
            manifest.checked(shards[split][index]) if only in (None, split) else shards[split][index].path
            for index in sorted(shards[split])
        ]
        for split in sorted(shards)
    }


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
