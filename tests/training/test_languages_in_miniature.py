"""Train on Mandarin and on a mixture, from released columns to a model with 28 checkpoints, in adjusted words."""

import csv
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hatchery.artifacts.manifests import read_manifest
from hatchery.corpora.stages.convert_corpus import convert_corpus
from hatchery.corpora.stages.sample_corpus import sample_corpus
from hatchery.raw.registration import register_source
from hatchery.runner import run_stage
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.tokenization.stages.train_tokenizer import train_tokenizer
from hatchery.training.milestones import mark_name, milestone_place

# The challenge's 28 marks, divided by 50,000: from 20 to 20,000 words.
MARKS = [step * unit for unit, most in ((20, 9), (200, 9), (2_000, 10)) for step in range(1, most + 1)]
LETTERS = {
    "mandarin": (list("的一是不了在人有我他这个们中来上大为和国地到以说时要就出会"), ""),
    "dutch": (["de", "het", "een", "kat", "hond", "loopt", "zit", "op", "in", "mat", "tuin", "één", "ziet"], " "),
    "english": (["the", "a", "cat", "dog", "runs", "sits", "on", "in", "mat", "garden", "big", "sees"], " "),
}
PREMIUMS = {"mandarin": 0.9359664, "dutch": 1.0516057, "english": 1.0}


def documents(language: str) -> list[str]:
    rng = random.Random(language)
    words, joint = LETTERS[language]
    mark = "。" if language == "mandarin" else "."
    return ["\n".join(joint.join(rng.choices(words, k=rng.randint(4, 9))) + mark for _ in range(4)) for _ in range(400)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a source of each language."""
    folder = tmp_path_factory.mktemp("languages")
    for language in LETTERS:
        (folder / language).mkdir()
        with (folder / language / "dataset.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "license"), *((text, "CC0") for text in documents(language))])
        register_source(language, folder / language, folder / f"{language}.json")
    options = {"sentences": "line", "licence_column": "license"}
    sources = [{"name": language, "reader": "plain_text", "options": options} for language in LETTERS]
    manifest = folder / "corpus/manifest.json"
    named = {language: folder / f"{language}.json" for language in LETTERS}
    run_stage(convert_corpus, {"sources": sources, "split": {"development_fraction": 0.05}}, manifest, source=named)
    return manifest


@pytest.mark.slow
@pytest.mark.parametrize("shares", [{"mandarin": 2_100}, {"mandarin": 700, "dutch": 700, "english": 700}])
def test_a_run_in_adjusted_words_has_its_28_checkpoints(
    corpus: Path, make_command: Callable[..., Any], tmp_path: Path, shares: dict[str, int]
) -> None:
    drawn, tokenizer, tokens = (tmp_path / name / "manifest.json" for name in ("sample", "tokenizer", "tokens"))
    parts = {
        language: {"sources": [language], "bytes": int(words * 5.43 * PREMIUMS[language])}
        for language, words in shares.items()
    }
    run_stage(sample_corpus, {"parts": parts}, drawn, corpus=corpus, size_of=None)
    settings = {"kind": "byte_bpe", "vocabulary_size": 320, "allow_smaller": True}
    run_stage(train_tokenizer, settings, tokenizer, corpus=[drawn])
    premiums = {language: PREMIUMS[language] for language in shares}
    counting = {"word_count": "adjusted", "byte_premiums": premiums}
    run_stage(encode_corpus, counting, tokens, corpus=drawn, tokenizer=tokenizer)

    measures = read_manifest(tokens).measures
    manifest = read_manifest(drawn)
    # The expected words are the bytes of the drawn documents divided by the language's byte premium.
    texts = {language: set(documents(language)) for language in shares}
    sizes = dict.fromkeys(shares, 0)
    for path in manifest.files(".parquet", "train-"):
        for text in pq.read_table(path).column("text").to_pylist():
            (language,) = (each for each in shares if text in texts[each])
            sizes[language] += len(text.encode())
    expected = sum(math.ceil(size / (5.43 * PREMIUMS[language])) for language, size in sizes.items())
    assert measures["text_words"]["train"] == expected
    assert 1_900 <= expected <= 2_100

    command = make_command(
        budget={"words_seen": 20_000, "epochs": 10.5},
        checkpoints_at=MARKS,
        objective={"task": "causal"},
        sequence_length=32,
        batch_size=2,
        model__num_hidden_layers=1,
        long=None,
        evaluation_interval_steps=500,
    )
    del command.settings["steps"]
    command = replace(command, tokens=tokens, tokenizer=tokenizer)
    command.finish()
    found = read_manifest(command.output).measures
    assert found["word_count"] == "adjusted"
    names = [mark_name(words) for words in MARKS]
    assert set(found["marks"]) == set(names) and len(names) == 28
    most = min(20_000, int(10.5 * expected))
    assert found["words"] <= most < found["words"] + 60
    for words, name in zip(MARKS[:-1], names, strict=False):
        assert found["marks"][name]["words"] >= min(words, found["words"])
    assert found["marks"][names[-1]] == {"step": found["steps"], "words": found["words"]}
    assert all((command.output.parent / milestone_place(name) / "model.safetensors").is_file() for name in names)
