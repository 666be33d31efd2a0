"""The losses of a run do not depend on how its batches are split, on interruptions, or on the number of processes.

Each run starts the command in its own processes, with LAMB and 26 steps or with AdamW and 15 steps. Dropout is drawn
per micro-batch, so runs with different micro-batches are compared without dropout.
"""

import shutil
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from hatchery.modeling.language_model import LanguageModel
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import TrainingBatches
from hatchery.training.checkpoints import checkpoint_folder, checkpoint_folders
from hatchery.training.learning_rates import learning_rate
from hatchery.training.objectives import objective_of
from hatchery.training.optimizers import build_optimizer
from hatchery.training.run_parts import build_model
from hatchery.training.settings import PretrainSettings, pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import Topology

Make = Callable[..., Any]

pytestmark = pytest.mark.slow

STEPS, RESUMED, TOLERANCE = 26, 11, 1e-5
CHECKPOINTS = {"checkpoint_interval_steps": RESUMED, "background_checkpoints": False}
CHANGES: dict[str, Any] = {
    "steps": STEPS,
    "batch_size": 32,
    "long": None,
    "evaluation_interval_steps": 13,
    "model__hidden_dropout_prob": 0.0,
    "model__attention_probs_dropout_prob": 0.0,
}


def stop_after_checkpoint(command: Any, processes: int) -> None:
    """Kill the run once its checkpoint of step 11 is complete, and remove any later checkpoint."""
    running = command.start_processes(processes)
    deadline = time.monotonic() + 120
    while command.run_folder is None or not checkpoint_folder(command.run_folder, RESUMED).exists():
        assert running[0].poll() is None and time.monotonic() < deadline, "never came to the checkpoint"
        time.sleep(0.002)
    for process in running:
        process.kill()
    for process in running:
        process.communicate()
    for folder in checkpoint_folders(command.run_folder)[:-1]:
        shutil.rmtree(folder)
    assert not command.output.exists()


def losses(command: Any) -> list[float]:
    rows = command.rows()
    assert [row["step"] for row in rows] == list(range(1, command.settings["steps"] + 1))
    return [row["loss"] for row in rows]


@pytest.fixture(scope="module")
def expected(make_command: Make) -> list[float]:
    """Losses of one uninterrupted process with one forward pass of 32 sequences per step."""
    command = make_command(**CHANGES)
    command.finish()
    return losses(command)


@pytest.mark.parametrize("micro_batch_size", [None, 3], ids=["2 x 16", "2 x 16 in threes"])
def test_the_losses_of_26_steps_do_not_depend_on_how_the_batch_is_cut(
    make_command: Make, expected: list[float], micro_batch_size: int | None
) -> None:
    command = make_command({"micro_batch_size": micro_batch_size}, **CHANGES)
    command.finish(2)
    assert losses(command) == pytest.approx(expected, rel=0, abs=TOLERANCE)


DROPOUT: dict[str, Any] = {
    **CHANGES,
    # Evaluation has the same micro-batches, so the development losses are sums of the same two numbers, too.
    "evaluation_sequences": 32,
    "model__hidden_dropout_prob": 0.1,
    "model__attention_probs_dropout_prob": 0.1,
}


@pytest.fixture(scope="module")
def dropped(make_command: Make) -> Any:
    """An uninterrupted run of one process with dropout and two micro-batches per step."""
    command = make_command({"micro_batch_size": 16}, **DROPOUT)
    command.finish()
    return command


def test_two_processes_with_dropout_give_the_bytes_of_one_with_the_same_two_micro_batches(
    make_command: Make, dropped: Any
) -> None:
    command = make_command({"micro_batch_size": 16, "workers": 1}, **DROPOUT)
    command.finish(2)
    assert command.digests() == dropped.digests()


def test_two_processes_train_a_hybrid_model_to_the_bytes_of_one_even_if_they_are_killed(make_command: Make) -> None:
    changes = {**DROPOUT, "objective": {"task": "hybrid"}, "output_bias__kind": "unigram"}
    whole = make_command({"micro_batch_size": 16}, **changes)
    whole.finish()
    command = make_command(CHECKPOINTS, **changes)
    stop_after_checkpoint(command, 2)
    command.finish(2)
    assert command.digests() == whole.digests()


