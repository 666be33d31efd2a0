"""All stages of the workflow by name: the records on the functions in the folders `stages` of the packages."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.errors import ConfigError
from hatchery.settings.problems import nearest
from hatchery.stage import SCRIPTS, Shared, Stage, function_of, has_record, record_of, stage_files

STAGES: Mapping[str, Stage] = {
    name: record_of(function) for name in stage_files() if has_record(function := function_of(name))
}

SHARED: Mapping[str, tuple[Stage, Shared]] = {
    stage.shared.folder: (stage, stage.shared) for stage in STAGES.values() if stage.shared is not None
}
"""The folders of an experiment whose results are kept by what they are made from, with the stages that make them."""


def stage_of(name: str) -> Stage:
    """The record of a stage. Raises ConfigError with the nearest match for a name that no stage has."""
    if name not in STAGES:
        raise ConfigError(f"got the stage {name!r}, which no package has in its folder stages{nearest(name, STAGES)}")
    return STAGES[name]


def code_by_environment() -> dict[str, list[Path]]:
    """The files in which the code of the stages begins, by the conda environment that serves it."""
    files, found = stage_files(), dict[str, list[Path]]()
    for name, stage in STAGES.items():
        found.setdefault(stage.environment, [SCRIPTS / "run.py"]).append(files[name])
    return found
