"""The command as it is run: complete outputs, exact resuming after kills, several processes, and ends that help.

Every test starts the stage as its own process, because kills, signals and process groups cannot be tried
inside pytest. The model is tiny; what is tested is that not one bit depends on interruptions.
"""

import json
import random
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import load_file

from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import read_manifest
from hatchery.modeling.store import load_language_model
from hatchery.training.checkpoints import MODEL, checkpoint_folders, checkpoint_step
from hatchery.training.data_order import global_batch
from hatchery.training.stages.pretrain import UNTRAINED

pytestmark = pytest.mark.slow

Factory = Callable[..., dict[str, Any]]
STEPS = 40
EXPORTED = {"model.safetensors", "config.json", "tokenizer.json", "metrics.jsonl", "layer_weights.json"}


@pytest.fixture(scope="module")
def uninterrupted(make_command: Callable[..., Any]) -> Any:
    """A finished run without any interruption: what all others are compared with."""
    command = make_command()
    command.finish()
    return command


def test_a_run_leaves_a_complete_verified_output_and_no_run_folder(uninterrupted: Any) -> None:
    manifest = read_manifest(uninterrupted.output)
    manifest.verify()
    assert {output.path.name for output in manifest.outputs} == EXPORTED
    assert manifest.measures["steps"] == STEPS and manifest.measures["tokens"] > 0
    assert list(uninterrupted.checkpoints.iterdir()) == []
    rows = [json.loads(line) for line in manifest.file("metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert rows[0]["learning_rate"] == 0 and rows[-1]["tokens"] == manifest.measures["tokens"]
    with_development = [row["step"] for row in rows if "development_loss" in row]
    assert with_development == [10, 20, 30, 40]
    assert rows[-1]["development_loss"] < rows[9]["development_loss"]
    layer_weights = json.loads(manifest.file("layer_weights.json").read_text())["rows"]
    assert {(row["consuming_layer"], row["producing_layer"]) for row in layer_weights} == {(1, 0), (2, 0), (2, 1)}


def test_a_run_says_how_often_it_reads_its_text(make_command: Callable[..., Any]) -> None:
    command = make_command(steps=25, batch_size=128, long=None, evaluation_sequences=0)
    (line,) = [line for line in command.finish().splitlines() if "epochs" in line]
    found = re.fullmatch(r"output: 25 steps are (\d\.\d\d) epochs of the ([\d,]+) sequences of its text", line)
    assert found, line
    epochs, sequences = float(found[1]), int(found[2].replace(",", ""))
    assert epochs == pytest.approx(25 * 128 / sequences, abs=0.005) and epochs > 2
    # The order of the data agrees: the last batch lies in that epoch.
    assert global_batch(42, 24, 128, sequences)[-1].epoch == int(epochs)


def test_killed_three_times_a_run_ends_with_the_same_bits(make_command: Callable[..., Any], uninterrupted: Any) -> None:
    command, rng = make_command(), random.Random(11)
    # One kill in the short phase, one around the switch to long sequences (step 24), one in the long phase.
    for low, high in ((6, 12), (21, 26), (31, 37)):
        process = command.start()
        command.wait_for_step(process, rng.randint(low, high))
        time.sleep(rng.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert not command.output.exists()
    log = command.finish()
    assert "goes on after step" in log
    provenance = json.loads((command.output.parent / "provenance.json").read_text())
    assert provenance["resumed_from_step"] >= 30
    assert command.digests() == uninterrupted.digests()


def test_sigterm_saves_and_tells_how_to_go_on_and_a_damaged_checkpoint_is_passed_over(
    make_command: Callable[..., Any], uninterrupted: Any
) -> None:
    command = make_command()
    process = command.start()
    command.wait_for_step(process, 17)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "SIGTERM" in err.splitlines()[-1] and "run the same command again" in err.splitlines()[-1]
    assert "Traceback" not in err

    assert command.run_folder is not None
    newest, older = checkpoint_folders(command.run_folder)[:2]
    assert int(newest.name.removeprefix("step_")) == command.finished_steps()
    content = bytearray((newest / MODEL).read_bytes())
    content[-5] ^= 1
    (newest / MODEL).write_bytes(content)
    log = command.finish()
    assert "warning" in log and MODEL in log
    provenance = json.loads((command.output.parent / "provenance.json").read_text())
    assert provenance["resumed_from_step"] == int(older.name.removeprefix("step_"))
    assert command.digests() == uninterrupted.digests()


def test_a_finished_run_whose_end_nobody_noted_is_taken_unless_it_is_damaged_or_forced(
    make_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = make_command(steps=3)
    command.finish()
    digests = command.digests()

    def again() -> str:
        # As Snakemake leaves it, which deletes the output of a job whose end it has not seen.
        command.output.unlink()
        log = str(command.finish())
        assert command.digests() == digests
        return log

    assert "finished before, its checksums hold: taken as it is" in again()
    weights = command.output.with_name("model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert "3 steps done" in again()
    monkeypatch.setenv("HATCHERY_FORCED", "1")
    assert "3 steps done" in again()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_two_processes_with_micro_batches_train_the_model_of_one_process(make_command: Callable[..., Any]) -> None:
    # Without dropout, whose draws belong to a process; and a large epsilon, because Adam's m / sqrt(v) would blow up
    # the rounding of gradients that are almost zero.
    changes = {
        "model__hidden_dropout_prob": 0.0,
        "model__attention_probs_dropout_prob": 0.0,
        "optimizer__epsilon": 1e-3,
    }
    alone, together = make_command(**changes), make_command({"micro_batch_size": 3}, **changes)
    alone.finish()
    rendezvous = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    processes = [together.start(RANK=str(rank), LOCAL_RANK=str(rank), **rendezvous) for rank in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err

    expected, found = (
        [json.loads(line) for line in command.output.with_name("metrics.jsonl").read_text().splitlines()]
        for command in (alone, together)
    )
    for row, other in zip(expected, found, strict=True):
        assert other["tokens"] == row["tokens"]
        for key in ("loss", "masked_accuracy", "gradient_norm"):
            assert other[key] == pytest.approx(row[key], rel=1e-4), f"{key} of step {row['step']}"
        assert ("development_loss" in other) == ("development_loss" in row)
        if "development_loss" in row:
            assert other["development_loss"] == pytest.approx(row["development_loss"], rel=1e-4)
    weights, others = (load_file(command.output.with_name(MODEL)) for command in (alone, together))
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-4, atol=2e-5, msg=name)


def test_two_runs_side_by_side_do_not_disturb_each_other(make_command: Callable[..., Any], uninterrupted: Any) -> None:
    commands = [make_command(), make_command()]
    processes = [command.start() for command in commands]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert commands[0].digests() == commands[1].digests() == uninterrupted.digests()


def test_zero_steps_export_the_initial_model(make_command: Callable[..., Any]) -> None:
    command = make_command(steps=0, model__layer_weighting="none")
    command.finish()
    manifest = read_manifest(command.output)
    assert {output.path.name for output in manifest.outputs} == EXPORTED - {"layer_weights.json"}
    assert manifest.file("metrics.jsonl").read_text() == ""
    assert manifest.measures["steps"] == 0


def test_zero_steps_need_no_more_than_is_planned_with_and_share_nothing(make_command: Callable[..., Any]) -> None:
    whole, planned = make_command(steps=0, seed=3), make_command({"zero_stage": 2}, steps=0, seed=3)
    for key in whole.settings.keys() - {"stage", "stage_version", "model", "seed", *UNTRAINED}:
        del planned.settings[key]
    assert planned.settings.keys() < whole.settings.keys()
    for command in (whole, planned):
        command.finish()
    first, second = (command.output.with_name("model.safetensors").read_bytes() for command in (whole, planned))
    assert first == second


def test_a_crash_during_the_export_loses_no_training(make_command: Callable[..., Any]) -> None:
    command = make_command(steps=6, long=None)
    in_the_way = command.output.with_name("model.safetensors")
    in_the_way.mkdir(parents=True)
    process = command.start()
    process.communicate(timeout=60)
    assert process.returncode != 0 and not command.output.exists()
    in_the_way.rmdir()
    command.finish()
    read_manifest(command.output).verify()
    assert json.loads((command.output.parent / "provenance.json").read_text())["resumed_from_step"] == 6
    assert command.output.with_name("metrics.jsonl").read_text().count("\n") == 6


def test_a_loss_that_is_not_finite_ends_in_one_line_with_step_and_checkpoint(
    make_command: Callable[..., Any],
) -> None:
    command = make_command(optimizer__learning_rate=1e38, schedule__warmup_fraction=0.2)
    process = command.start()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert not command.output.exists()
    assert "Traceback" not in err
    message = err.splitlines()[-1]
    assert message.startswith("error: step 3: ") and "learning rate" in message


def test_a_loss_that_runs_away_stops_the_run_also_after_it_was_resumed(make_command: Callable[..., Any]) -> None:
    command = make_command(optimizer__learning_rate=100.0, schedule__warmup_fraction=0.2, long=None)
    for _ in range(2):
        process = command.start()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1 and not command.output.exists()
        message = err.splitlines()[-1]
        assert message.startswith("error: step ") and "training has diverged" in message
        assert "checkpoint" in message and "Traceback" not in err


def test_shards_of_another_tokenizer_are_refused(make_command: Callable[..., Any], tmp_path: Path) -> None:
    command = make_command()
    # Without what vouches for the manifest, so that nothing else is wrong with it.
    unvouched = shutil.ignore_patterns("provenance.json", "finished.json")
    other = shutil.copytree(command.tokenizer.parent, tmp_path / "tokenizer", ignore=unvouched) / "manifest.json"
    other.write_text(command.tokenizer.read_text().replace('"measures": {', '"measures": {"other": 1, '))
    assert sha256_file(other) != sha256_file(command.tokenizer)
    command.tokenizer = other
    process = command.start()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.count("\n") == 1 and "another tokenizer" in err


def test_a_tokenizer_that_was_changed_after_its_manifest_is_refused_before_training(
    make_command: Callable[..., Any], tmp_path: Path
) -> None:
    command = make_command()
    shutil.copytree(command.tokenizer.parent, tmp_path / "tokenizer")
    command.tokenizer = tmp_path / "tokenizer" / "manifest.json"
    changed = command.tokenizer.with_name("tokenizer.json")
    changed.write_text(changed.read_text("utf-8").replace('"id": 5', '"id": 6'), encoding="utf-8")
    process = command.start()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and err.count("\n") == 1 and "tokenizer.json: has the SHA-256" in err
    assert command.run_folder is None


def test_workers_milestones_divergences_and_a_foreground_writer_change_no_weight(
    make_command: Callable[..., Any], uninterrupted: Any
) -> None:
    runtime = {"workers": 2, "milestones": [0.25, 1.0], "background_checkpoints": False, "log_interval_steps": 7}
    command = make_command(runtime)
    command.settings["divergences"] = True
    command.finish()
    folder = command.output.parent
    assert command.digests()[MODEL] == uninterrupted.digests()[MODEL]
    # The model of the last step is the exported one, and each milestone is a whole model.
    last = folder / "milestones" / "step_00000040"
    assert (last / MODEL).read_bytes() == (folder / MODEL).read_bytes()
    early, final = (load_language_model(path) for path in (last.with_name("step_00000010"), folder))
    assert not all(torch.equal(one, other) for one, other in zip(early.parameters(), final.parameters(), strict=True))
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "kl_unigram" in row] == [0, 1, 2, 4, 8, 10, 16, 20, 30, 32, 40]
    speed = [json.loads(line)["step"] for line in (folder / "speed.jsonl").read_text().splitlines()]
    assert speed == [7, 14, 21, 28, 35, 40]


def test_workers_end_with_a_training_that_is_killed(make_command: Callable[..., Any]) -> None:
    command = make_command({"workers": 2}, steps=100_000)
    process = command.start()
    command.wait_for_step(process, 3)
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    process.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive


def test_sigterm_to_all_processes_of_a_step_saves_although_it_reaches_the_workers(
    make_command: Callable[..., Any],
) -> None:
    command = make_command({"workers": 2}, steps=100_000)
    process = command.start()
    command.wait_for_step(process, 3)
    for worker in psutil.Process(process.pid).children():
        worker.terminate()
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    assert "Traceback" not in err


def test_a_time_limit_ends_a_run_with_a_checkpoint_and_the_status_that_asks_for_another_attempt(
    make_command: Callable[..., Any],
) -> None:
    command = make_command({"time_limit_minutes": 0.1, "grace_seconds": 1.0}, steps=100_000)
    process = command.start()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 75 and "time limit" in err.splitlines()[-1]
    assert command.run_folder is not None
    assert checkpoint_step(checkpoint_folders(command.run_folder)[0]) == command.finished_steps() > 0