GPT_BERT: dict[str, Any] = {
    **DROPOUT,
    "objective": {
        "task": "hybrid",
        "segments": "blocks",
        "kind": "short_span",
        "mask_probability": 0.3,
        "final_mask_probability": 0.15,
        "causal_share": 0.25,
        "causal_weight": 0.125,
        "z_loss": 1e-4,
    },
    "initial_batch_fraction": 0.5,
    "length_schedule": [{"from_fraction": 0.4, "factor": 2}, {"from_fraction": 0.8, "factor": 4}],
    "weight_average": {"decay": 0.9, "keep_raw_weights": True},
    "schedule__cooldown_fraction": 0.1,
}


def test_a_ramp_with_several_lengths_a_falling_rate_and_averaged_weights_survives_a_kill_to_the_byte(
    make_command: Make,
) -> None:
    whole = make_command({"micro_batch_size": 16}, **GPT_BERT)
    whole.finish()
    command = make_command({**CHECKPOINTS, "micro_batch_size": 16}, **GPT_BERT)
    stop_after_checkpoint(command, 1)
    command.finish()
    assert command.provenance()["resumed_from_step"] == RESUMED
    assert command.digests() == whole.digests()
    assert whole.digests().keys() >= {"model.safetensors", "metrics.jsonl"}
    raw = load_file(whole.output.parent / "raw_weights" / "model.safetensors")
    assert any((raw[name] != tensor).any() for name, tensor in whole.weights().items())
    rows = whole.rows()
    # The number of tokens per step grows, and words are counted.
    tokens = [row["tokens"] - before["tokens"] for before, row in pairwise(rows)]
    assert tokens[0] < 0.6 * tokens[-1] and all(row["words"] < row["tokens"] for row in rows)


def test_two_processes_have_its_losses_and_take_it_over_where_length_and_micro_batch_change_at_once(
    make_command: Make,
) -> None:
    switched = [{"from_fraction": (RESUMED + 1) / STEPS, "factor": 2}, {"from_fraction": 0.8, "factor": 4}]
    still = {"model__hidden_dropout_prob": 0.0, "model__attention_probs_dropout_prob": 0.0}
    changes = {**GPT_BERT, **still, "length_schedule": switched}
    whole = make_command(**changes)
    whole.finish()
    command = make_command({**CHECKPOINTS, "micro_batch_size": 16}, **changes)
    stop_after_checkpoint(command, 1)
    command.runtime["micro_batch_size"] = 3
    command.finish(2)
    assert command.provenance()["resumed_from_step"] == RESUMED
    plan = StepPlan(pretrain_settings(command.settings))
    assert plan.at(RESUMED).sequence_length == 2 * plan.at(RESUMED - 1).sequence_length
    found = [whole.rows(), command.rows()]
    assert [row["words"] for row in found[0]] == [row["words"] for row in found[1]]
    for name in ("loss", "next_token_loss"):
        assert [row[name] for row in found[1]] == pytest.approx([row[name] for row in found[0]], rel=0, abs=TOLERANCE)


def test_a_kill_and_another_number_of_processes_change_no_byte_with_dropout_either(
    make_command: Make, dropped: Any
) -> None:
    command = make_command({**CHECKPOINTS, "micro_batch_size": 16}, **DROPOUT)
    stop_after_checkpoint(command, 1)
    command.runtime["micro_batch_size"] = None
    command.finish(2)
    assert command.digests() == dropped.digests()


def test_four_micro_batches_with_dropout_differ_between_one_and_two_processes_in_rounding_only(
    make_command: Make, dropped: Any
) -> None:
    found = []
    for processes in (1, 2):
        command = make_command({"micro_batch_size": 8}, **DROPOUT)
        command.finish(processes)
        found.append(losses(command))
    assert found[1] == pytest.approx(found[0], rel=0, abs=TOLERANCE)
    # Other micro-batches draw other dropout masks, whose effect is far larger than rounding.
    assert losses(dropped) != pytest.approx(found[0], rel=0, abs=100 * TOLERANCE)


