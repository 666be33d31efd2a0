"""All stages of the workflow by name: the records on the functions in the folders `stages` of the packages."""

from collections.abc import Mapping

from hatchery.errors import ConfigError
from hatchery.settings.fields import NAME
from hatchery.settings.problems import nearest
from hatchery.stage import ADDRESS, IMPORTED, Stage, StoredByDigest, stages
from hatchery.training.milestones import MILESTONE_NAME, MILESTONES_FOLDER

STAGES: Mapping[str, Stage] = stages()

SHARED: Mapping[str, tuple[Stage, StoredByDigest]] = {
    stage.shared.folder: (stage, stage.shared) for stage in STAGES.values() if stage.shared is not None
}
"""Folders of an experiment whose results are stored by digest, with the stages that make them."""

_PATTERNS = {
    "run": rf"{NAME}-s[0-9]+",
    "model": rf"(?:{IMPORTED})?{ADDRESS}(?:/{MILESTONES_FOLDER}/{MILESTONE_NAME})?",
    "milestone": MILESTONE_NAME,
    "address": ADDRESS,
}
WILDCARDS: Mapping[str, str] = {name: NAME for stage in STAGES.values() for name in stage.wildcards} | _PATTERNS
"""Patterns of all wildcards; the default is the pattern of a name."""


def stage_of(name: str) -> Stage:
    """Return the record of a stage. Raises ConfigError with the nearest match for an unknown name."""
    if name not in STAGES:
        raise ConfigError(
            f"got the stage {name!r}, expected a file in the folder stages of a package{nearest(name, STAGES)}"
        )
    return STAGES[name]
