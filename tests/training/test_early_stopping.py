"""Early stopping: the last step, the exported weights, and the same results after kills and with two processes."""

import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from hatchery.artifacts.manifests import read_manifest
from hatchery.training.early_stopping import BEST, EarlyStopping
from hatchery.training.objective import LOWEST_LOSS, Criterion
from hatchery.training.start_settings import EarlyStoppingSettings
from hatchery.training.watchers import Probe

Make = Callable[..., Any]


def early_stopping(*settings: Any, rows: Sequence[dict[str, Any]] = (), **more: Any) -> EarlyStopping:
    """Return early stopping after the evaluations in `rows`; later evaluations read the model's attribute `loss`."""
    development = Probe(lambda engine: {"development_loss": engine.model.loss}, lambda step: step % 2 == 0)
    stopping = EarlyStopping(EarlyStoppingSettings(*settings, **more), development)
    stopping.load({}, rows)
    return stopping


def after(losses: list[float], patience: int, minimum: float = 0.0) -> EarlyStopping:
    rows = [{"step": step, "development_loss": loss} for step, loss in enumerate(losses, 1)]
    return early_stopping(patience, minimum, rows=rows)


def is_over(losses: list[float], patience: int, minimum: float = 0.0) -> bool:
    return after(losses, patience, minimum).reason_to_stop is not None


def test_it_is_over_after_so_many_evaluations_without_a_new_lowest_loss() -> None:
    assert not is_over([3.0, 2.0, 2.5], 2)
    assert is_over([3.0, 2.0, 2.5, 2.0], 2)
    assert not is_over([3.0, 2.0, 2.5, 1.9], 2)


def test_a_smaller_improvement_than_the_minimum_does_not_prolong_but_is_the_best() -> None:
    stopping = after([3.0, 2.95, 2.91], 2, minimum=0.1)
    assert stopping.reason_to_stop and stopping.best_step == 3
    # Binary fractions, so that improvements are exactly the minimum, or more.
    assert is_over([4.0, 3.75, 3.5], 2, minimum=0.25)
    assert not is_over([4.0, 3.75, 3.25], 2, minimum=0.25)
    assert not is_over([4.0, 3.75], 2, minimum=0.25)


@pytest.mark.parametrize(
    ("losses", "export", "exported"), [([3.0, 1.0, 2.0], "best", 2), ([3.0, 1.0, 2.0], "last", 9), ([], "best", 9)]
)
def test_the_manifest_names_the_step_whose_weights_are_exported(losses: Any, export: Any, exported: int) -> None:
    rows = [{"step": step, "development_loss": loss} for step, loss in enumerate(losses, 1)]
    found = early_stopping(5, export=export, rows=rows).measures(last_step=9, steps=12)
    best = {"best_step": 2, "best_development_loss": 1.0} if losses else {"best_step": 0, "best_development_loss": None}
    assert found == {"stopped_early": True, "exported_step": exported, **best}
    assert not early_stopping(5, export=export, rows=rows).measures(last_step=9, steps=9)["stopped_early"]


def test_of_equal_losses_the_first_is_the_best() -> None:
    assert after([3.0, 2.0, 2.0], 9).best_step == 2


def test_replaying_the_metrics_at_any_step_comes_to_the_same_decision() -> None:
    rng = random.Random(3)
    rows: list[dict[str, Any]] = [{"step": step, "development_loss": rng.random()} for step in range(1, 40)]
    for cut in range(len(rows)):
        resumed = early_stopping(5, 0.01, rows=rows[:cut])
        whole = early_stopping(5, 0.01)
        for row in rows:
            whole.note(row["step"], row)
        for row in rows[cut:]:
            resumed.note(row["step"], row)
        assert (resumed.reason_to_stop, resumed.best_step) == (whole.reason_to_stop, whole.best_step)


def engine_of(model: nn.Module, loss: float) -> Any:
    model.loss = loss  # type: ignore[assignment]
    return SimpleNamespace(model=model, whole_parameters=nullcontext)


@pytest.mark.parametrize(
    ("export", "keeps", "kept"), [("best", True, True), ("best", False, False), ("last", True, False)]
)
def test_the_best_weights_survive_a_checkpoint_among_other_tensors(export: Any, keeps: bool, kept: bool) -> None:
    model, development = nn.Linear(2, 2), early_stopping(1).development
    first, second = (
        EarlyStopping(EarlyStoppingSettings(9, export=export), development, LOWEST_LOSS, keeps) for _ in "ab"
    )
    assert [step for step in range(5) if first.due(step)] == [0, 2, 4]
    rows = []
    # Evaluate the initial weights, which are never the best, then better and worse weights.
    for step, loss in ((0, 1.0), (2, 3.0), (4, 4.0)):
        nn.init.constant_(model.weight, step)
        rows.append({"step": step, **first.scores(step, engine_of(model, loss))})
    assert [row["development_loss"] for row in rows] == [1.0, 3.0, 4.0]
    assert (first.best_step, first.best) == (2, 3.0)
    second.load({**first.state(), "loss_scale": torch.zeros(())}, rows)
    second.finish(model)
    assert bool((model.weight == (2 if kept else 4)).all())
    assert second.best_step == 2


