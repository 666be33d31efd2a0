"""Perplexity on held-out text with masks that never change."""

import csv
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
import torch
from perplexity_cases import (
    OBJECTIVE,
    OTHER_SCRIPTS,
    PADDED,
    SENTENCES,
    ModelMaker,
    Text,
    documents,
    examples_of,
    measure,
    settings,
    typed_settings,
)
from stage_command import stage_command

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError, EvaluationError, HatcheryError, ManifestError
from hatchery.evaluation.perplexity.scoring import batches, chosen_sequences, drawn_sentences
from hatchery.evaluation.runtime import load_pretrained
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.tokenization.token_shards import TokenShards


def one_at_a_time(model: Path, examples: Any, typed: PerplexitySettings) -> tuple[float, int, int]:
    """Return the mean loss and the numbers of labelled tokens and right predictions, one sequence per forward pass."""
    network = load_pretrained(model)[0].eval()
    losses, right = [], 0
    for index in chosen_sequences(examples, typed):
        batch = examples.batch(typed.seed, 0, [int(index)])
        with torch.no_grad():
            hidden = network.encoder(batch["input_ids"], batch["attention_mask"])[-1]
            log_probabilities = torch.log_softmax(network.logits_at(hidden).double(), dim=-1)[0]
        for position, label in enumerate(batch["labels"][0].tolist()):
            if label != UNLABELLED:
                losses.append(-float(log_probabilities[position, label]))
                right += int(log_probabilities[position].argmax()) == label
    return math.fsum(losses) / len(losses), len(losses), right


@pytest.mark.parametrize(
    ("changes", "objective"),
    [
        ({}, OBJECTIVE),
        ({"random_probability": 0.1, "keep_probability": 0.1}, OBJECTIVE),
        ({"segments": "packed"}, OBJECTIVE),
        ({"masking": "own"}, OBJECTIVE),
        ({"masking": "own"}, PADDED),
        ({"masking": "own"}, {**OBJECTIVE, "sentence_pairs": "order"}),
        ({"sequences": 11}, OBJECTIVE),
    ],
)
def test_the_numbers_are_those_of_one_sequence_at_a_time_with_full_logits(
    text: Text, make_model: ModelMaker, tmp_path: Path, changes: dict[str, Any], objective: Any
) -> None:
    model = make_model(objective=objective)
    row = measure(model, text, tmp_path, **changes)["dev"]
    examples, typed = examples_of(text, model, **changes)
    loss, labelled, right = one_at_a_time(model, examples, typed)
    assert int(row["labelled_tokens"]) == labelled
    assert int(row["sequences"]) == min(len(examples), changes.get("sequences", len(examples)))
    assert float(row["loss_nats"]) == pytest.approx(loss, rel=1e-5)
    assert float(row["perplexity"]) == pytest.approx(math.exp(float(row["loss_nats"])))
    assert float(row["accuracy"]) == pytest.approx(right / labelled)
    facts = read_manifest(tmp_path / "manifest.json").measures["dev"]
    assert facts == {"sequences": int(row["sequences"]), "labelled_tokens": labelled}


def test_compiled_layers_give_the_same_perplexity(
    text: Text, make_model: ModelMaker, tmp_path: Path, compiled_graphs: list[Any]
) -> None:
    model = make_model(layers=1)
    found = [measure(model, text, tmp_path / choice, None, choice, splits=["dev"]) for choice in ("auto", "layers")]
    made = [json.loads((tmp_path / choice / "provenance.json").read_text())["compile"] for choice in ("auto", "layers")]
    assert found[0] == found[1] and made == ["off", "layers"] and compiled_graphs


