"""Durations of Slurm in seconds."""

import pytest

from hatchery.units import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("0:00", 0),
        ("0:07", 7),
        ("30:59", 1859),
        ("59:59", 3599),
        ("2:00:00", 7200),
        ("02:30:00", 9000),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("1-02:03:04", 93_784),
        ("7-00:00:00", 604_800),
    ],
)
def test_every_form_of_a_duration_is_read(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "UNLIMITED", "NOT_SET", "INVALID", "1:2:3:4", "-5", "2 h"])
def test_what_is_no_duration_has_no_seconds(text: str) -> None:
    assert seconds_of(text) is None
