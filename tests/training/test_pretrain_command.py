"""The pretrain command for each model family and kind of objective: training, stop, resumption and export.

Every test starts the stage as its own process, because kills, signals and process groups cannot be tried inside pytest.
The model is tiny. The tests check that no bit depends on interruptions, and that every part between configuration and
exported model works.
"""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import read_manifest
from hatchery.modeling.store import load_language_model
from hatchery.training.checkpoints import MODEL
from hatchery.training.run_folder import run_folder_name
from hatchery.training.stages.pretrain import UNTRAINED

Make = Callable[..., Any]

pytestmark = pytest.mark.slow

STEPS = 40
EXPORTED = {"model.safetensors", "config.json", "tokenizer.json", "metrics.jsonl", "layer_weights.json"}


@pytest.fixture(scope="module")
def uninterrupted(make_command: Make) -> Any:
    """A finished run without any interruption, the reference for all other runs."""
    command = make_command()
    command.finish()
    return command


def test_a_run_leaves_a_complete_verified_output_and_no_run_folder(uninterrupted: Any) -> None:
    manifest = read_manifest(uninterrupted.output)
    manifest.verify()
    assert {output.path.name for output in manifest.outputs} == EXPORTED
    assert manifest.measures["steps"] == STEPS and manifest.measures["tokens"] > 0
    assert list(uninterrupted.checkpoints.iterdir()) == []
    rows = uninterrupted.rows()
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert rows[0]["learning_rate"] == 0 and rows[-1]["tokens"] == manifest.measures["tokens"]
    with_development = [row["step"] for row in rows if "development_loss" in row]
    assert with_development == [10, 20, 30, 40]
    assert rows[-1]["development_loss"] < rows[9]["development_loss"]
    layer_weights = json.loads(manifest.file("layer_weights.json").read_text())["rows"]
    assert {(row["consuming_layer"], row["producing_layer"]) for row in layer_weights} == {(1, 0), (2, 0), (2, 1)}


def test_a_run_says_how_often_it_reads_its_text(make_command: Make) -> None:
    command = make_command(steps=25, batch_size=128, long=None, evaluation_sequences=0)
    (line,) = [line for line in command.finish().splitlines() if "epochs" in line]
    found = re.fullmatch(r"output: 25 steps are (\d\.\d\d) epochs of the ([\d,]+) training sequences", line)
    assert found, line
    epochs, sequences = float(found[1]), int(found[2].replace(",", ""))
    assert epochs == pytest.approx(25 * 128 / sequences, abs=0.005) and epochs > 2