@pytest.mark.parametrize("changes", [{}, {"segments": "packed"}, {"sequences": 11}])
def test_every_chosen_sequence_comes_once_and_batches_stay_within_the_budget(
    text: Text, make_model: ModelMaker, changes: dict[str, Any]
) -> None:
    examples, typed = examples_of(text, make_model(), **changes)
    chosen = chosen_sequences(examples, typed)
    alone = [examples.example(typed.seed, 0, int(index)) for index in chosen]
    found = []
    for rows, batch in batches(examples, chosen, typed.seed, 100):
        assert rows == len(batch["input_ids"]) == len(batch["labels"])
        assert rows == 1 or batch["input_ids"].numel() <= 100
        for ids, labels in zip(batch["input_ids"].tolist(), batch["labels"].tolist(), strict=True):
            while ids and ids[-1] == examples.padding.pad_id:
                ids.pop()
            found.append((tuple(ids), tuple(labels[: len(ids)])))
    expected = [(tuple(e.input_ids.tolist()), tuple(e.labels.tolist())) for e in alone]
    assert sorted(found) == sorted(expected)


def test_a_sample_is_drawn_from_the_whole_text_by_the_seed() -> None:
    drawn = [chosen_sequences(range(40), typed_settings(sequences=10, seed=seed)).tolist() for seed in range(400)]
    assert all(one == sorted(set(one)) and len(one) == 10 for one in drawn)
    # Each sequence is expected in a quarter of 400 samples. 43 is about five binomial standard deviations of 8.66.
    counts = np.bincount(np.concatenate(drawn), minlength=40)
    assert len(counts) == 40 and (abs(counts - 100) <= 43).all()
    again, more = (chosen_sequences(range(40), typed_settings(sequences=n, seed=7)).tolist() for n in (10, 20))
    assert again == drawn[7] and set(again) < set(more)
    assert chosen_sequences(range(7), typed_settings(sequences=10)).tolist() == list(range(7))


