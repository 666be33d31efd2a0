"""The objectives, one per file; the file name is the value of `pretraining.objective.task`."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hatchery.folders import names_in_folder
from hatchery.settings.fields import ChosenBy
from hatchery.training.objective import Objective, ObjectiveKeys
from hatchery.typed import build

DEFAULT_TASK = "masked"
"""Task of an objective whose settings have no key `task`."""
OBJECTIVES: dict[str, tuple[type[ObjectiveKeys], type[Objective]]] = {
    name: import_module(f"{__name__}.{name}").OBJECTIVE
    for name in sorted(names_in_folder(__file__), key=lambda name: (name != DEFAULT_TASK, name))
}
"""Settings class and objective class of each task."""

if TYPE_CHECKING:
    ObjectiveSettings = ObjectiveKeys
else:
    ObjectiveSettings = ChosenBy("task", default=DEFAULT_TASK).among(keys for keys, _ in OBJECTIVES.values())
    """The objective of a run."""


def objective_settings(values: Mapping[str, Any], where: str) -> ObjectiveKeys:
    """Return the settings of an objective from `values`. Raises ConfigError for invalid values; the message begins with
    `where`, the key at which `values` are in the configuration.
    """
    built: ObjectiveKeys = build(ObjectiveSettings, values, where)
    return built


def objective_of(settings: ObjectiveKeys) -> Objective:
    """Return the objective with these settings."""
    return OBJECTIVES[settings.task][1](settings)
