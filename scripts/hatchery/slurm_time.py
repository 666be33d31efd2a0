"""Durations as Slurm's commands take and print them. Source: the manual page of sbatch, `--time`."""

import re

_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?")


def seconds_of(text: str) -> int | None:
    """Seconds of `30` (minutes), `30:59`, `2:00:00`, `1-12` (days, hours) or `1-02:03:04`.

    None for what is no duration: UNLIMITED, NOT_SET, INVALID, nothing.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    if match["days"] is None and match["third"] is None:
        return 60 * first + second
    return 86_400 * days + 3_600 * first + 60 * second + third