def test_models_of_different_objectives_are_asked_the_same_common_questions(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    first, second = make_model("first"), make_model("second", objective=PADDED)
    asked = {}
    for model in (first, second):
        for masking in ("common", "own"):
            examples, typed = examples_of(text, model, masking=masking)
            asked[model.parent.name, masking] = [
                batch["labels"].tolist()
                for _, batch in batches(examples, chosen_sequences(examples, typed), typed.seed, 100)
            ]
    assert asked["first", "common"] == asked["second", "common"]
    assert asked["first", "own"] != asked["second", "own"]
    assert measure(first, text, tmp_path / "a") == measure(second, text, tmp_path / "b")


def test_common_masks_hide_some_15_percent_of_the_words_behind_mask_and_never_padding(
    text: Text, make_model: ModelMaker
) -> None:
    examples, typed = examples_of(text, make_model(objective=PADDED))
    shards = TokenShards.open(text.tokens, "dev")
    mask_id, n_special = shards.special.ids[shards.special.mask], len(shards.special.order)
    words = labelled = 0
    for index in range(len(examples)):
        example = examples.example(typed.seed, 0, index)
        asked = example.labels != UNLABELLED
        assert set(example.input_ids[asked].tolist()) <= {mask_id}
        assert (example.labels[asked] >= n_special - 1).all()
        labelled += int(asked.sum())
        words += int((np.where(asked, example.labels, example.input_ids) >= n_special).sum())
    assert abs(labelled / words - 0.15) < 4 * math.sqrt(0.15 * 0.85 / words)


def test_padding_in_the_loss_is_judged_only_by_the_runs_own_objective(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    padded, plain = make_model("padded", PADDED), make_model("plain", {**PADDED, "padding_in_loss": False})
    counts = [
        int(measure(model, text, tmp_path / f"{model.parent.name}_own", masking="own")["dev"]["labelled_tokens"])
        for model in (padded, plain)
    ]
    examples, typed = examples_of(text, padded, masking="own")
    lengths = [len(examples.example(typed.seed, 0, index).labels) for index in range(len(examples))]
    assert counts[0] - counts[1] == sum(24 - length for length in lengths) > 0
    common = [measure(model, text, tmp_path / f"{model.parent.name}_common")["dev"] for model in (padded, plain)]
    assert common[0] == common[1]


def test_another_seed_asks_other_questions(text: Text, make_model: ModelMaker, tmp_path: Path) -> None:
    model = make_model()
    rows = [measure(model, text, tmp_path / str(seed), seed=seed)["dev"] for seed in (1, 2)]
    assert rows[0]["loss_nats"] != rows[1]["loss_nats"]


def test_the_budget_of_a_batch_changes_no_more_than_the_last_bits(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    model = make_model()
    one, many, usual = (measure(model, text, tmp_path / str(n), n)["test"] for n in (1, 4096, None))
    assert one["labelled_tokens"] == many["labelled_tokens"]
    assert usual == many
    assert float(one["loss_nats"]) == pytest.approx(float(many["loss_nats"]), rel=1e-6)


def test_pseudo_perplexity_masks_every_token_alone(text: Text, make_model: ModelMaker, tmp_path: Path) -> None:
    model = make_model()
    row = measure(model, text, tmp_path, sequence_length=10, pseudo_perplexity_sentences=5)["dev"]
    shards = TokenShards.open(text.tokens, "dev")
    ids = shards.special.ids
    network = load_pretrained(model)[0].eval()
    losses, sentences = [], drawn_sentences(shards, 5, typed_settings().seed, 10 - 2)
    assert max(map(len, sentences)) == 8, "a sentence is cut"
    for sentence in sentences:
        framed = [ids[shards.special.cls], *sentence, ids[shards.special.sep]]
        for position in range(1, len(framed) - 1):
            hidden_one = [*framed[:position], ids[shards.special.mask], *framed[position + 1 :]]
            with torch.no_grad():
                hidden = network.encoder(torch.tensor([hidden_one]), torch.ones(1, len(framed), dtype=torch.bool))[-1]
                logits = network.logits_at(hidden)[0, position]
            losses.append(-float(torch.log_softmax(logits.double(), dim=-1)[framed[position]]))
    assert float(row["pseudo_perplexity"]) == pytest.approx(math.exp(sum(losses) / len(losses)), rel=1e-5)


def test_drawn_sentences_are_different_sentences_of_words(text: Text) -> None:
    shards = TokenShards.open(text.tokens, "dev")
    n_sentences = sum(len(document.sentence_starts) for document in shards)
    everything = drawn_sentences(shards, 10**6, 1, 100)
    assert len(everything) == n_sentences
    assert all(min(sentence) >= len(shards.special.order) for sentence in everything)
    assert len({tuple(sentence) for sentence in everything}) == len(SENTENCES) + len(OTHER_SCRIPTS)
    assert drawn_sentences(shards, 7, 1, 100) == everything[:7]
    assert all(len(sentence) <= 3 for sentence in drawn_sentences(shards, 7, 1, 3))


def test_shards_of_another_tokenizer_are_refused(make_model: ModelMaker, tmp_path: Path) -> None:
    other = Text(tmp_path / "other", 280, {"train": documents(20), "dev": documents(5), "test": documents(5)})
    with pytest.raises(EvaluationError, match=r"tokens/manifest\.json: .* another tokenizer than the model of"):
        measure(make_model(), other, tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("splits", "error", "complaint"),
    [
        (["dev"], EvaluationError, "the split 'dev' contains no text"),
    ],
)
def test_an_absent_or_empty_split_is_named(
    make_model: ModelMaker, tmp_path: Path, splits: list[str], error: type[HatcheryError], complaint: str
) -> None:
    text = Text(tmp_path / "text", 300, {"train": documents(20), "dev": [""]})
    model = make_model(tokenizer=text.tokenizer)
    with pytest.raises(error, match=complaint):
        measure(model, text, tmp_path / "out", splits=splits)


def test_damaged_weights_end_in_one_clear_error(text: Text, make_model: ModelMaker, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"the split 'dev': the loss of .*model/manifest\.json is not finite"):
        measure(make_model(damaged=True), text, tmp_path / "out")


def test_sequences_without_any_masked_token_are_an_error(text: Text, make_model: ModelMaker, tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="none of the 1 sequences has a masked token"):
        measure(make_model(), text, tmp_path / "out", sequences=1, mask_probability=1e-9)


def test_a_model_without_a_recorded_objective_cannot_be_judged_by_its_own(
    text: Text, make_model: ModelMaker, tmp_path: Path
) -> None:
    model = make_model(objective=None)
    assert measure(model, text, tmp_path / "common")
    with pytest.raises(ManifestError, match="the settings have no objective"):
        measure(model, text, tmp_path / "own", masking="own")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"random_probability": 0.7, "keep_probability": 0.4}, r"random_probability \+ keep_probability"),
    ],
)
def test_impossible_settings_name_the_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=rf"^perplexity\.{key}"):
        typed_settings(**changes)


