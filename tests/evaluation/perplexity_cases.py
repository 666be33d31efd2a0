"""Text, settings and measurements for the tests of perplexity."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from hatchery.artifacts.manifests import read_manifest, stage_run
from hatchery.artifacts.parquet import ShardWriter
from hatchery.evaluation.perplexity.scoring import held_out_examples
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.evaluation.stages.measure_perplexity import measure_perplexity
from hatchery.evaluation.trained_objective import measured_objective
from hatchery.runner import run_stage
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.tokenization.token_shards import TokenShards
from hatchery.typed import build, stage_body

SENTENCES = ("The old dogs near the house sleep .", "A cat chases dogs .", "She likes old houses and sleeps there .")
OTHER_SCRIPTS = ("Größere Hunde schlafen öfter .", "Старые собаки спят .", "猫 は 家 で 寝る .")
OBJECTIVE = {
    "kind": "span",
    "reading": "corrected",
    "mask_probability": 0.4,
    "random_probability": 0.1,
    "keep_probability": 0.1,
    "short_probability": 0.1,
    "at_least_one": True,
    "special_tokens_maskable": False,
    "segments": "babylm",
    "sentence_pairs": "none",
    "padding_in_loss": False,
    "padding_attended": False,
}
PADDED = {**OBJECTIVE, "kind": "subword", "segments": "documents", "padding_in_loss": True, "padding_attended": True}
ModelMaker = Callable[..., Path]


def write_corpus(manifest: Path, texts: dict[str, list[str]]) -> Path:
    """Write documents by split as a converted corpus, and return its manifest."""
    text_fields = [(name, pa.string()) for name in ("doc_id", "source", "split", "text")]
    schema = pa.schema([*text_fields, ("n_sentences", pa.int32()), ("n_words", pa.int32())])
    with stage_run(manifest, {"stage": "convert_corpus", "stage_version": 1}) as run:
        for split, documents in texts.items():
            with ShardWriter(manifest.parent, split, schema, 50) as writer:
                for index, text in enumerate(documents):
                    row = {"doc_id": f"{split}/{index}", "source": "made", "split": split, "text": text}
                    writer.write({**row, "n_sentences": text.count("\n") + 1, "n_words": len(text.split())})
            for path in writer.paths:
                run.add_output(path)
    return manifest


class Text:
    """Manifests of a corpus, its token shards and their tokenizer."""

    def __init__(self, folder: Path, vocabulary_size: int, texts: dict[str, list[str]], **tokenizer: Any) -> None:
        self.tokenizer, self.tokens = (folder / name / "manifest.json" for name in ("tokenizer", "tokens"))
        self.corpus = write_corpus(folder / "corpus/manifest.json", texts)
        settings = {"kind": "wordpiece", "vocabulary_size": vocabulary_size, "min_frequency": 2, **tokenizer}
        more = {"special_tokens": "babylm", "sentences_limit": None}
        run_stage(
            train_tokenizer,
            {"stage": "train_tokenizer", "stage_version": 1, **settings, **more},
            self.tokenizer,
            corpus=[self.corpus],
        )
        run_stage(
            encode_corpus,
            {"stage": "encode_corpus", "stage_version": 1},
            self.tokens,
            corpus=self.corpus,
            tokenizer=self.tokenizer,
        )


def documents(number: int) -> list[str]:
    """Return texts of different lengths, each of two paragraphs."""
    made = []
    for index in range(number):
        lines = [SENTENCES[(index + line) % 3] for line in range(2 + index % 7)]
        # In these scripts, numbers of bytes, characters and words differ.
        lines.append(OTHER_SCRIPTS[index % 3])
        made.append("\n".join(lines[:1]) + "\n\n" + "\n".join(lines[1:]))
    return made


def settings(**changes: Any) -> dict[str, Any]:
    fields = {"splits": ["dev", "test"], "sequence_length": 24, **changes}
    return {"stage": "measure_perplexity", "stage_version": 1, **fields}


def typed_settings(**changes: Any) -> PerplexitySettings:
    return build(PerplexitySettings, stage_body(settings(**changes)), "perplexity")


def measure(
    model: Path,
    text: Text,
    folder: Path,
    tokens_per_batch: int | None = 256,
    compilation: str = "auto",
    **changes: Any,
) -> dict[str, Any]:
    runtime = {"tokens_per_batch": tokens_per_batch, "device": "cpu", "threads": 1, "compile": compilation}
    run_stage(
        measure_perplexity,
        settings(**changes),
        folder / "manifest.json",
        runtime=runtime,
        model=model,
        tokens=text.tokens,
    )
    with read_manifest(folder / "manifest.json").file("perplexity.csv").open(newline="") as handle:
        return {row["split"]: row for row in csv.DictReader(handle)}


def examples_of(text: Text, model: Path, **changes: Any) -> Any:
    typed = typed_settings(**changes)
    objective = measured_objective(typed, read_manifest(model))
    return held_out_examples(TokenShards.open(text.tokens, "dev"), typed, objective), typed
