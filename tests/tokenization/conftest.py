"""Small seeded corpora in the layout of the conversion stage, tokenizers trained on them, and their tokens."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hatchery.artifacts.manifests import stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.corpora.corpus_writer import SCHEMA
from hatchery.runner import run_stage
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer

SYLLABLES = ["ba", "ti", "ko", "run", "sel", "mar", "né", "über", "lan", "do", "ing", "er", "st", "qu"]
EXTRAS = ["don't", "1984", "3.14", "(so)", "naïve", "“oh”", "中文", "x_y", "12:30", "😀", "[TAB]", "[UNK]"]


def sentence(rng: random.Random, words: int = 9) -> str:
    chosen = [
        rng.choice(EXTRAS) if rng.random() < 0.15 else "".join(rng.choices(SYLLABLES, k=rng.randint(1, 3)))
        for _ in range(rng.randint(1, words))
    ]
    return " ".join(chosen) + rng.choice([".", "?", "", "!"])


def document(rng: random.Random) -> str:
    paragraphs = ["\n".join(sentence(rng) for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(1, 4))]
    return "\n\n".join(paragraphs)


def documents(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [document(rng) for _ in range(count)]


def write_corpus(folder: Path, splits: Mapping[str, Sequence[str]], per_shard: int = 20) -> Path:
    """Write document shards and their manifest; documents alternate between the sources `speech` and `books`."""
    manifest = folder / "manifest.json"
    with stage_run(manifest, {"stage": "convert_corpus", "stage_version": 1}) as run:
        for split, texts in splits.items():
            with ShardWriter(folder, split, SCHEMA, per_shard) as writer:
                for index, text in enumerate(texts):
                    writer.write(
                        {
                            "doc_id": f"{split}/{index}",
                            "source": ("speech", "books")[index % 2],
                            "split": split,
                            "text": text,
                            "n_sentences": sum(1 for line in text.split("\n") if line.strip()),
                            "n_words": len(text.split()),
                        }
                    )
            for path in writer.paths:
                run.add_output(path)
    return manifest


def tokenizer_settings(**changes: object) -> dict[str, object]:
    """Settings of the tokenizer stage, as the rule passes them."""
    return {
        "stage": "train_tokenizer",
        "stage_version": 1,
        "kind": "wordpiece",
        "vocabulary_size": 400,
        "min_frequency": 2,
        "special_tokens": "babylm",
        "sentences_limit": None,
        **changes,
    }


@pytest.fixture(scope="session")
def small() -> SimpleNamespace:
    """Functions that make small corpora and settings, for tests that need their own corpus."""
    return SimpleNamespace(
        documents=documents,
        write_corpus=write_corpus,
        tokenizer_settings=tokenizer_settings,
    )


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 90 training documents in five shards and 12 development documents."""
    splits = {"train": documents(90, seed=1), "dev": documents(12, seed=2)}
    return write_corpus(tmp_path_factory.mktemp("corpus"), splits)


@pytest.fixture(scope="session")
def tokenizer_manifests(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One manifest per kind of tokenizer; `observed` is a WordPiece without the bytes that do not occur in
    the corpus."""
    changes: dict[str, dict[str, object]] = {
        "wordpiece": {},
        "byte_bpe": {"kind": "byte_bpe", "individual_digits": False},
        "observed": {"byte_alphabet": "observed"},
    }
    manifests = {}
    for name, changed in changes.items():
        manifests[name] = tmp_path_factory.mktemp(name) / "manifest.json"
        run_stage(train_tokenizer, tokenizer_settings(**changed), manifests[name], corpus=[corpus])
    return manifests


@pytest.fixture(scope="session")
def tokenizers(tokenizer_manifests: dict[str, Path]) -> dict[str, Tokenizer]:
    return {name: load_tokenizer(path.parent / "tokenizer.json") for name, path in tokenizer_manifests.items()}


@pytest.fixture(scope="session")
def tokens(corpus: Path, tokenizer_manifests: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifest of the corpus encoded with WordPiece."""
    manifest = tmp_path_factory.mktemp("tokens") / "manifest.json"
    run_stage(encode_corpus, {}, manifest, corpus=corpus, tokenizer=tokenizer_manifests["wordpiece"])
    return manifest
