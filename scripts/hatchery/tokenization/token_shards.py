"""The file format of token shards: one Arrow IPC file per document shard, one row per document.

The files are uncompressed and hold exactly one record batch, so that a reader maps them into memory and sees the ids
as a numpy array without copying. Writer and schema live here; `token_reader` reads.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from hatchery.artifacts.atomic import atomic_path
from hatchery.errors import TokenizationError

LARGEST_UINT16_VOCABULARY = 65_535
MOST_TOKENS_PER_SHARD = 2**31 - 1


@dataclass(frozen=True)
class TokenTable:
    """The rows of one shard, flat: document `d` owns the ids from `document_starts[d]` to `document_starts[d + 1]`.

    `ids` [tokens] has the dtype of the vocabulary, `word_starts` [tokens] is bool. `sentence_starts` [sentences] are
    offsets inside their document; document `d` owns those from `sentence_bounds[d]` to `sentence_bounds[d + 1]`.
    """

    doc_ids: list[str]
    ids: np.ndarray
    word_starts: np.ndarray
    document_starts: np.ndarray
    sentence_starts: np.ndarray
    sentence_bounds: np.ndarray


def id_dtype(vocabulary_size: int) -> np.dtype:
    """The smallest of `uint16` and `uint32` that holds every id."""
    return np.dtype(np.uint16 if vocabulary_size <= LARGEST_UINT16_VOCABULARY else np.uint32)


def shard_schema(vocabulary_size: int) -> pa.Schema:
    """The columns of a shard for this vocabulary size."""
    return pa.schema(
        [
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("ids", _list_of(pa.from_numpy_dtype(id_dtype(vocabulary_size))), nullable=False),
            pa.field("sentence_starts", _list_of(pa.int32()), nullable=False),
            pa.field("word_starts", _list_of(pa.bool_()), nullable=False),
        ]
    )


def write_shard(path: str | Path, table: TokenTable, vocabulary_size: int) -> None:
    """Write one shard atomically. Raises TokenizationError when it has more tokens than a 32-bit offset can count."""
    if len(table.ids) > MOST_TOKENS_PER_SHARD:
        raise TokenizationError(
            f"{path}: {len(table.ids):,} tokens do not fit into one shard; lower documents_per_shard of the corpus"
        )
    schema = shard_schema(vocabulary_size)
    document_starts = pa.array(table.document_starts, pa.int32())
    columns = {
        "doc_id": pa.array(table.doc_ids, pa.string()),
        "ids": (document_starts, table.ids),
        "sentence_starts": (pa.array(table.sentence_bounds, pa.int32()), table.sentence_starts),
        "word_starts": (document_starts, table.word_starts),
    }
    arrays = []
    for field in schema:
        column = columns[field.name]
        if isinstance(column, tuple):
            offsets, values = column
            column = pa.ListArray.from_arrays(offsets, pa.array(values, field.type.value_type), type=field.type)
        arrays.append(column)
    with atomic_path(path) as partial, pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))


def _list_of(value_type: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("item", value_type, nullable=False))
