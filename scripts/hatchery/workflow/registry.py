"""All stages of the workflow by name: the records on the functions in the folders `stages` of the packages."""

from collections.abc import Mapping

from hatchery.errors import ConfigError
from hatchery.settings.fields import NAME
from hatchery.settings.problems import nearest
from hatchery.stage import ADDRESS, IMPORTED, Shared, Stage, stages
from hatchery.training.milestones import MILESTONE_NAME, MILESTONES_FOLDER

STAGES: Mapping[str, Stage] = stages()

SHARED: Mapping[str, tuple[Stage, Shared]] = {
    stage.shared.folder: (stage, stage.shared) for stage in STAGES.values() if stage.shared is not None
}
"""The folders of an experiment whose results are kept by what they are made from, with the stages that make them."""

_PATTERNS = {
    "run": rf"{NAME}-s[0-9]+",
    "model": rf"(?:{IMPORTED})?{ADDRESS}(?:/{MILESTONES_FOLDER}/{MILESTONE_NAME})?",
    "milestone": MILESTONE_NAME,
    "address": ADDRESS,
}
WILDCARDS: Mapping[str, str] = {name: NAME for stage in STAGES.values() for name in stage.wildcards} | _PATTERNS
"""Patterns of all wildcards, which are names unless said otherwise."""


def stage_of(name: str) -> Stage:
    """The record of a stage. Raises ConfigError with the nearest match for a name that no stage has."""
    if name not in STAGES:
        raise ConfigError(f"got the stage {name!r}, which no package has in its folder stages{nearest(name, STAGES)}")
    return STAGES[name]