def test_a_finished_run_whose_end_nobody_noted_is_taken_unless_it_is_damaged_or_forced(
    make_command: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = make_command(steps=3)
    command.finish()
    digests = command.digests()

    def again() -> str:
        # Snakemake deletes the output of a job if it has not seen the job's end.
        command.output.unlink()
        log = str(command.finish())
        assert command.digests() == digests
        return log

    # Restore the state after a kill before the run could remove its checkpoints.
    manifest = read_manifest(command.output)
    folder = command.checkpoints / run_folder_name(manifest.settings, manifest.inputs)
    (folder / "step_00000003").mkdir(parents=True)
    assert "reused the finished result, whose checksums are correct" in again()
    assert list(command.checkpoints.iterdir()) == []
    weights = command.output.with_name("model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert "3 steps done" in again()
    monkeypatch.setenv("HATCHERY_FORCED", "1")
    assert "3 steps done" in again()


def test_two_runs_side_by_side_do_not_disturb_each_other(make_command: Make, uninterrupted: Any) -> None:
    commands = [make_command(), make_command()]
    processes = [command.start() for command in commands]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert commands[0].digests() == commands[1].digests() == uninterrupted.digests()


def test_zero_steps_need_no_more_than_is_planned_with_and_share_nothing(make_command: Make) -> None:
    changes = {"steps": 0, "seed": 3, "model__layer_weighting": "none"}
    whole, planned = make_command(**changes), make_command({"zero_stage": 2}, **changes)
    for key in whole.settings.keys() - {"stage", "stage_version", "model", "seed", *UNTRAINED}:
        del planned.settings[key]
    assert planned.settings.keys() < whole.settings.keys()
    for command in (whole, planned):
        command.finish()
    first, second = (command.output.with_name("model.safetensors").read_bytes() for command in (whole, planned))
    assert first == second
    manifest = read_manifest(whole.output)
    assert {output.path.name for output in manifest.outputs} == EXPORTED - {"layer_weights.json"}
    assert manifest.file("metrics.jsonl").read_text() == "" and manifest.measures["steps"] == 0


def test_a_crash_during_the_export_loses_no_training(make_command: Make) -> None:
    command = make_command(steps=6, long=None)
    in_the_way = command.output.with_name("model.safetensors")
    in_the_way.mkdir(parents=True)
    process = command.start()
    process.communicate(timeout=60)
    assert process.returncode != 0 and not command.output.exists()
    in_the_way.rmdir()
    command.finish()
    read_manifest(command.output).verify()
    assert command.provenance()["resumed_from_step"] == 6
    assert command.output.with_name("metrics.jsonl").read_text().count("\n") == 6


def test_a_loss_that_is_not_finite_ends_in_one_line_with_step_and_checkpoint(make_command: Make) -> None:
    command = make_command(optimizer__learning_rate=1e38, schedule__warmup_fraction=0.2)
    message = command.fail().splitlines()[-1]
    assert message.startswith("error: step 3: ") and "learning rate" in message


def test_a_loss_that_runs_away_stops_the_run_also_after_it_was_resumed(make_command: Make) -> None:
    command = make_command(optimizer__learning_rate=100.0, schedule__warmup_fraction=0.2, long=None)
    for _ in range(2):
        message = command.fail().splitlines()[-1]
        assert message.startswith("error: step ") and "training has diverged" in message
        assert "checkpoint" in message


def test_shards_of_another_tokenizer_are_refused(make_command: Make, tmp_path: Path) -> None:
    command = make_command()
    # Leave out the files with the manifest's checksum, so that the manifest has no other mistake.
    unvouched = shutil.ignore_patterns("provenance.json", "finished.json")
    other = shutil.copytree(command.tokenizer.parent, tmp_path / "tokenizer", ignore=unvouched) / "manifest.json"
    other.write_text(command.tokenizer.read_text().replace('"measures": {', '"measures": {"other": 1, '))
    assert sha256_file(other) != sha256_file(command.tokenizer)
    command.tokenizer = other
    err = command.fail()
    assert err.count("\n") == 1 and "another tokenizer" in err


def test_a_tokenizer_that_was_changed_after_its_manifest_is_refused_before_training(
    make_command: Make, tmp_path: Path
) -> None:
    command = make_command()
    shutil.copytree(command.tokenizer.parent, tmp_path / "tokenizer")
    command.tokenizer = tmp_path / "tokenizer" / "manifest.json"
    changed = command.tokenizer.with_name("tokenizer.json")
    changed.write_text(changed.read_text("utf-8").replace('"id": 5', '"id": 6'), encoding="utf-8")
    err = command.fail()
    assert err.count("\n") == 1 and "tokenizer.json: has the SHA-256" in err
    assert command.run_folder is None


def test_workers_milestones_divergences_and_a_foreground_writer_change_no_weight(
    make_command: Make, uninterrupted: Any
) -> None:
    runtime = {"workers": 2, "milestones": [0.25, 1.0], "background_checkpoints": False, "log_interval_steps": 7}
    command = make_command(runtime)
    command.settings["divergences"] = True
    command.finish()
    folder = command.output.parent
    assert command.digests()[MODEL] == uninterrupted.digests()[MODEL]
    # The milestone of the last step equals the exported model, and each milestone is a complete model.
    last = folder / "milestones" / "step_00000040"
    assert (last / MODEL).read_bytes() == (folder / MODEL).read_bytes()
    early, final = (load_language_model(path) for path in (last.with_name("step_00000010"), folder))
    assert not all(torch.equal(one, other) for one, other in zip(early.parameters(), final.parameters(), strict=True))
    rows = command.rows()
    assert [row["step"] for row in rows if "kl_unigram" in row] == [0, 1, 2, 4, 8, 10, 16, 20, 30, 32, 40]
    speed = [json.loads(line)["step"] for line in (folder / "speed.jsonl").read_text().splitlines()]
    assert speed == [7, 14, 21, 28, 35, 40]


def test_workers_end_with_a_training_that_is_killed(make_command: Make) -> None:
    command = make_command({"workers": 2}, steps=100_000)
    process = command.start()
    command.wait_for_step(process, 3)
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    process.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive


def test_sigterm_to_all_processes_of_a_step_saves_although_it_reaches_the_workers(make_command: Make) -> None:
    command = make_command({"workers": 2}, steps=100_000)
    process = command.start()
    command.wait_for_step(process, 3)
    for worker in psutil.Process(process.pid).children():
        worker.terminate()
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    assert "Traceback" not in err


ROBERTA = {
    "family": "roberta",
    "embedding_size": 16,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
    "initialisation": "as_published",
}
ABLATED = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "normalisation": "post_norm",
    "feed_forward_activation": "gelu",
    "feed_forward_bias": True,
    "position_embedding": "absolute",
    "layer_weighting": "zero",
}
CHOICES: dict[str, dict[str, Any]] = {
    "roberta, order of sentences": {"model": ROBERTA, "objective__sentence_pairs": "order"},
    "roberta as published": {
        "model": ROBERTA,
        "objective__kind": "subword",
        "objective__segments": "documents",
        "objective__special_tokens_maskable": True,
        "objective__padding_in_loss": True,
        "objective__padding_attended": True,
        "long": None,
    },
    "roberta, literal scale": {
        "model": ROBERTA,
        "output_bias__kind": "unigram",
        "output_bias__weight_scale": "frobenius",
    },
    "ablated, whole words, unigram": {
        "model": ABLATED,
        "objective__kind": "whole_word",
        "output_bias__kind": "unigram",
    },
    "documents of pairs, BNC segments": {
        "objective__sentence_pairs": "document",
        "objective__segments": "bnc",
        "objective__kind": "subword",
    },
    "causal, unigram of the corpus": {
        "objective": {"task": "causal"},
        "output_bias__kind": "unigram",
        "output_bias__counts": "corpus",
    },
    "causal roberta, whole documents, no bias": {
        "model": ROBERTA,
        "objective": {"task": "causal", "segments": "babylm"},
        "output_bias__kind": "none",
    },
    "packed, span as published, no bias": {
        "objective__segments": "packed",
        "objective__reading": "as_published",
        "output_bias__kind": "none",
    },
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_trains_and_a_killed_run_ends_with_the_same_bits(name: str, make_command: Make) -> None:
    changes = {"steps": 24, **CHOICES[name]}
    whole, killed = make_command(**changes), make_command(**changes)
    whole.finish()
    killed.kill_after(11)
    killed.finish()
    assert killed.digests() == whole.digests()

    metrics = whole.rows()
    assert all(math.isfinite(value) for row in metrics for value in row.values())
    task = changes.get("objective", {}).get("task")
    expected = (task == "causal", task != "causal")
    assert all(("next_token_accuracy" in row, "masked_accuracy" in row) == expected for row in metrics)
    has_pairs = changes.get("objective__sentence_pairs", "none") != "none"
    assert all(("pair_loss" in row) == has_pairs for row in metrics)
    if has_pairs:
        assert metrics[0]["pair_loss"] == pytest.approx(math.log(2), abs=0.3)
        assert 0 <= metrics[-1]["development_pair_accuracy"] <= 1
    model = load_language_model(whole.output.parent)
    assert (model.pair_head is not None) == has_pairs
    names = whole.weights().keys()
    assert ("head.vocabulary_bias" in names) == (changes.get("output_bias__kind") != "none")


def test_the_unigram_start_is_ahead_by_the_entropy_of_the_labels(make_command: Make) -> None:
    first_losses = {}
    for kind in ("zero", "unigram", "none"):
        command = make_command(output_bias__kind=kind, steps=2, long=None, model__hidden_dropout_prob=0.0)
        command.finish()
        first_losses[kind] = command.rows()[0]["loss"]
    measures = read_manifest(command.output).measures
    assert measures["parameters"] > 0
    assert first_losses["none"] == first_losses["zero"]
    assert first_losses["zero"] == pytest.approx(math.log(300), rel=0.1)
    # The generated language has a few dozen words.
    assert first_losses["unigram"] < first_losses["zero"] - 1
