"""Corpora in the layout that the corpus stages write, small enough to be counted by hand."""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.corpora.corpus_writer import SCHEMA
from hatchery.corpora.documents import SPLITS, count_sentences, count_words

Documents = Iterable[tuple[str, str, str, str]]
MEASURES = ("documents", "sentences", "words", "characters")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def write_corpus(
    folder: Path,
    documents: Documents,
    rejected: Iterable[Sequence[Any]] = (),
    samples: Iterable[Sequence[Any]] = (),
    extra: dict[str, str] | None = None,
    replaced: dict[str, str] | None = None,
) -> Path:
    """Write documents (doc_id, source, split, text); `replaced` gives tables other than the true ones."""
    counts: dict[tuple[str, str], list[int]] = {}
    with stage_run(folder / "manifest.json", {"stage": "convert_corpus", "stage_version": 1}) as run:
        writers = {split: ShardWriter(folder, split, SCHEMA, 2) for split in SPLITS}
        for doc_id, source, split, text in documents:
            sentences, words = count_sentences(text), count_words(text)
            row = {"doc_id": doc_id, "source": source, "split": split, "text": text}
            with_counts = {**row, "n_sentences": sentences, "n_words": words}
            writers[split].write(with_counts)
            for each in SPLITS:
                counts.setdefault((source, each), [0, 0, 0, 0])
            for index, value in enumerate((1, sentences, words, len(text))):
                counts[source, split][index] += value
        for writer in writers.values():
            writer.__exit__(None, None, None)
            for path in writer.paths:
                run.add_output(path)
        tables = {
            "statistics.csv": csv_text(("source", "split", *MEASURES), [(*key, *row) for key, row in counts.items()]),
            "rejected.csv": csv_text(("source", "reason", "count"), rejected),
            "samples.csv": csv_text(("source", "outcome", "reason", "text"), samples),
            **(extra or {}),
            **(replaced or {}),
        }
        for name, text in tables.items():
            write_text(folder / name, text)
            run.add_output(folder / name)
    return folder / "manifest.json"


@pytest.fixture
def make_corpus(tmp_path: Path) -> Callable[..., Path]:
    """Writes a corpus and returns its manifest."""

    def make(documents: Documents, name: str = "corpus", **tables: Any) -> Path:
        return write_corpus(tmp_path / name, documents, **tables)

    return make


# 5 sentences, 14 words; running words: the cat sat the dog ran | it's a cat | run the run | so 5: types counted below.
TWO_SOURCES = [
    ("a/1", "alpha", "train", "The cat sat .\nThe dog ran !"),
    ("b/1", "beta", "train", "It's a cat , [UNK] ."),
    ("a/2", "alpha", "dev", "Run , the “run” !"),
    ("b/2", "beta", "train", "# So\n\n5 cats"),
]


@pytest.fixture
def two_sources(make_corpus: Callable[..., Path]) -> Path:
    """Sources alpha and beta with two documents each, one rejected text."""
    return make_corpus(
        TWO_SOURCES,
        rejected=[("alpha", "too_short", 7)],
        samples=[("alpha", "rejected", "too_short", "Hm ."), ("beta", "accepted", "", "So")],
    )


@pytest.fixture
def card_settings() -> Callable[..., dict[str, Any]]:
    """Settings of the stage."""

    def make(**changes: Any) -> dict[str, Any]:
        return {"stage": "describe_corpus", "stage_version": 1, "corpus": "tiny", **changes}

    return make


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture
def read_csv() -> Callable[[Path], list[dict[str, str]]]:
    """Reads a table."""
    return rows_of
