"""Settings of a cost estimate, for its tests."""

from typing import Any

from hatchery.workflow.cost_estimate import (
    RunCost,
    cost_settings,
    estimate,
)
from hatchery.workflow.cost_settings import CostSettings


def plan(**changes: Any) -> dict[str, Any]:
    defaults = {"device": "h100", "devices": 1, "threads": 1, "mfu": 0.3, "keep_checkpoints": 2, "milestones": []}
    return {**defaults, **changes}


def body_of(slices: list[dict[str, Any]], vocabulary_size: int = 16_384, **planned: Any) -> dict[str, Any]:
    return {
        "stage": "write_cost",
        "stage_version": 1,
        "experiment": "some",
        "vocabulary_size": vocabulary_size,
        "plan": plan(**planned),
        "runs": [{"name": f"run{i}-s42", "pretraining": slice_} for i, slice_ in enumerate(slices)],
    }


def settings_of(slices: list[dict[str, Any]], vocabulary_size: int = 16_384, **planned: Any) -> CostSettings:
    return cost_settings(body_of(slices, vocabulary_size, **planned))


def cost_of(slice_: dict[str, Any], vocabulary_size: int = 16_384, **planned: Any) -> RunCost:
    return estimate(settings_of([slice_], vocabulary_size, **planned))[0]
