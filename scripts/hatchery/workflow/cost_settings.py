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
    # Step at which this run starts: if this run continues another run, the number of steps of that run.
    first_step: int = 0
    # Name of the set of the grid to which the model belongs; empty if the experiment has no grid.
    set: str = ""
    # Configurations of the models from which the run learns (teachers).
    teachers: tuple[dict[str, Any], ...] = ()
    # Configurations of the member models, if the run is an ensemble.
    members: tuple[dict[str, Any], ...] = ()
    # Label of the run in tables, if a sweep or a grid defines the run; if empty, tables show the name.
    label: str = ""


@dataclass(frozen=True)
class CostSettings(Settings):
    """All settings on which the estimated cost of an experiment depends."""

    experiment: str
    # Vocabulary size that the tokenizer's settings request; the trained tokenizer may have fewer entries.
    vocabulary_size: int
    plan: PlanSettings
    runs: list[PlannedRun]
