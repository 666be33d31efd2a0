"""The shards that a manifest lists (`{split}-{i}-of-{n}.parquet` or `.arrow`), and the documents in the shards of a
corpus.

Documents are read in batches; only one batch is in memory at a time. In a document, a newline separates sentences, and
a blank line separates paragraphs. The encoder reads sentences. A tokenizer is trained on training lines, which are
sentences without special tokens. As in ELC-BERT's code (docs/papers/elc-bert.md, "Tokenizers"), empty training lines
are skipped, and each `[TAB]` is removed with the space after it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.artifacts.manifests import Manifest, OutputFile, read_manifest
from hatchery.errors import CorpusError, TokenizationError, first_line
from hatchery.progress import Progress
from hatchery.tokenization.special_tokens import SPECIAL_SETS, TAB

TOKEN_SHARDS = ".arrow"
"""Suffix of token shards; document shards are Parquet files."""
TRAINING_SPLIT = "train"
DEVELOPMENT_SPLIT = "dev"
PARAGRAPH_BREAK = "\n\n"
"""Text between two paragraphs of a document."""
SHARD_NAME = re.compile(r"(?P<split>[a-z]+)-(?P<index>\d{5})-of-(?P<total>\d{5})\.(?:parquet|arrow)")


def listed_shards(manifest: Manifest, suffix: str) -> dict[str, list[OutputFile]]:
    """Return the shards that a manifest lists, by split (sorted) and in the order of their indices; no shard is read.

    Raises CorpusError if there are no shards, if a split lacks a shard, or if the file names of a split's shards
    contain different total numbers of shards.
    """
    shards: dict[str, dict[int, OutputFile]] = {}
    totals: dict[str, set[int]] = {}
    for output in manifest.listed(suffix):
        match = SHARD_NAME.fullmatch(output.path.name)
        if match:
            shards.setdefault(match["split"], {})[int(match["index"])] = output
            totals.setdefault(match["split"], set()).add(int(match["total"]))
    if not shards:
        raise CorpusError(f"{manifest.path}: lists no shard with a name such as train-00000-of-00001{suffix}")
    for split, files in shards.items():
        if totals[split] != {len(files)} or sorted(files) != list(range(len(files))):
            raise CorpusError(
                f"{manifest.path}: the shards of split {split!r} are not complete: found the indices {sorted(files)}"
            )
    return {split: [shards[split][index] for index in sorted(shards[split])] for split in sorted(shards)}


def shards_by_split(manifest: Manifest, suffix: str = ".parquet") -> dict[str, list[Path]]:
    """Return the paths of the shards by split. Raises CorpusError like `listed_shards`."""
    return {split: [file.path for file in files] for split, files in listed_shards(manifest, suffix).items()}


def shards_of(manifest: Manifest, splits: Iterable[str]) -> list[OutputFile]:
    """Return the document shards of `splits`, in this order. Raises CorpusError for a missing split."""
    by_split = listed_shards(manifest, ".parquet")
    for split in splits:
        if split not in by_split:
            raise CorpusError(f"{manifest.path}: has no split {split!r}")
    return [shard for split in splits for shard in by_split[split]]


def watch_shards(manifest: Path) -> Callable[[], None]:
    """Return a function that raises TokenizationError if the size or modification time of a token shard has changed
    since `watch_shards` was called.

    Shards are mapped into memory, so a change of a shard's file would change the data during a run. A deleted shard is
    no error, because it stays mapped.
    """
    shards = [
        output.path for files in listed_shards(read_manifest(manifest), TOKEN_SHARDS).values() for output in files
    ]

    def stamps() -> dict[Path, tuple[int, int]]:
        statuses = {path: path.stat() for path in shards if path.exists()}
        return {path: (status.st_size, status.st_mtime_ns) for path, status in statuses.items()}

    before = stamps()

    def check() -> None:
        for path, stamp in stamps().items():
            if stamp != before.get(path, stamp):
                raise TokenizationError(
                    f"{path}: was changed while it was being read; start again to resume from the last checkpoint "
                    "before the change"
                )

    return check


COLUMNS = ("doc_id", "source", "text")
# Number of documents in a batch. This number affects memory and speed, but not the results.
DOCUMENTS_PER_BATCH = 256


@dataclass(frozen=True)
class DocumentBatch:
    """Consecutive documents of one shard. Entry i of `doc_ids`, `sources` and `texts` belongs to document i."""

    doc_ids: list[str]
    sources: list[str]
    texts: list[str]


def count_documents(shards: list[Path]) -> int:
    """Return the number of documents in document shards, from the footers of the Parquet files."""
    total = 0
    for path in shards:
        with _open(path) as file:
            total += file.metadata.num_rows
    return total


def read_batches(path: Path, documents_per_batch: int = DOCUMENTS_PER_BATCH) -> Iterator[DocumentBatch]:
    """Yield the documents of a shard in batches. Raises CorpusError, naming the file, if the file is damaged or lacks a
    column.
    """
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
            raise CorpusError(f"{path}: the documents cannot be read: {first_line(error)}") from error


def split_sentences(text: str) -> tuple[list[str], list[bool]]:
    """Return the stripped sentences of a document, and for each sentence whether it ends a paragraph.

    A line that is empty after stripping separates paragraphs. The last sentence always ends a paragraph.
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


