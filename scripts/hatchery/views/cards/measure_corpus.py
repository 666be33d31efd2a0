"""Compute all numbers and select all samples of a corpus card, in one pass over the shards. The memory depends on the
sizes of single documents, but not on the size of the corpus.

Shards are read in batches. A document may be a whole corpus, so documents are counted in blocks of about a million
characters. The counts are compared with `statistics.csv`, so a card cannot contradict the counts stored with the
corpus.

A source's samples are the documents whose names have the smallest SHA-256. This choice depends neither on the order of
documents nor on a random seed. The same hash selects the paragraph at which a sample starts, because the first lines of
a book are rarely typical.

As in `statistics.csv`, the length of a sentence or document is its number of whitespace-separated words. Texts without
words are not counted.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.analysis.corpus_statistics import MEASURES, STATISTICS, Counts
from hatchery.artifacts.manifests import Manifest
from hatchery.corpora.corpus_writer import SCHEMA
from hatchery.corpora.documents import SPLITS
from hatchery.errors import CorpusError, first_line
from hatchery.progress import Progress
from hatchery.tokenization.documents import count_documents, shards_by_split
from hatchery.tokenization.token_words import word_counter
from hatchery.views.cards.settings import CardSettings
from hatchery.views.cards.vocabulary import PieceTable, Vocabulary


@dataclass(frozen=True)
class LengthFacts:
    """Statistics of the lengths, in words, of the sentences or of the documents of a source."""

    number: int
    mean: float
    median: int
    percentile_95: int
    longest: int


def facts_of_lengths(lengths: Counter[int]) -> LengthFacts | None:
    """Return mean and quantiles of lengths; None if there are no lengths.

    The p % quantile is the smallest length that at least p % of the texts do not exceed.
    """
    known = sorted((length, count) for length, count in lengths.items() if length > 0)
    number = sum(count for _, count in known)
    if not number:
        return None

    def quantile(percent: int) -> int:
        seen = 0
        for length, count in known:
            seen += count
            if 100 * seen >= percent * number:
                return length
        raise AssertionError("the last length reaches every share")

    mean = sum(length * count for length, count in known) / number
    return LengthFacts(number, mean, quantile(50), quantile(95), known[-1][0])


@dataclass(frozen=True, order=True)
class Sample:
    """A sample text. `key` is a hash of `doc_id`; the samples whose keys are smallest are shown."""

    key: str
    doc_id: str
    split: str
    text: str


@dataclass
class SampleChoice:
    """Selects `number` documents of one source as samples: the documents whose keys (a hash of the document's ID) are
    smallest. Only excerpts of about `characters` characters are in memory.
    """

    number: int
    characters: int
    _heap: list[tuple[int, str, Sample]] = field(default_factory=list)

    def offer(self, doc_id: str, split: str, text: str) -> None:
        """Keep an excerpt of a document if the document's key (a hash of `doc_id`) is one of the `number` smallest keys
        so far; ignore documents that are only white space.
        """
        if not self.number:
            return
        key = hashlib.sha256(f"sample/{doc_id}".encode()).hexdigest()
        # The first entry of the heap is the largest kept key. A new key is kept only if it is smaller than this key.
        rank = -int(key, 16)
        if len(self._heap) == self.number and rank <= self._heap[0][0]:
            return
        if not text or text.isspace():
            return
        item = (rank, doc_id, Sample(key, doc_id, split, excerpt(text, int(key[:8], 16), self.characters)))
        (heapq.heappush if len(self._heap) < self.number else heapq.heapreplace)(self._heap, item)

    def chosen(self) -> list[Sample]:
        """Return the kept samples, sorted by key (a hash of the document's ID)."""
        return sorted(sample for _, _, sample in self._heap)


def excerpt(text: str, number: int, characters: int) -> str:
    """Return an excerpt. It starts at paragraph `number` modulo the number of paragraphs, or earlier if fewer than
    `characters` characters follow.

    The excerpt has at most `characters` characters, and an ellipsis if text follows. If possible, the excerpt ends
    between words.
    """
    starts = [0]
    while (blank := text.find("\n\n", starts[-1])) >= 0:
        starts.append(blank + 2)
    start = starts[number % len(starts)]
    # If fewer than `characters` characters follow the start, start at an earlier paragraph. A short document is shown
    # completely.
    if len(text) - start < characters:
        start = max((s for s in starts if len(text) - s >= characters), default=0)
    return shortened(text[start : start + characters + 1].lstrip("\n"), characters)


def shortened(text: str, characters: int) -> str:
    """Return the text, or its beginning with an ellipsis if it is longer than `characters`."""
    if len(text) <= characters:
        return text.rstrip()
    head = text[:characters]
    cut = max(head.rfind(" "), head.rfind("\n"))
    return f"{head[: cut if cut > characters // 2 else characters].rstrip()} …"


DOCUMENTS_PER_BATCH = 64
BLOCK_CHARACTERS = 1 << 20
COUNTED = (*MEASURES, "pre_tokens")


class Document(NamedTuple):
    """One row of a document shard."""

    doc_id: str
    source: str
    split: str
    text: str
    n_sentences: int
    n_words: int


@dataclass
class SourceMeasurement:
    """The measurements of one source: counts, lengths of sentences and documents, samples and vocabulary."""

    vocabulary: Vocabulary
    samples: SampleChoice
    counts: dict[str, Counts] = field(default_factory=lambda: {split: dict.fromkeys(COUNTED, 0) for split in SPLITS})
    sentence_lengths: Counter[int] = field(default_factory=Counter)
    document_lengths: Counter[int] = field(default_factory=Counter)
    words_by_rule: Counter[str] = field(default_factory=Counter)
    """By split, the number of words that budgets and tracks count; empty if the word-counting rule is `white_space`."""


def measure_corpus(
    manifest: Manifest, settings: CardSettings, statistics: Mapping[tuple[str, str], Counts]
) -> dict[str, SourceMeasurement]:
    """Return the measurements of all documents by source, in the order of `statistics`.

    `statistics` are the stored counts by source and split. Raises CorpusError for a damaged shard, a source that is not
    in `statistics`, or counts that differ from `statistics`.
    """
    sources = list(dict.fromkeys(source for source, _ in statistics))
    measured = {
        source: SourceMeasurement(
            Vocabulary(max(1, settings.max_types // len(sources))),
            SampleChoice(settings.samples_per_source, settings.sample_characters),
        )
        for source in sources
    }
    shards = shards_by_split(manifest)
    pieces, counter = PieceTable(), word_counter(settings.counting)
    with Progress(count_documents(list(chain(*shards.values()))), "describe corpus", "documents") as progress:
        for split in (split for split in SPLITS if split in shards):
            if counter is not None:
                counter.begin_split()
            for path in shards[split]:
                for document in read_documents(path, split):
                    if document.source not in measured:
                        raise CorpusError(
                            f"{path}: document {document.doc_id!r} is of source {document.source!r}, which is not in "
                            f"{manifest.folder / STATISTICS}"
                        )
                    measure_document(measured[document.source], document, pieces)
                    if counter is not None and not document.text.isspace():
                        # This rule counts words without a tokenizer, so pass the document as a single token.
                        ends = np.array([len(document.text)])
                        words = int(counter(document.text, document.source, ends).sum())
                        measured[document.source].words_by_rule[split] += words
                    progress.update(1)
    _compare(manifest, measured, statistics)
    return measured


def measure_document(measured: SourceMeasurement, document: Document, pieces: PieceTable) -> None:
    """Add one document to the measurement of its source."""
    words = 0
    counts = measured.counts[document.split]
    for block in blocks(document.text):
        lines = [line.split() for line in block.split("\n")]
        measured.sentence_lengths.update(map(len, lines))
        found = list(chain.from_iterable(lines))
        words += len(found)
        counts["pre_tokens"] += pieces.pre_tokens(found)
        if measured.vocabulary.complete:
            measured.vocabulary.add(pieces.words(found))
    measured.document_lengths[words] += 1
    counts["documents"] += 1
    counts["sentences"] += document.n_sentences
    counts["words"] += document.n_words
    counts["characters"] += len(document.text)
    measured.samples.offer(document.doc_id, document.split, document.text)


def blocks(text: str, characters: int = BLOCK_CHARACTERS) -> Iterator[str]:
    """Yield the text in blocks that end at line ends. Each block except the last has at least `characters` characters.

    Most documents are one block.
    """
    start = 0
    while start < len(text):
        end = text.find("\n", start + characters)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def read_documents(path: Path, split: str) -> Iterator[Document]:
    """Yield the documents of one shard of `split`.

    Raises CorpusError, which names the file, if the file is damaged, lacks a column, or contains documents of another
    split.
    """
    try:
        with pq.ParquetFile(path) as file:
            if missing := [name for name in SCHEMA.names if name not in file.schema_arrow.names]:
                raise CorpusError(f"{path}: lacks the column {missing[0]!r} of a document shard")
            for batch in file.iter_batches(batch_size=DOCUMENTS_PER_BATCH, columns=SCHEMA.names):
                if empty := [name for name in SCHEMA.names if batch.column(name).null_count]:
                    raise CorpusError(f"{path}: the column {empty[0]!r} has missing values, expected none")
                for document in zip(*(batch.column(name).to_pylist() for name in SCHEMA.names), strict=True):
                    if document[2] != split:
                        raise CorpusError(
                            f"{path}: document {document[0]!r} has the split {document[2]!r}, expected {split!r}"
                        )
                    yield Document(*document)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: the documents cannot be read: {first_line(error)}") from error


def _compare(
    manifest: Manifest, measured: Mapping[str, SourceMeasurement], statistics: Mapping[tuple[str, str], Counts]
) -> None:
    for source, measurement in measured.items():
        for split in SPLITS:
            stated = statistics.get((source, split), dict.fromkeys(MEASURES, 0))
            for measure in MEASURES:
                found = measurement.counts[split][measure]
                if found != stated[measure]:
                    raise CorpusError(
                        f"{manifest.folder / STATISTICS}: source {source!r}, split {split!r} has {stated[measure]} "
                        f"{measure}, but the shards contain {found}"
                    )
