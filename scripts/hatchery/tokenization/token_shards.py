"""Token shards: one Arrow IPC file per document shard, with one row per document; writer and reader.

A file is uncompressed and contains one record batch, so a reader maps the file into memory and uses the ids as a numpy
array without copying. `TokenShards` gives random access to the documents of a split, in the order of the corpus.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from hatchery.artifacts.atomic import atomic_path
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.corpora.word_counting import word_count_of
from hatchery.errors import CorpusError, TokenizationError, first_line
from hatchery.tokenization.documents import TOKEN_SHARDS, shards_by_split
from hatchery.tokenization.special_tokens import recorded_special_tokens

LARGEST_UINT16_VOCABULARY = 65_535
MOST_TOKENS_PER_SHARD = 2**31 - 1


@dataclass(frozen=True)
class TokenTable:
    """The documents of one shard, concatenated. Document `d` has the ids from `document_starts[d]` to
    `document_starts[d + 1] - 1`.

    `ids` [tokens] has the dtype `id_dtype`; `word_starts` [tokens] is bool. `sentence_starts` [sentences] are token
    offsets within their document; document `d` has the sentences from `sentence_bounds[d]` to `sentence_bounds[d + 1] -
    1`. If `word_starts` are the starts of pre-tokens, `text_word_starts` [tokens] are the starts of words between white
    space. For corpora that count words by another rule than white space, `word_counts` [tokens], uint16, is the number
    of words that begin in each token.
    """

    doc_ids: list[str]
    ids: np.ndarray
    word_starts: np.ndarray
    document_starts: np.ndarray
    sentence_starts: np.ndarray
    sentence_bounds: np.ndarray
    text_word_starts: np.ndarray | None = None
    word_counts: np.ndarray | None = None


def id_dtype(vocabulary_size: int) -> np.dtype:
    """Return `uint16` for at most LARGEST_UINT16_VOCABULARY entries, otherwise `uint32`."""
    return np.dtype(np.uint16 if vocabulary_size <= LARGEST_UINT16_VOCABULARY else np.uint32)


ORDINARY = "ordinary"
"""Key for the sum over all ordinary tokens in the measure `token_bytes`."""
TEXT_WORDS = "text_word_starts"
"""Column of the starts of words between white space, for tokenizers whose `word_starts` are the starts of
pre-tokens."""
WORD_COUNTS = "word_counts"
"""Column of the number of words that begin in each token, if the word-counting rule is not white space."""
COUNTED = (None, TEXT_WORDS, WORD_COUNTS)
"""Names of the optional columns of a shard; None means no optional column. A shard has at most one optional column."""


def shard_schema(vocabulary_size: int, counted: str | None = None) -> pa.Schema:
    """Return the columns of a shard; `counted`, a value of `COUNTED`, is the name of the optional column of word counts
    or word starts.
    """
    columns = {
        "doc_id": pa.string(),
        "ids": _list_of(pa.from_numpy_dtype(id_dtype(vocabulary_size))),
        "sentence_starts": _list_of(pa.int32()),
        "word_starts": _list_of(pa.bool_()),
    }
    if counted is not None:
        columns[counted] = _list_of(pa.bool_() if counted == TEXT_WORDS else pa.uint16())
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


def write_shard(path: str | Path, table: TokenTable, vocabulary_size: int) -> None:
    """Write one shard atomically. Raises TokenizationError for more tokens than a 32-bit offset can address."""
    if len(table.ids) > MOST_TOKENS_PER_SHARD:
        raise TokenizationError(
            f"{path}: {len(table.ids):,} tokens do not fit into one shard; lower documents_per_shard of the corpus"
        )
    own = {TEXT_WORDS: table.text_word_starts, WORD_COUNTS: table.word_counts}
    schema = shard_schema(vocabulary_size, next((name for name in own if own[name] is not None), None))
    document_starts = pa.array(table.document_starts, pa.int32())
    columns = {
        "doc_id": pa.array(table.doc_ids, pa.string()),
        "ids": (document_starts, table.ids),
        "sentence_starts": (pa.array(table.sentence_bounds, pa.int32()), table.sentence_starts),
        "word_starts": (document_starts, table.word_starts),
        **{name: (document_starts, values) for name, values in own.items()},
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


class Document(NamedTuple):
    """An encoded document.

    `ids` [tokens] is uint16 or uint32, a read-only view of the file. `sentence_starts` [sentences] is int32, indices of
    `ids`, beginning with 0. `word_bits` contains the word starts, eight per byte, from bit `first_bit` on. If these are
    the starts of pre-tokens, `text_word_bits` contains the starts of words between white space. If words are counted by
    another rule than white space, `word_counts` [tokens], uint16, is the number of words that begin in each token.
    """

    ids: np.ndarray
    sentence_starts: np.ndarray
    word_bits: np.ndarray
    first_bit: int
    text_word_bits: np.ndarray | None = None
    word_counts: np.ndarray | None = None

    @property
    def word_starts(self) -> np.ndarray:
        """Return which tokens begin a word, bool [tokens], computed at every call.

        Special tokens are also True, although they belong to no word.
        """
        bits = np.unpackbits(self.word_bits, None, self.first_bit + len(self.ids), "little")
        return bits[self.first_bit :].view(np.bool_)


class _Shard:
    """One shard mapped into memory, with its columns as flat arrays."""

    def __init__(self, path: Path, schemas: Sequence[pa.Schema]) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(path), "r"))
            batches = reader.num_record_batches
            if reader.schema not in schemas:
                raise TokenizationError(f"{path}: has the columns {reader.schema.names}, expected {schemas[0].names}")
            if batches != 1:
                raise TokenizationError(f"{path}: has {batches} record batches, expected 1")
            batch = reader.get_batch(0)
            batch.validate()
            batch.column("doc_id").validate(full=True)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise TokenizationError(f"{path}: not a readable token shard: {first_line(error)}") from error
        ids, sentences, words = (batch.column(name) for name in ("ids", "sentence_starts", "word_starts"))
        self.rows: int = batch.num_rows
        self.doc_ids = batch.column("doc_id")
        self.ids = ids.values.to_numpy(zero_copy_only=True)
        self.document_starts = _offsets(path, "ids", ids)
        self.sentence_starts = sentences.values.to_numpy(zero_copy_only=True)
        self.sentence_bounds = _offsets(path, "sentence_starts", sentences)
        # Booleans stay packed, eight per byte; only the bits of a requested document are unpacked.
        self.word_bits = self._bits(path, "word_starts", words)
        names = reader.schema.names
        self.text_word_bits = self._bits(path, TEXT_WORDS, batch.column(TEXT_WORDS)) if TEXT_WORDS in names else None
        self.word_counts = self._numbers(path, batch.column(WORD_COUNTS)) if WORD_COUNTS in names else None
        lengths = np.repeat(np.diff(self.document_starts), np.diff(self.sentence_bounds))
        if np.any((self.sentence_starts < 0) | (self.sentence_starts >= lengths)):
            raise TokenizationError(f"{path}: is damaged: a sentence starts outside of its document")

    def _numbers(self, path: Path, words: pa.ListArray) -> np.ndarray:
        self._check_length(path, WORD_COUNTS, words)
        numbers: np.ndarray = words.values.to_numpy(zero_copy_only=True)
        return numbers

    def _check_length(self, path: Path, name: str, words: pa.ListArray) -> None:
        if not np.array_equal(_offsets(path, name, words), self.document_starts):
            raise TokenizationError(f"{path}: is damaged: {name} and ids differ in length")

    def _bits(self, path: Path, name: str, words: pa.ListArray) -> np.ndarray:
        self._check_length(path, name, words)
        bits = words.values.buffers()[1]
        return np.frombuffer(bits, dtype=np.uint8) if bits is not None else np.zeros(0, dtype=np.uint8)

    def document(self, row: int) -> Document:
        first, end = self.document_starts.item(row), self.document_starts.item(row + 1)
        bits = slice(first // 8, (end + 7) // 8)
        return Document(
            self.ids[first:end],
            self.sentence_starts[self.sentence_bounds.item(row) : self.sentence_bounds.item(row + 1)],
            self.word_bits[bits],
            first % 8,
            None if self.text_word_bits is None else self.text_word_bits[bits],
            None if self.word_counts is None else self.word_counts[first:end],
        )


class TokenShards:
    """The encoded documents of a split; `special` is the set of special tokens."""

    def __init__(self, manifest: Manifest, split: str, paths: list[Path]) -> None:
        self.manifest = manifest
        self.where = str(manifest.path)
        """Path of the manifest, for messages."""
        self.split = split
        try:
            self.vocabulary_size = int(manifest.measures["vocabulary_size"])
        except (KeyError, TypeError, ValueError) as error:
            raise TokenizationError(f"{manifest.path}: the measure 'vocabulary_size' is missing") from error
        try:
            self.special = recorded_special_tokens(manifest.measures.get("special_tokens"))
        except TokenizationError as error:
            raise TokenizationError(f"{manifest.path}: {error}") from error
        schemas = [shard_schema(self.vocabulary_size, counted) for counted in COUNTED]
        self._shards = [_Shard(path, schemas) for path in paths]
        self._first_rows = list(accumulate((shard.rows for shard in self._shards), initial=0))
        self.n_documents = self._first_rows[-1]
        self.n_tokens = sum(len(shard.ids) for shard in self._shards)

    @classmethod
    def open(cls, manifest_path: str | Path, split: str) -> Self:
        """Map the shards of `split` into memory.

        Raises ManifestError for an unusable manifest, and TokenizationError if the split or a measure is missing, or if
        a shard is damaged or has unexpected columns.
        """
        manifest = read_manifest(manifest_path)
        try:
            shards = shards_by_split(manifest, TOKEN_SHARDS)
        except CorpusError as error:
            raise TokenizationError(str(error)) from error
        if split not in shards:
            raise TokenizationError(f"{manifest.path}: there is no split {split!r}; there are: {', '.join(shards)}")
        return cls(manifest, split, shards[split])

    @property
    def n_special(self) -> int:
        """Number of special tokens, whose ids are 0 to `n_special` - 1."""
        return len(self.special.order)

    @property
    def text_words(self) -> int | None:
        """Number of words in the split, counted by the rule `word_count`; None if the manifest lacks this number."""
        words_of_split = self.manifest.measures.get("text_words", {}).get(self.split)
        return None if words_of_split is None else int(words_of_split)

    @property
    def word_count(self) -> str:
        """Name of the word-counting rule by which `text_words` was counted."""
        return word_count_of(self.manifest.measures)

    @property
    def text_bytes(self) -> int | None:
        """Size of the split's documents in bytes of UTF-8; None if the manifest lacks this number."""
        bytes_of_split = self.manifest.measures.get("text_bytes", {}).get(self.split)
        return None if bytes_of_split is None else int(bytes_of_split)

    def tokens_per_byte(self, counts: np.ndarray) -> float | None:
        """Return the number of predicted tokens of the split, divided by the number of bytes (UTF-8) that these tokens
        represent.

        `counts`, int64 [vocabulary size], is the number of predictions of each id; a special token with count 0 is
        never predicted. Return None if the manifest lacks the measure `token_bytes`, or if the number of bytes is 0.
        """
        token_bytes = self.manifest.measures.get("token_bytes", {}).get(self.split, {})
        n_bytes = sum(size for name, size in token_bytes.items() if name == ORDINARY or counts[self.special.ids[name]])
        return int(counts.sum()) / n_bytes if n_bytes else None

    @property
    def words(self) -> int:
        """Number of words of the split, counted as the number of subwords that begin a word."""
        return int(self.manifest.measures["splits"][self.split]["words"])

    def __len__(self) -> int:
        return self.n_documents

    def __iter__(self) -> Iterator[Document]:
        return (shard.document(row) for shard in self._shards for row in range(shard.rows))

    def document(self, index: int) -> Document:
        """Return document `index`, counted from 0 over all shards. Raises IndexError for an index outside of the
        split."""
        shard, row = self._locate(index)
        return shard.document(row)

    def doc_id(self, index: int) -> str:
        """Return the document id of document `index` in the corpus."""
        shard, row = self._locate(index)
        return str(shard.doc_ids[row].as_py())

    def document_lengths(self) -> np.ndarray:
        """Return the number of tokens of every document: int64 [n_documents]."""
        parts = [np.diff(shard.document_starts) for shard in self._shards]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def _locate(self, index: int) -> tuple[_Shard, int]:
        if not 0 <= index < self.n_documents:
            raise IndexError(
                f"document index: got {index}, expected 0 to {self.n_documents - 1} in split {self.split!r}"
            )
        number = bisect_right(self._first_rows, index) - 1
        return self._shards[number], index - self._first_rows[number]


def _offsets(path: Path, name: str, column: pa.ListArray) -> np.ndarray:
    """Return the row offsets of the list column `name` of the file `path`. Raises TokenizationError unless the offsets
    ascend from 0 to the number of values.
    """
    offsets = column.offsets.to_numpy(zero_copy_only=True)
    sound = column.null_count == 0 and offsets[0] == 0 and offsets[-1] == len(column.values)
    if not sound or np.any(offsets[1:] < offsets[:-1]):
        raise TokenizationError(f"{path}: is damaged: the row offsets of {name} are not valid")
    return offsets