def sentence_places(text: str) -> list[int]:
    """Return the index in the document of the first character of each sentence (see `split_sentences`)."""
    places, begin = [], 0
    for line in text.split("\n"):
        if stripped := line.lstrip():
            places.append(begin + len(line) - len(stripped))
        begin += len(line) + 1
    return places


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise CorpusError(f"{path}: not a readable document shard: {first_line(error)}") from error


Lines = Iterable[str] | Iterable[list[str]]
"""Training lines of a tokenizer: strings, or lists of strings."""
ANY_SPECIAL_TOKEN = re.compile(
    "|".join(re.escape(name) for name in sorted({name for known in SPECIAL_SETS.values() for name in known.order}))
)


def training_lines(text: str) -> Iterator[str]:
    """Yield the lines of a document for the training of a tokenizer: stripped, not empty, without special tokens.

    A line is split at the special tokens of all sets that Hatchery knows. Without these splits, the trainer would learn
    the letters of `[UNK]` as a word.
    """
    for line in text.split("\n"):
        for piece in ANY_SPECIAL_TOKEN.split(line.strip().replace(f"{TAB} ", "")):
            if piece and not piece.isspace():
                yield piece


class LineStream:
    """Training lines of a tokenizer, yielded as one list for each document. `documents` and `lines` are the numbers of
    documents and lines in the last iteration.

    Documents whose source is not in `sources` are left out. `keep` is (number of lines to keep, number of all lines);
    the lines to keep are evenly spaced.
    """

    def __init__(
        self,
        shards: Sequence[Path],
        progress: Progress | None = None,
        sources: Collection[str] | None = None,
        keep: tuple[int, int] | None = None,
    ) -> None:
        self.shards = shards
        self.progress = progress
        self.sources = sources
        self.keep = keep
        self.seen = self.lines = self.documents = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.seen = self.lines = self.documents = 0
        for path in self.shards:
            for batch in read_batches(path):
                for source, text in zip(batch.sources, batch.texts, strict=True):
                    if self.sources is None or source in self.sources:
                        self.documents += 1
                        yield [line for line in training_lines(text) if self._keeps_next_line()]
                if self.progress is not None:
                    self.progress.update(len(batch.texts))

    def _keeps_next_line(self) -> bool:
        index = self.seen
        self.seen += 1
        if self.keep is not None:
            limit, total = self.keep
            if (index + 1) * limit // total == index * limit // total:
                return False
        self.lines += 1
        return True
