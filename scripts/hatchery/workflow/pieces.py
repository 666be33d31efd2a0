"""Checks whether trainings that exceed a job's time limit can finish within the number of attempts.

An attempt that is stopped at its time limit counts as failed. The next attempt continues the training, with a higher
time limit, up to the limit of the partition. If the last attempt that Snakemake's `retries` allow does not suffice, the
training remains unfinished.
"""

from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from itertools import count
from pathlib import Path

from hatchery.errors import ConfigError
from hatchery.units import rough_duration
from hatchery.workflow.resources import Resources

PROFILE = "slurm"


def retries_of(arguments: Iterable[str] = ("--profile", PROFILE)) -> int:
    """Return how many retries of a failed job are requested by a command line of Snakemake, or by the profile in this
    command line; 0 if Snakemake cannot parse the command line.
    """
    # Import this function only here, because the import also loads NumPy.
    from snakemake.cli import parse_args

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), suppress(SystemExit, Exception):
        return int(parse_args(list(arguments))[1].retries)
    return 0


def endless_trainings(experiments: Iterable[str], resources: Resources, retries: int) -> Iterator[str]:
    """Yield a note for each experiment in which an unfinished training needs more attempts than `retries` allow.

    The time limit of the first attempt is `pretraining_minutes` or, if this key is not set, the estimated run time.
    Later attempts have higher time limits, up to `cluster.max_minutes` (or `gpu_max_minutes`).
    """
    jobs = resources.jobs
    cluster = jobs.project.config.cluster
    limit = cluster.target(with_model=True).max_minutes
    if limit is None and cluster.pretraining_minutes is None:
        return
    for experiment in experiments:
        times, found = resources.pretraining_times(experiment), dict[str, tuple[int, float]]()
        for run, place in jobs.results.pretrained(experiment).items():
            first = cluster.pretraining_minutes or times.minutes(run)
            if first is None or Path(place).is_file():
                continue
            with suppress(ConfigError):
                seconds = times.seconds(run)
                found[run] = _pieces(seconds / 60, first, limit), seconds
        run, (pieces, seconds) = max(found.items(), key=lambda item: item[1], default=("", (0, 0.0)))
        if pieces > retries + 1:
            minutes = cluster.pretraining_minutes or 0
            lengths = f"at most {limit} minutes" if limit is not None else f"{minutes}, {2 * minutes}, ... minutes"
            yield (
                f"{experiment}: the training {run} is planned to take {rough_duration(seconds)}, in {pieces} attempts "
                f"of {lengths}, but retries: {retries} allows {retries + 1} attempts, so the training cannot finish; "
                f"raise the time limit, or run snakemake with --retries {pieces - 1} (key `retries` of a profile)"
            )


def _pieces(minutes: float, first: float, limit: int | None) -> int:
    """Return the number of attempts that a training of `minutes` minutes needs.

    Attempt n lasts n times as long as the first attempt, but at most `limit` minutes.
    """
    for attempt in count(1):
        minutes -= first * attempt if limit is None else min(first * attempt, limit)
        if minutes <= 0:
            return attempt
    raise AssertionError
