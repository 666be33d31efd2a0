"""The records (`Stage`) of all stages by the stage's name, found in the folders `stages` of Hatchery's packages."""

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
"""Stages whose results are stored by digest. The key is the folder of the stage's results in an experiment."""

_PATTERNS = {
    "run": rf"{NAME}-s[0-9]+",
    "model": rf"(?:{IMPORTED})?{ADDRESS}(?:/{MILESTONES_FOLDER}/{MILESTONE_NAME})?",
    "milestone": MILESTONE_NAME,
    "address": ADDRESS,
}
WILDCARDS: Mapping[str, str] = {name: NAME for stage in STAGES.values() for name in stage.wildcards} | _PATTERNS
"""Regular expressions for the wildcards of all stages. Wildcards without a special pattern match every valid name."""


def stage_of(name: str) -> Stage:
    """Return the record of a stage. For an unknown name, raises ConfigError, which suggests the most similar name."""
    if name not in STAGES:
        raise ConfigError(
            f"got the stage {name!r}, expected a file in the folder stages of a package{nearest(name, STAGES)}"
        )
    return STAGES[name]
