"""Small seeded corpora in the layout of the conversion stage."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from hatchery.storage.manifests import stage_run
from hatchery.storage.parquet import ShardWriter
from hatchery.tokenization.special_tokens import SPECIAL_TOKENS

SCHEMA = pa.schema(
    [
        ("doc_id", pa.string()),
        ("source", pa.string()),
        ("split", pa.string()),
        ("text", pa.string()),
        ("n_sentences", pa.int32()),
        ("n_words", pa.int32()),
    ]
)
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
    """Write document shards and their manifest; documents take turns between the sources `speech` and `books`."""
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
    """Settings of the tokenizer stage, as the rule hands them over."""
    return {
        "stage": "train_tokenizer",
        "stage_version": 1,
        "kind": "wordpiece",
        "vocabulary_size": 400,
        "min_frequency": 2,
        "special_tokens": list(SPECIAL_TOKENS),
        "sentences_limit": None,
        **changes,
    }


def encoding_settings(documents_per_batch: int = 16) -> dict[str, object]:
    """Settings of the encoding stage, as the rule hands them over."""
    return {"stage": "encode_corpus", "stage_version": 1, "documents_per_batch": documents_per_batch}
