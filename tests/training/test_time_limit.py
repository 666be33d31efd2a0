"""The deadline is the sooner of the settings' limit and the end of the Slurm job, less the grace time."""

import time

import pytest

from hatchery.errors import ConfigError
from hatchery.training.interruption import Deadline, ask_queue


@pytest.fixture(autouse=True)
def clocks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Clocks that stand still: `monotonic()` at `clocks[0]`, which begins at 500, and `time()` 1,000,000 later."""
    now = [500.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0] + 1_000_000.0)
    return now


SLURM = {"SLURM_JOB_END_TIME": "1000900"}


@pytest.mark.parametrize(
    ("environment", "minutes", "deadline"),
    [
        ({}, None, None),
        # The limit counts from the start, and Slurm tells the end on the clock of the wall; the sooner of both counts.
        ({}, 10.0, Deadline(at=1100.0, grace_seconds=60.0)),
        (SLURM, None, Deadline(900.0, 60.0)),
        (SLURM, 5.0, Deadline(800.0, 60.0)),
        (SLURM, 50.0, Deadline(900.0, 60.0)),
    ],
)
def test_the_deadline_is_the_sooner_of_the_limit_and_the_end_of_the_job(
    environment: dict[str, str], minutes: float | None, deadline: Deadline | None
) -> None:
    assert Deadline.from_environment(environment, minutes, 60.0) == deadline


def test_one_more_step_has_to_end_before_the_grace_time_begins(clocks: list[float]) -> None:
    deadline = Deadline(at=600.0, grace_seconds=30.0)
    assert deadline.remaining_seconds() == 100.0
    assert not deadline.is_near(70.0)
    assert deadline.is_near(70.5)
    clocks[0] = 590.0
    assert deadline.is_near(0.0)
    clocks[0] = 601.0
    assert deadline.is_near(0.0) and deadline.remaining_seconds() == -1.0


def test_a_job_that_is_past_its_end_is_near_at_once() -> None:
    deadline = Deadline.from_environment({"SLURM_JOB_END_TIME": "1000400"}, None, 0.0)
    assert deadline is not None and deadline.is_near(0.0)


@pytest.mark.parametrize("end", ["", "soon", "-5", "12.5", "1" * 13])
def test_an_end_that_is_no_time_is_refused_by_name(end: str) -> None:
    with pytest.raises(ConfigError, match="SLURM_JOB_END_TIME"):
        Deadline.from_environment({"SLURM_JOB_END_TIME": end}, None, 60.0)


def test_older_slurm_is_asked_for_what_is_left_of_the_job() -> None:
    asked = []

    def time_left(job: str) -> str:
        asked.append(job)
        return "6:40"

    assert Deadline.from_environment({"SLURM_JOB_ID": "7"}, None, 60.0, time_left) == Deadline(900.0, 60.0)
    newer = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1000700"}
    assert Deadline.from_environment(newer, None, 10.0, time_left) == Deadline(700.0, 10.0)
    assert asked == ["7"]


@pytest.mark.parametrize("answer", [None, "UNLIMITED", "NOT_SET", "INVALID", ""])
def test_a_job_whose_end_slurm_does_not_tell_has_no_deadline(answer: str | None) -> None:
    assert Deadline.from_environment({"SLURM_JOB_ID": "7"}, None, 60.0, lambda job: answer) is None


def test_of_a_short_slurm_job_the_grace_time_leaves_most_for_training() -> None:
    deadline = Deadline.from_environment({"SLURM_JOB_ID": "7"}, None, 120.0, lambda job: "1:40")
    assert deadline == Deadline(600.0, 25.0)


def test_without_slurms_commands_nothing_is_left_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert ask_queue("7") is None


@pytest.mark.parametrize("minutes", [0.0, -1.0, 1.0, float("inf"), float("nan")])
def test_a_limit_that_leaves_no_time_to_train_is_refused(minutes: float) -> None:
    with pytest.raises(ConfigError, match=r"runtime\.time_limit_minutes.*grace"):
        Deadline.from_environment({}, minutes, 60.0)


@pytest.mark.parametrize("grace", [-1.0, float("inf"), float("nan")])
def test_an_impossible_grace_time_is_refused(grace: float) -> None:
    with pytest.raises(ConfigError, match=r"runtime\.grace_seconds"):
        Deadline.from_environment({}, 10.0, grace)
