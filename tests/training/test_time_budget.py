"""A budget of minutes becomes a number of steps when a run begins, and stays that number."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from test_costs import cost_of

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.training.settings import pretrain_settings

Make = Callable[..., Any]


def test_a_killed_run_keeps_its_steps_and_ends_like_one_with_so_many_steps(make_command: Make) -> None:
    timed = make_command({"checkpoint_interval_steps": 1}, budget={"minutes": 0.02})
    del timed.settings["steps"]
    timed.kill_after(2)
    log = timed.finish()
    # Not timed again.
    assert "goes on after step" in log and "are timed" not in log
    found = read_manifest(timed.output)
    steps = found.measures["planned_steps"]
    assert found.measures["steps"] == steps > 2 and f"the budget is spent in {steps:,} steps" in log
    told = make_command(steps=steps)
    told.finish()
    ours, theirs = (run.digests() for run in (timed, told))
    # Their settings differ.
    assert ours.pop("manifest") != theirs.pop("manifest") and ours == theirs


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
        ({"budget": {"minutes": 0}}, "budget.minutes: got 0, expected"),
        ({"budget": {"minutes": 1}, "checkpoints_at": ["1K"]}, "checkpoints_at: .*nothing without a `budget` in words"),
    ],
)
def test_what_does_not_go_together_is_one_line(pretrain_slice: Make, changes: dict[str, Any], complaint: str) -> None:
    values = pretrain_slice(**changes)
    del values["steps"]
    with pytest.raises(ConfigError, match=complaint) as caught:
        pretrain_settings(values)
    assert not re.search(r"\n", str(caught.value))
