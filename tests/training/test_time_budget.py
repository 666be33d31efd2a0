"""A budget of minutes becomes a fixed number of steps when a run begins."""

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from test_costs import cost_of
from torch import nn

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.training import time_budget
from hatchery.training.run_parts import Given
from hatchery.training.runtime_settings import runtime_settings
from hatchery.training.settings import pretrain_settings
from hatchery.training.time_budget import timed_budget
from hatchery.training.topology import SINGLE_PROCESS

Make = Callable[..., Any]


@pytest.mark.slow
def test_a_killed_run_keeps_its_steps_and_ends_like_one_with_so_many_steps(make_command: Make) -> None:
    timed = make_command({"checkpoint_interval_steps": 1}, budget={"minutes": 0.02})
    del timed.settings["steps"]
    timed.kill_after(2)
    log = timed.finish()
    # The resumed run does not time steps again.
    assert "continues after step" in log and "timing" not in log
    found = read_manifest(timed.output)
    steps = found.measures["planned_steps"]
    assert found.measures["steps"] == steps > 2 and f"the `budget` allows {steps:,} steps" in log
    told = make_command(steps=steps)
    told.finish()
    ours, theirs = (run.digests() for run in (timed, told))
    # The manifests differ, because the settings differ.
    assert ours.pop("manifest") != theirs.pop("manifest") and ours == theirs


@pytest.mark.parametrize(("minutes", "steps"), [(0.1, 12), (0.1075, 12), (0.109, 13), (0.001, 1)])
def test_its_steps_are_those_that_the_mean_of_all_but_the_first_four_timed_ones_leaves_time_for(
    pretrain_slice: Make, runtime_slice: Make, monkeypatch: pytest.MonkeyPatch, minutes: float, steps: int
) -> None:
    # After four slow steps, ten steps of 0.25 and ten of 0.75 seconds alternate.
    seconds = [9.0] * 4 + [0.25, 0.75] * 10
    told = [json.dumps({"step": step, "step_seconds": each}) for step, each in enumerate(seconds, 1)]
    timed: list[Any] = []

    def trained(settings: Any, options: Any, *_: Any, given: Given) -> Any:
        timed.append((settings, options, given.model))
        return SimpleNamespace(record=SimpleNamespace(speed_text=lambda: "\n".join(told)))

    monkeypatch.setattr(time_budget, "train_run", trained)
    values = pretrain_slice(budget={"minutes": minutes}, divergences=True, early_stopping={"patience_evaluations": 2})
    del values["steps"]
    settings = pretrain_settings(values)
    options = runtime_settings(
        runtime_slice(log_interval_steps=10, sinks=["tensorboard"], milestones=[0.5], compile="layers"), settings
    )
    inputs: Any = None
    found = timed_budget(settings, options, inputs, SINGLE_PROCESS, "run", Given(module := nn.Linear(1, 1)))
    assert (found.steps, found.words_seen, found.marks) == (steps, None, {})
    ((trial, how, model),) = timed
    assert (trial.steps, trial.evaluation_sequences, trial.divergences, how.log_interval_steps) == (24, 0, False, 1)
    # The trial writes neither milestones nor tracker entries, saves no checkpoint within its steps, and trains a copy.
    assert trial.early_stopping is None and model is not module
    assert (how.sinks, how.milestones, how.compile, how.checkpoint_interval_steps) == ((), (), "off", 24)


def test_it_costs_its_minutes_on_any_device(pretrain_slice: Make) -> None:
    values = pretrain_slice(budget={"minutes": 30}, evaluation_sequences=0, batch_size=256)
    del values["steps"]
    fast, slow = (cost_of(values, device="cpu", mfu=share) for share in (0.3, 0.1))
    assert fast.wall_seconds == pytest.approx(1800, rel=0.01) == slow.wall_seconds
    assert fast.steps == pytest.approx(3 * slow.steps, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"budget": {"minutes": 1, "words_seen": "1M"}}, "budget: got words_seen and minutes, expected exactly one of"),
    ],
)
def test_what_does_not_go_together_is_one_line(pretrain_slice: Make, changes: dict[str, Any], complaint: str) -> None:
    values = pretrain_slice(**changes)
    del values["steps"]
    with pytest.raises(ConfigError, match=complaint) as caught:
        pretrain_settings(values)
    assert not re.search(r"\n", str(caught.value))