def test_the_command_writes_the_same_table_twice(text: Text, make_model: ModelMaker, tmp_path: Path) -> None:
    model = make_model()
    contents = []
    for name in ("first", "second"):
        output = tmp_path / name / "manifest.json"
        result = forked.run(
            stage_command(
                "measure_perplexity",
                settings(sequences=20),
                output,
                runtime={"device": "cpu", "threads": 1},
                model=model,
                tokens=text.tokens,
            ),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        contents.append([output.read_bytes(), (output.parent / "perplexity.csv").read_bytes()])
    assert contents[0] == contents[1]
    header = contents[0][1].decode().splitlines()[0]
    assert header == "split,sequences,labelled_tokens,loss_nats,perplexity,accuracy,pseudo_perplexity"
    assert json.loads(contents[0][0])["measures"]["dev"]["sequences"] == 20


BITS = '    bits: Annotated[float | None, Metric("bits per token", better=-1)] = None\n'
LAST_FIELD = '    pseudo_perplexity: Annotated[Perplexity | None, Metric("pseudo-perplexity")] = None\n'
LAST_VALUE = "float(correct) / labelled if labelled else math.nan\n"
PROGRAM = """
import sys
from pathlib import Path
from types import SimpleNamespace

from perplexity_cases import measure

from hatchery.analysis.tidy_tables import MEASUREMENTS, write_rows
from hatchery.artifacts.manifests import read_manifest
from hatchery.evaluation.evaluation import Evaluated
from hatchery.evaluation.perplexity.measurements import perplexity_rows
from hatchery.runner import run_stage
from hatchery.views.stages.summarise import summarise

model, tokens, folder = map(Path, sys.argv[1:])
measure(model, SimpleNamespace(tokens=tokens), folder)
run = {"name": "m-s1", "model": "m", "seed": 1}
place = {"experiment": "demo", "model": "m", "run": "m-s1", "seed": 1, "kind": "perplexity", "manifest": "abc"}
table = folder / "measurements.parquet"
made = read_manifest(folder / "manifest.json")
write_rows(table, MEASUREMENTS, [place | row for row in perplexity_rows(Evaluated(made, made))])
settings = {"experiment": "demo", "runs": [run], "suites": [], "tasks": [], "published": None, "baselines": []}
forms = {"output": folder / "summary.csv", "markdown": folder / "summary.md"}
run_stage(summarise, {"stage": "summarise", "stage_version": 5, **settings}, measurements=table, published=[], **forms)
"""


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_new_metric_is_its_field_and_what_measures_it(
    text: Text, make_model: ModelMaker, tmp_path: Path, repository: Path
) -> None:
    scripts = shutil.copytree(
        repository / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__")
    )
    perplexity, out = scripts / "hatchery" / "evaluation" / "perplexity", tmp_path / "out"
    edited(perplexity / "rows.py", LAST_FIELD, LAST_FIELD + BITS)
    edited(perplexity / "scoring.py", LAST_VALUE, f"{LAST_VALUE.rstrip()}, bits=loss / math.log(2)\n")
    search = os.pathsep.join([str(scripts), str(Path(__file__).parent.parent)])
    subprocess.run(
        [sys.executable, "-c", PROGRAM, make_model(), text.tokens, out],
        check=True,
        env={**os.environ, "PYTHONPATH": search},
    )
    measured = {row["split"]: row for row in csv.DictReader((out / "perplexity.csv").read_text().splitlines())}
    bits = float(measured["dev"]["bits"])
    assert bits == pytest.approx(float(measured["dev"]["loss_nats"]) / math.log(2))
    summary = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
    (found,) = (row for row in summary if (row["task"], row["metric"]) == ("dev", "bits"))
    assert float(found["mean"]) == pytest.approx(bits, abs=1e-4)
    assert "dev bits per token" in (out / "summary.md").read_text()