def test_the_best_weights_of_an_earlier_run_are_not_those_of_a_run_that_continues_it() -> None:
    model, stopping = nn.Linear(2, 2), early_stopping(5)
    nn.init.ones_(model.weight)
    stopping.load({f"{BEST}{name}": torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}, [])
    stopping.finish(model)
    assert not stopping.state() and bool((model.weight == 1).all())


def test_the_reason_is_true_where_the_last_evaluation_was_the_best_by_too_little() -> None:
    stopping = early_stopping(patience_evaluations=2, minimum_improvement=0.5)
    for step, loss in ((10, 3.0), (20, 2.9), (30, 2.8)):
        stopping.note(step, {"development_loss": loss})
    assert stopping.reason_to_stop == (
        "the development loss has not improved by more than 0.5 for 2 evaluations; the lowest value was 2.8000, after "
        "step 30"
    )


def test_the_highest_score_is_the_best_where_higher_is_better_and_the_first_of_equal_ones() -> None:
    criterion = Criterion("development_bleu", "development BLEU", higher_is_better=True)
    stopping = EarlyStopping(EarlyStoppingSettings(2, 0.5), early_stopping(1).development, criterion)
    # The lowest loss is at step 40; the evaluation at step 0 does not count.
    rows = [(0, 99.0, 9.0), (10, 20.0, 3.0), (20, 21.0, 2.5), (30, 21.0, 2.0), (40, 20.5, 1.0)]
    stopping.load({}, [{"step": step, "development_bleu": bleu, "development_loss": loss} for step, bleu, loss in rows])
    assert stopping.reason_to_stop == (
        "the development BLEU has not improved by more than 0.5 for 2 evaluations; the highest value was 21.0000, "
        "after step 20"
    )
    assert stopping.measures(40, 60) == {
        **{"stopped_early": True, "exported_step": 20, "best_step": 20, "best_development_bleu": 21.0}
    }


# Settings of the real runs. The learning rate is far too high, so the loss goes up and down.
STEPS = 400
WILD: dict[str, Any] = {
    "steps": STEPS,
    "long": None,
    "evaluation_interval_steps": 3,
    "optimizer__name": "adamw",
    "optimizer__learning_rate": 0.05,
    "schedule": {"name": "constant", "warmup_fraction": 0.0, "final_fraction": 1.0},
    "early_stopping": {"patience_evaluations": 4},
}
# Two processes have the same micro-batches as one process.
RUNTIME = {"micro_batch_size": 4}


@pytest.fixture(scope="module")
def stopped(make_command: Make) -> Any:
    command = make_command(RUNTIME, **WILD)
    assert "stopped early after step" in command.finish()
    return command


@pytest.mark.slow
def test_a_stopped_run_records_where_and_exports_the_weights_of_the_lowest_loss(
    stopped: Any, make_command: Make
) -> None:
    measures = read_manifest(stopped.output).measures
    found = measures["early_stopping"]
    rows = stopped.rows()
    losses = {row["step"]: row["development_loss"] for row in rows if "development_loss" in row}
    assert found["stopped_early"] and measures["steps"] == rows[-1]["step"] < STEPS
    assert losses[found["exported_step"]] == min(losses.values()) == found["best_development_loss"]
    assert found["exported_step"] == measures["steps"] - 4 * 3
    # The schedule does not depend on the number of steps, so the shorter run has the same steps up to there.
    short = make_command(RUNTIME, **{**WILD, "steps": found["exported_step"], "early_stopping": None})
    short.finish()
    ours = stopped.weights()
    assert all(torch.equal(ours[name], tensor) for name, tensor in short.weights().items())


@pytest.mark.slow
def test_the_weights_of_the_last_step_are_exported_where_that_is_asked_for(stopped: Any, make_command: Make) -> None:
    chosen = {**WILD, "early_stopping": {"patience_evaluations": 4, "export": "last"}}
    command = make_command(RUNTIME, **chosen)
    command.finish()
    measures = read_manifest(command.output).measures
    assert measures["early_stopping"]["exported_step"] == measures["steps"]
    ours = command.weights()
    assert any(not torch.equal(ours[name], tensor) for name, tensor in stopped.weights().items())


@pytest.mark.slow
def test_a_killed_run_stops_at_the_same_step_with_the_same_bits(stopped: Any, make_command: Make) -> None:
    command = make_command(RUNTIME, **WILD)
    exported = read_manifest(stopped.output).measures["early_stopping"]["exported_step"]
    # Kill after the best evaluation, so that the best weights must come from the checkpoint.
    command.kill_after(exported + 6)
    assert "continues after step" in command.finish()
    assert command.digests() == stopped.digests()


@pytest.mark.slow
def test_two_processes_stop_at_the_same_step_with_the_same_weights(stopped: Any, make_command: Make) -> None:
    command = make_command(RUNTIME, **WILD)
    command.finish(2)
    ours, alone = read_manifest(command.output), read_manifest(stopped.output)
    assert ours.measures["early_stopping"]["exported_step"] == alone.measures["early_stopping"]["exported_step"]
    assert ours.file("model.safetensors").read_bytes() == alone.file("model.safetensors").read_bytes()


@pytest.mark.slow
def test_without_development_text_it_says_so_before_training(make_command: Make) -> None:
    command = make_command(RUNTIME, **{**WILD, "evaluation_sequences": 0})
    assert "pretraining.early_stopping: expected a development split" in command.fail().strip().splitlines()[-1]