def mean_of_process_means(
    settings: PretrainSettings, token_data: Any, processes: int
) -> tuple[LanguageModel, list[float]]:
    """Train with plain PyTorch on the mean of the processes' mean losses, each over the labels of its process."""
    shards = TokenShards.open(token_data.tokens, TRAINING_SPLIT)
    model = build_model(settings, shards.vocabulary_size, shards.special)
    optimizer = build_optimizer(model, settings.optimizer)
    make = partial(objective_of(settings.objective).examples, shards)
    topologies = [Topology(rank, processes, rank, "a", 1) for rank in range(processes)]
    shares = [TrainingBatches(StepPlan(settings), settings.seed, one, None, make) for one in topologies]
    found = []
    for step in range(settings.steps):
        outputs = [model(**share.at(step).micro_batches[0]) for share in shares]
        loss = torch.stack([output.loss_sum / output.n_labelled for output in outputs]).mean()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(settings.optimizer.learning_rate, settings.schedule, step, settings.steps)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return model, found


def test_the_published_loss_is_the_mean_of_the_means_of_the_processes(make_command: Make, token_data: Any) -> None:
    # Each process has few sequences, so the numbers of labels differ, and so do the two means.
    changes = {**CHANGES, "steps": 12, "batch_size": 4, "optimizer__epsilon": 1e-3}
    results = {}
    for average in ("processes", "tokens"):
        command = make_command(**changes)
        # The fixture's settings do not contain this key.
        command.settings["loss_average"] = average
        command.finish(2)
        results[average] = [row["loss"] for row in command.rows()]
        if average == "processes":
            weights = command.weights()
            model, expected = mean_of_process_means(pretrain_settings(command.settings), token_data, 2)
            for name, tensor in model.state_dict().items():
                torch.testing.assert_close(weights[name], tensor, rtol=1e-4, atol=2e-6, msg=name)
    assert results["processes"] == pytest.approx(expected, rel=1e-5)
    assert results["tokens"] != pytest.approx(expected, rel=1e-4)


# Fewer steps, because steps are slow if processes share the parameters; several steps follow the checkpoint.
ADAMW = {**CHANGES, "steps": 15, "optimizer__name": "adamw", "optimizer__learning_rate": 0.003}


@pytest.fixture(scope="module")
def expected_of_adamw(make_command: Make) -> list[float]:
    """Losses of one process with AdamW and without ZeRO."""
    command = make_command(**ADAMW)
    command.finish()
    return losses(command)


@pytest.mark.parametrize(("stage", "micro_batch_size"), [(1, None), (2, 8), (3, 8)])
def test_two_processes_of_any_zero_stage_have_the_losses_of_one_and_give_a_whole_model(
    make_command: Make, expected_of_adamw: list[float], stage: int, micro_batch_size: int | None
) -> None:
    runtime = {"zero_stage": stage, "activation_checkpointing": stage == 3, "micro_batch_size": micro_batch_size}
    command = make_command(runtime, **ADAMW)
    command.finish(2)
    assert losses(command) == pytest.approx(expected_of_adamw, rel=0, abs=TOLERANCE)
    weights = command.weights()
    assert all(tensor.numel() > 0 and bool(tensor.any()) for name, tensor in weights.items() if "weight" in name)


@pytest.mark.parametrize(("before", "after"), [(2, 0), (0, 3)])
def test_a_run_killed_after_step_11_goes_on_with_its_zero_stage_or_another(
    make_command: Make, expected_of_adamw: list[float], before: int, after: int
) -> None:
    command = make_command({**CHECKPOINTS, "zero_stage": before}, **ADAMW)
    stop_after_checkpoint(command, 2)
    command.runtime["zero_stage"] = after
    command.finish(2)
    assert command.provenance()["resumed_from_step"] == RESUMED
    assert losses(command) == pytest.approx(expected_of_adamw, rel=0, abs=TOLERANCE)


def test_normuon_has_equal_losses_on_two_processes_and_equal_bytes_after_a_kill(make_command: Make) -> None:
    changes = {**ADAMW, "optimizer__name": "normuon"}
    whole, shared = make_command(**changes), make_command(**changes)
    whole.finish()
    shared.finish(2)
    assert losses(shared) == pytest.approx(losses(whole), rel=0, abs=TOLERANCE)
    assert losses(whole)[-1] < losses(whole)[0]
    killed = make_command(CHECKPOINTS, **changes)
    stop_after_checkpoint(killed, 1)
    killed.finish()
    assert killed.provenance()["resumed_from_step"] == RESUMED
    assert killed.digests() == whole.digests()
