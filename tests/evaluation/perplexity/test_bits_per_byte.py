"""The denominator of bits per byte: the bytes of the text that the predicted tokens represent, counted by hand."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from measured_experiment import Experiment, curve
from perplexity_cases import write_corpus

from hatchery.analysis.collect_measurements import HeldOutText
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.evaluation.perplexity.rows import SplitScore, WordScore
from hatchery.runner import run_stage
from hatchery.sanitize import csv_text
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.stages.encode_corpus import encode_corpus
from hatchery.training.development import development_tokens_per_byte
from hatchery.training.objectives import objective_of, objective_settings

SENTENCES = ("[TAB] ab é", "ж ab", "a 中中 [UNK]")
# Tokens: [TAB] a @@b é | [UNK] a @@b [PAR] | a [UNK] [UNK] [PAR]. A space belongs to the token after it, [PAR] is the
# blank line, and no token contains the line end after the first sentence.
TEXT = f"{SENTENCES[0]}\n{SENTENCES[1]}\n\n{SENTENCES[2]}"
BYTES = {"ordinary": 6 + 3 + 1, "[TAB]": 5, "[UNK]": 2 + 7 + 6, "[PAR]": 2}
MASKED, EVERY, WITHOUT_END = (7, 10 + 5), (12 + 1, 32), (12, 32)
"""Tokens that can be predicted, and the bytes that they represent."""


@pytest.fixture
def held_out(tmp_path: Path) -> HeldOutText:
    """Return the text encoded by a hand-made WordPiece tokenizer. The training split has other sizes."""
    tokens = [*SPECIAL_SETS["babylm"].order, "a", "@@b", "é"]
    definition = {
        "added_tokens": [
            {"id": index, "content": name, "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            for index, name in enumerate(SPECIAL_SETS["babylm"].order)
        ],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {
            "type": "WordPiece",
            "vocab": {token: index for index, token in enumerate(tokens)},
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "@@",
            "max_input_chars_per_word": 100,
        },
    }
    tokenizer = tmp_path / "tokenizer/manifest.json"
    tokenizer.parent.mkdir()
    with stage_run(tokenizer, {"stage": "train_tokenizer", "stage_version": 1}) as run:
        path = tokenizer.with_name("tokenizer.json")
        path.write_text(json.dumps(definition), encoding="utf-8")
        run.add_output(path)
    corpus = write_corpus(tmp_path / "corpus/manifest.json", {"train": ["a ab é\nab", "é ж"], "dev": [TEXT, " \n"]})
    run_stage(encode_corpus, {}, tmp_path / "tokens/manifest.json", corpus=corpus, tokenizer=tokenizer)
    return HeldOutText(read_manifest(tmp_path / "tokens/manifest.json"), read_manifest(corpus))


def made_of(held_out: HeldOutText, **settings: Any) -> Manifest:
    assert held_out._tokens is not None
    made: Any = SimpleNamespace(inputs={"tokens": held_out._tokens.digest}, settings=settings)
    return made


def test_the_encoding_counts_the_bytes_that_tokens_represent_and_no_line_end(held_out: HeldOutText) -> None:
    assert held_out._tokens is not None
    assert held_out._tokens.measures["token_bytes"]["dev"] == BYTES
    # No token contains the one line end within a paragraph or the empty document.
    assert sum(BYTES.values()) == len(TEXT.encode()) - 1 == held_out._tokens.measures["text_bytes"]["dev"] - 1 - 2


@pytest.mark.parametrize(
    ("objective", "masking", "expected"),
    [
        ({}, None, MASKED),
        ({}, "own", MASKED),
        ({"padding_in_loss": True, "segments": "documents"}, None, None),
        ({"padding_in_loss": True, "segments": "documents"}, "own", None),
        ({"padding_in_loss": True, "segments": "documents"}, "common", MASKED),
        ({"special_tokens_maskable": True}, "own", None),
        ({"special_tokens_maskable": True}, "common", MASKED),
        ({"task": "causal"}, None, EVERY),
        ({"task": "causal"}, "common", EVERY),
        ({"task": "causal", "segments": "blocks"}, None, WITHOUT_END),
        ({"task": "hybrid"}, "common", MASKED),
        ({"task": "hybrid", "causal_share": 1}, "common", EVERY),
        ({"task": "hybrid", "causal_share": 1, "segments": "blocks"}, "common", WITHOUT_END),
        ({"task": "translation"}, "common", None),
    ],
)
def test_every_objective_has_the_bytes_of_the_tokens_that_it_predicts(
    held_out: HeldOutText, objective: dict[str, Any], masking: str | None, expected: tuple[int, int] | None
) -> None:
    settings = objective_settings(objective, "objective")
    made = made_of(held_out, **({} if masking is None else {"masking": masking}))
    # Cached counts of other objectives and splits are not used for this objective.
    for other in ({}, {"task": "causal"}, {"task": "causal", "segments": "blocks"}, {"task": "hybrid"}):
        for split in ("train", "dev"):
            held_out.tokens_per_byte(made, objective_settings(other, "objective"), split)
    found = held_out.tokens_per_byte(made, settings, "dev")
    assert found == (None if expected is None else pytest.approx(expected[0] / expected[1]))
    if masking is None:
        assert held_out._tokens is not None
        assert development_tokens_per_byte(held_out._tokens.path, objective_of(settings)) == found
    assert held_out.tokens_per_byte(made, settings, "train") != found or found is None


def test_bits_per_byte_of_ours_and_of_models_of_others(held_out: HeldOutText, tmp_path: Path) -> None:
    assert held_out._corpus is not None
    model: Any = None
    with stage_run(tmp_path / "measured/manifest.json", {}) as run:
        for name, row in (
            ("perplexity.csv", SplitScore("dev", 1, 10, 2.0, 7.4, 0.5)),
            ("words.csv", WordScore("dev", 7, 1.0, 3.0)),
        ):
            run.folder.joinpath(name).write_text(csv_text(list(vars(row)), [list(vars(row).values())]))
            run.add_output(run.folder / name)
    made = read_manifest(tmp_path / "measured/manifest.json")

    def bits(**known: Any) -> float | None:
        rows = perplexity_rows(Evaluated(made, model, unigram_loss=lambda split: 3.0, **known))
        (row,) = [row for row in rows if row["metric"] == "bits_per_byte"]
        assert row["blind_guess"] == pytest.approx(1.5 * row["value"])
        assert {(row["items"], row["level"], row["failed"]) for row in rows} == {(10, "split", "")}
        return row["value"]

    assert bits(tokens_per_byte={"dev": 7 / 15, "test": 1.0}.get) == pytest.approx(2 * 7 / 15 / math.log(2))
    # An imported model reads the three sentences joined by spaces, of which ten tokens represent the text.
    its: Any = SimpleNamespace(inputs={"corpus": held_out._corpus.digest}, settings={})
    size = len(" ".join(SENTENCES).encode())
    assert held_out.n_bytes(its, "dev") == size == 11 + 1 + 5 + 1 + 14
    assert bits(n_bytes=lambda split: held_out.n_bytes(its, split)) == pytest.approx(2 * 10 / 32 / math.log(2))
    assert held_out.n_bytes(made_of(held_out), "dev") is None


def test_tables_have_the_bits_per_byte_of_each_run_split_and_model_of_others(
    held_out: HeldOutText, tmp_path: Path
) -> None:
    """Losses are 2, 4 and 3 nats. The training split has other numbers of tokens and bytes."""
    assert held_out._tokens is not None and held_out._corpus is not None
    measured = Experiment(tmp_path / "measured")
    measured.tokens, measured.corpus = held_out._tokens.path, held_out._corpus.path
    common = {"masking": "common"}
    for model, objective, loss in (
        ("masked", {"kind": "subword"}, 2.0),
        ("causal", {"task": "causal"}, 4.0),
        ("padded", {"kind": "subword", "padding_in_loss": True, "segments": "documents"}, 2.0),
    ):
        # `curve` adds half a nat to the last development loss.
        run = measured.add_model(model, 7, curve(loss - 0.5), objective=objective)
        measured.add_perplexity(run, {"dev": (3.0, 20.0, 0.5), "train": (3.0, 20.0, 0.5)}, settings=common)
    measured.add_baseline("theirs")
    words = csv_text(
        ("split", "words", "loss_nats_per_word", "word_perplexity"), [("dev", 7, 6.0, 400.0), ("train", 6, 6.0, 400.0)]
    )
    measured.perplexity["theirs"] = measured._evaluation(
        "perplexity",
        "theirs",
        "",
        common,
        {
            "perplexity.csv": read_manifest(measured.perplexity["masked-s7"]).file("perplexity.csv").read_text(),
            "words.csv": words,
        },
    )
    tables = {path.stem: pl.read_parquet(path) for path in measured.tables().values()}
    assert set(tables) == {"measurements", "runs", "curves", "layers"}

    def rows(**of: str) -> list[dict[str, Any]]:
        return tables["measurements"].filter(**of).to_dicts()

    per_byte = {
        "masked": (7 / 15, 7 / 11),
        "causal": (13 / 32, 12 / 14),
        "theirs": (150 / 32, 150 / 15),
        "padded": (7 / 15, 7 / 11),
    }
    for model, ratios in per_byte.items():
        for split, ratio in zip(("dev", "train"), ratios, strict=True):
            (row,) = rows(model=model, kind="perplexity", task=split, metric="bits_per_byte")
            assert row["value"] == pytest.approx(3 * ratio / math.log(2)), (model, split)
            assert (row["run"], row["seed"]) == (("theirs", None) if model == "theirs" else (f"{model}-s7", 7))
            (loss,) = rows(model=model, kind="perplexity", task=split, metric="loss_nats")
            assert loss["value"] == 3
    # Counts in the training text: a 3, @@b 2, é 2, 7 in total. Each of the ten types has one more count.
    blind = -(math.log(1 / 17) + 3 * math.log(4 / 17) + 2 * math.log(3 / 17) + math.log(3 / 17)) / 7
    (row,) = rows(model="masked", kind="perplexity", task="dev", metric="loss_nats")
    assert row["blind_guess"] == pytest.approx(blind)
    (row,) = rows(model="masked", kind="perplexity", task="train", metric="loss_nats")
    assert row["blind_guess"] == pytest.approx(-(3 * math.log(4 / 17) + 4 * math.log(3 / 17)) / 7)
    # A causal model predicts every token. The training text also has [UNK] once, and [PAR] and [SEP] twice each: 12
    # tokens. Development text has 13 tokens, of which [TAB] is new.
    counts = {4: 3, 3: 2 + 1 + 2 + 1, 2: 3, 1: 1}
    every = -sum(number * math.log(count / 22) for count, number in counts.items()) / 13
    (row,) = rows(model="causal", kind="perplexity", task="dev", metric="loss_nats")
    assert row["blind_guess"] == pytest.approx(every)
    (row,) = rows(model="masked", kind="perplexity", task="dev", metric="bits_per_byte")
    assert row["blind_guess"] == pytest.approx(blind * 7 / 15 / math.log(2))
    runs = {row["model"]: row for row in tables["runs"].to_dicts()}
    for model, loss in (("masked", 2), ("causal", 4)):
        expected = loss * per_byte[model][0] / math.log(2)
        assert runs[model]["development_bits_per_byte"] == pytest.approx(expected)
        points = tables["curves"].filter(model=model)["development_bits_per_byte"].to_list()
        assert points[:1] + points[2:3] == [None, None]
        assert [points[1], points[3]] == pytest.approx([expected * (loss + 2) / loss, expected])
        (row,) = rows(model=model, kind="pretraining", metric="bits_per_byte")
        assert row["value"] == pytest.approx(expected) and row["task"] == "development"
    assert runs["masked"]["unigram_loss"] == pytest.approx(blind)
    assert runs["padded"]["development_bits_per_byte"] is None
    assert not rows(model="padded", kind="pretraining", metric="bits_per_byte")
