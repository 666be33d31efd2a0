"""Corpora counted by hand, and their cards."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.corpora.corpus_writer import SCHEMA
from hatchery.corpora.documents import SPLITS, count_sentences, count_words
from hatchery.runner import run_stage
from hatchery.sanitize import csv_text
from hatchery.views.stages.describe_corpus import describe_corpus

MEASURES = ("documents", "sentences", "words", "characters")


def write_corpus(
    folder: Path,
    documents: Iterable[tuple[str, str, str, str]],
    rejected: Iterable[Sequence[Any]] = (),
    samples: Iterable[Sequence[Any]] = (),
    tables: dict[str, str] | None = None,
) -> Path:
    """Write documents (doc_id, source, split, text); `tables` adds or replaces tables."""
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
        written = {
            "statistics.csv": csv_text(("source", "split", *MEASURES), [(*key, *row) for key, row in counts.items()]),
            "rejected.csv": csv_text(("source", "reason", "count"), rejected),
            "samples.csv": csv_text(("source", "outcome", "reason", "text"), samples),
            **(tables or {}),
        }
        for name, text in written.items():
            write_text(folder / name, text)
            run.add_output(folder / name)
    return folder / "manifest.json"


# 5 sentences, 14 words; running words: the cat sat the dog ran | it's a cat | run the run | so 5: types counted below.
TWO_SOURCES = [
    ("a/1", "alpha", "train", "The cat sat .\nThe dog ran !"),
    ("b/1", "beta", "train", "It's a cat , [UNK] ."),
    ("a/2", "alpha", "dev", "Run , the “run” !"),
    ("b/2", "beta", "train", "# So\n\n5 cats"),
]


def two_sources_corpus(folder: Path) -> Path:
    """Write a corpus with sources alpha and beta, two documents each, and one rejected text."""
    return write_corpus(
        folder / "corpus",
        TWO_SOURCES,
        rejected=[("alpha", "too_short", 7)],
        samples=[("alpha", "rejected", "too_short", "Hm ."), ("beta", "accepted", "", "So")],
    )


def card_settings(**changes: Any) -> dict[str, Any]:
    return {"stage": "describe_corpus", "stage_version": 1, "corpus": "tiny", **changes}


def tokens_of(corpus: Path, folder: Path) -> Path:
    rows = "split,source,subwords\ntrain,alpha,9\ndev,alpha,6\ntrain,beta,12\n"
    with stage_run(folder / "manifest.json", {"stage": "encode_corpus"}, {"corpus": corpus}) as run:
        write_text(folder / "statistics.csv", rows)
        run.add_output(folder / "statistics.csv")
    return folder / "manifest.json"


def described(corpus: Path, folder: Path, settings: dict[str, Any] | None = None, **inputs: Path) -> Path:
    """Write the card of a corpus into the folder."""
    run_stage(describe_corpus, settings or card_settings(), folder / "manifest.json", corpus=corpus, **inputs)
    return folder
