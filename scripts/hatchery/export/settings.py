"""What the writer of a submission is told."""

from dataclasses import dataclass
from typing import Literal

from hatchery.experiment.experiment_file import Edition, Track
from hatchery.settings.base import Settings


@dataclass(frozen=True, kw_only=True)
class SubmissionSettings(Settings):
    """One model's submission."""

    run: str
    """Model and seed."""
    track: Track
    edition: Edition
    suites: str
    """Before the names of suites."""
    tasks: str
    """Before the names of tasks."""
    checkpoints: tuple[str, ...]
    """The checkpoints of which the file has results, in their order."""
    age_of_acquisition: Literal["as_measured", "zero"]
    track_checked: bool
    """Whether the experiment names the track, so that its rules were checked."""
