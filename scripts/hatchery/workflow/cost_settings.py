"""Settings of the estimated cost of an experiment."""

from dataclasses import dataclass
from typing import Any

from hatchery.experiment.cluster import PlanSettings
from hatchery.settings.base import Settings


@dataclass(frozen=True)
class PlannedRun(Settings):
    """One pretraining: its name and the slice of its settings."""

    name: str
    pretraining: dict[str, Any]
    # Steps that another run has done for it.
    first_step: int = 0
    # The set of the grid that the model belongs to, if there is one.
    set: str = ""
    # What people read instead of the name, where a sweep or a grid made the run.
    label: str = ""


@dataclass(frozen=True)
class CostSettings(Settings):
    """What the cost of an experiment depends on."""

    experiment: str
    # Entries that the tokenizer is asked for; it may come out smaller where its settings allow that.
    vocabulary_size: int
    plan: PlanSettings
    runs: list[PlannedRun]
