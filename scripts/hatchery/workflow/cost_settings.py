"""Settings of the estimated cost of an experiment."""

from dataclasses import dataclass
from typing import Any

from hatchery.experiment.cluster import PlanSettings
from hatchery.settings.base import Settings


@dataclass(frozen=True)
class PlannedRun(Settings):
    """Settings of one pretraining whose cost is estimated."""

    name: str
    pretraining: dict[str, Any]
    # Number of steps that another run, which this run continues, has already done.
    first_step: int = 0
    # Name of the set of a grid to which the model belongs; empty without a grid.
    set: str = ""
    # Configurations of the models from which the run learns (teachers).
    teachers: tuple[dict[str, Any], ...] = ()
    # Configurations of the members of an ensemble.
    members: tuple[dict[str, Any], ...] = ()
    # Label in tables, if a sweep or a grid defines the run; otherwise, tables show the name.
    label: str = ""


@dataclass(frozen=True)
class CostSettings(Settings):
    """All settings on which the cost of an experiment depends."""

    experiment: str
    # Requested vocabulary size of the tokenizer; the trained tokenizer may have fewer entries.
    vocabulary_size: int
    plan: PlanSettings
    runs: list[PlannedRun]
