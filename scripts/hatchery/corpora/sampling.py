"""A sample of a corpus: documents that are drawn at random up to a number of characters or bytes.

Source: LTG-BERT, Appendix F: documents of Wikipedia and BookCorpus together are drawn until their number of characters
reaches the number of characters of the BNC. Documents are drawn in the order of random numbers. A document's random
number is computed from the SHA-256 of the seed and the document's name. So the choice depends neither on shards nor on
the order of documents. The document that reaches the wanted number of characters is included whole, so the sample
exceeds this number by less than one document.

A sample in several languages has parts instead of a number of characters; each part names some sources of the corpus
and a maximum number of bytes (BabyLM's multilingual track, docs/babylm.md, "The multilingual track"). A part ends
before the first drawn document that would exceed the maximum, so a part is smaller than its maximum by less than the
size of this document.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hatchery.artifacts.manifests import Manifest, StageRun
from hatchery.artifacts.parquet import read_batches
from hatchery.corpora.corpus_writer import LICENCES, NUMERIC_COLUMNS, CorpusWriter, Splitter, point
from hatchery.corpora.documents import SPLITS
from hatchery.corpora.settings import SamplePart, SampleSettings
from hatchery.errors import ConfigError, CorpusError, ManifestError
from hatchery.progress import Progress

# Batches are small, because a document may be a whole book.
_ROWS_PER_BATCH = 100
_SAMPLES_OF_NOT_DRAWN = 5
NOT_DRAWN = "not drawn"


@dataclass
class Drawing:
    """Random number, size and source of each document of a corpus, in corpus order; 18 bytes of memory per document."""

    points: "array[int]" = field(default_factory=lambda: array("Q"))
    """Random numbers of the documents: the documents with the smallest random numbers are in the sample."""
    sizes: "array[int]" = field(default_factory=lambda: array("Q"))
    """Number of characters of each document; number of bytes if the sample has parts."""
    sources: "array[int]" = field(default_factory=lambda: array("H"))
    """Index in `names` of each document's source."""
    names: list[str] = field(default_factory=list)

    def add(self, point: int, size: int, source: str) -> None:
        """Add one document: its random number, its size, and the name of its source."""
        if source not in self.names:
            self.names.append(source)
        self.points.append(point)
        self.sizes.append(size)
        self.sources.append(self.names.index(source))

    def of_size(self, characters: int) -> np.ndarray:
        """Return a mask, bool [documents], that is True for the drawn documents. Documents are drawn until their number
        of characters reaches `characters`.

        Raises CorpusError if the corpus has fewer characters.
        """
        points, sizes, _ = self._arrays()
        order = np.argsort(points, kind="stable")
        totals = np.cumsum(sizes[order])
        available = int(totals[-1]) if len(totals) else 0
        if available < characters:
            raise CorpusError(
                f"the corpus has {available:,} characters in {len(points):,} documents, "
                f"fewer than the {characters:,} characters to draw; add sources, or draw fewer characters"
            )
        drawn: np.ndarray = points <= points[order[int(np.searchsorted(totals, characters))]]
        return drawn

    def of_parts(self, parts: Mapping[str, SamplePart]) -> np.ndarray:
        """Return a mask, bool [documents], that is True for the drawn documents. For each part, documents are drawn in
        the order of their random numbers, up to the part's number of bytes.

        Raises ConfigError for a missing source, and CorpusError for a part with too little text.
        """
        points, sizes, sources = self._arrays()
        drawn = np.zeros(len(points), dtype=bool)
        for name, part in parts.items():
            for source in part.sources:
                if source not in self.names:
                    raise ConfigError(
                        f"parts.{name}.sources: got {source!r}, the corpus has documents of: {', '.join(self.names)}"
                    )
            numbers = [self.names.index(source) for source in part.sources]
            indices = np.flatnonzero(np.isin(sources, numbers))
            indices = indices[np.argsort(points[indices], kind="stable")]
            totals = np.cumsum(sizes[indices])
            if int(totals[-1]) < part.bytes:
                raise CorpusError(
                    f"{name} has {int(totals[-1]):,} bytes in {len(indices):,} documents, fewer than the "
                    f"{part.bytes:,} bytes to draw; add sources, or set a smaller `adjusted_words`"
                )
            drawn[indices[totals <= part.bytes]] = True
        return drawn

    def bytes_of(self, drawn: np.ndarray, parts: Mapping[str, SamplePart]) -> dict[str, int]:
        """Return the number of bytes of the drawn documents, by part of the sample."""
        _, sizes, sources = self._arrays()
        numbers = {name: [self.names.index(source) for source in part.sources] for name, part in parts.items()}
        return {name: int(sizes[drawn & np.isin(sources, of)].sum()) for name, of in numbers.items()}

    def shown(self, drawn: np.ndarray) -> set[int]:
        """Return the indices of some documents that are not drawn, as samples. For each source, these are the documents
        with the smallest random numbers among the documents that are not drawn.
        """
        points, _, sources = self._arrays()
        chosen: set[int] = set()
        for source in range(len(self.names)):
            indices = np.flatnonzero((sources == source) & ~drawn)
            nearest = np.argsort(points[indices], kind="stable")[:_SAMPLES_OF_NOT_DRAWN]
            chosen.update(int(index) for index in indices[nearest])
        return chosen

    def _arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kinds = (self.points, np.uint64), (self.sizes, np.uint64), (self.sources, np.uint16)
        points, sizes, sources = (np.frombuffer(numbers, dtype=kind) for numbers, kind in kinds)
        return points, sizes, sources


