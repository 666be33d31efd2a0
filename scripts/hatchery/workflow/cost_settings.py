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
    # Steps that another run has already done.
    first_step: int = 0
    # The set of the grid that the model belongs to, if there is one.
    set: str = ""
    # Models of the teachers that the run learns from.
    teachers: tuple[dict[str, Any], ...] = ()
    # Label for people instead of the name, if a sweep or a grid made the run.
    label: str = ""


@dataclass(frozen=True)
class CostSettings(Settings):
    """All settings on which the cost of an experiment depends."""

    experiment: str
    # Requested vocabulary size of the tokenizer, which may be smaller if its settings allow that.
    vocabulary_size: int
    plan: PlanSettings
    runs: list[PlannedRun]
