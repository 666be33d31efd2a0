"""Logs of long work have dated lines; what is over at once says nothing unless it has something to tell."""

from io import StringIO

import pytest

from hatchery import progress
from hatchery.progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that passes, in seconds."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_work_that_is_over_at_once_says_nothing(clock: list[float]) -> None:
    stream = StringIO()
    with Progress(3, "reading", "files", stream=stream) as bar:
        bar.update(3)
    assert stream.getvalue() == ""


def test_what_it_found_is_told_however_short_it_was(clock: list[float]) -> None:
    stream = StringIO()
    with Progress(12, "training", "steps", stream=stream) as bar:
        bar.update(12, loss=5.5)
    assert stream.getvalue()[20:] == "training: 12 steps done in 0.0 s loss=5.5\n"


def test_long_work_is_announced_counted_and_ended(clock: list[float]) -> None:
    stream = StringIO()
    with Progress(40, "reading", "files", initial=10, stream=stream) as bar:
        for clock[0] in (0.5, 1.5, 2.0, 11.0):
            bar.update(5)
    assert [line[20:] for line in stream.getvalue().splitlines()] == [
        "reading: 30 files to do",
        "reading: 30/40 files (75 %), 1.8 files/s, 6 s left",
        "reading: 30 files done in 11.0 s",
    ]


def test_lines_come_less_often_the_longer_it_takes(clock: list[float]) -> None:
    stream = StringIO()
    with Progress(36_000, "training", "steps", stream=stream) as bar:
        for second in range(36_000):
            clock[0] = float(second)
            bar.update(1)
            if second == 100:
                early = len(stream.getvalue().splitlines())
    assert early == 11
    assert 600 < len(stream.getvalue().splitlines()) < 700