def wanted_characters(settings: SampleSettings, size_of: Manifest | None) -> int:
    """Return the number of characters that the sample must reach: the number in `settings`, or the size of the corpus
    `size_of`. Raises ConfigError unless exactly one of the two is given, and ManifestError if `size_of` is not the
    manifest of a corpus.
    """
    if (settings.characters is None) == (size_of is None):
        raise ConfigError(
            "characters, size_of: expected exactly one of `characters`, a number of characters, and `size_of`, a "
            "corpus with the wanted number of characters"
        )
    if size_of is None:
        return settings.characters or 0
    try:
        return sum(int(size_of.measures[split]["characters"]) for split in settings.size_of_splits)
    except (KeyError, TypeError) as error:
        raise ManifestError(f"{size_of.path}: not the manifest of a corpus: there is no measure {error}") from error


def draw_sample(settings: SampleSettings, corpus: Manifest, size_of: Manifest | None, run: StageRun) -> None:
    """Draw a sample and write its shards and tables; the stage `sample_corpus` calls this function."""
    parts = settings.parts
    wanted = None if parts is not None else wanted_characters(settings, size_of)
    number = {split: int(corpus.measures.get(split, {}).get("documents", 0)) for split in SPLITS}
    drawing = Drawing()
    # Characters are Unicode code points, which Arrow counts without creating Python strings.
    measure = pc.utf8_length if parts is None else pc.binary_length
    total = sum(number[split] for split in settings.drawn_splits)
    with Progress(total, "draw documents", "documents") as progress:
        for _, batch in _batches(corpus, ["doc_id", "source", "text"], settings.drawn_splits):
            sizes = measure(batch.column("text")).to_pylist()
            for doc_id, source, size in zip(*_lists(batch, "doc_id", "source"), sizes, strict=True):
                # The hashed text begins with "sample", so that these random numbers differ from the random numbers that
                # divide a corpus into splits. If the two kinds of random numbers were equal, the sample would begin
                # with all development documents.
                drawing.add(point("sample", settings.seed, doc_id), size, source)
            progress.update(batch.num_rows)
    drawn = drawing.of_size(wanted) if wanted is not None else drawing.of_parts(parts or {})
    shown = drawing.shown(drawn)
    splitter = _splitter(settings, corpus, drawn)
    with (
        CorpusWriter(
            run,
            drawing.names,
            settings.documents_per_shard,
            bool(corpus.listed(LICENCES)),
            corpus.measures.get(NUMERIC_COLUMNS, ()),
        ) as writer,
        Progress(sum(number.values()), "write sample", "documents") as progress,
    ):
        index = 0
        for split, batch in _batches(corpus, None):
            if split not in settings.drawn_splits:
                for row in batch.to_pylist():
                    writer.write(row)
                progress.update(batch.num_rows)
                continue
            mask = drawn[index : index + batch.num_rows]
            for row in batch.filter(pa.array(mask)).to_pylist():
                if settings.split is not None and splitter is not None:
                    row["split"] = splitter(point(settings.split.seed, row["text"]))
                writer.write(row)
            for offset in np.flatnonzero(~mask):
                source = drawing.names[drawing.sources[index + int(offset)]]
                sample = batch.column("text")[int(offset)].as_py() if index + int(offset) in shown else None
                writer.rejections[source].count(NOT_DRAWN, sample=sample)
            index += batch.num_rows
            progress.update(batch.num_rows)
    measured: dict[str, Any] = {"bytes": drawing.bytes_of(drawn, parts or {})}
    if wanted is not None:
        characters = sum(run.measures[split]["characters"] for split in settings.drawn_splits)
        measured = {"wanted_characters": wanted, "characters": characters}
    run.measures["sample"] = {**measured, "documents_drawn_from": len(drawing.points)}


def _splitter(settings: SampleSettings, corpus: Manifest, drawn: np.ndarray) -> Splitter | None:
    if settings.split is None:
        return None
    texts = (text for _, batch in _batches(corpus, ["text"]) for text in _lists(batch, "text")[0])
    draws = array("Q")
    draws.extend(point(settings.split.seed, text) for is_drawn, text in zip(drawn, texts, strict=True) if is_drawn)
    return Splitter(settings.split, np.frombuffer(draws, dtype=np.uint64), "draw more characters")


def _lists(batch: pa.RecordBatch, *columns: str) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in columns]


def _batches(
    corpus: Manifest, columns: list[str] | None, splits: Sequence[str] = SPLITS
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield pairs of a split and a batch of its documents, for the given splits in the order train, dev, test."""
    for split in SPLITS:
        if split in splits:
            for path in corpus.files(".parquet", f"{split}-"):
                yield from ((split, batch) for batch in read_batches(path, _ROWS_PER_BATCH, columns))
