"""All stages by name, in the order in which data passes through them."""

from collections.abc import Mapping

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.settings.problems import nearest
from hatchery.stages import analysis, corpora, evaluation, figures, pretraining, sources, studies, tokenization
from hatchery.stages.record import Kept, Stage

_MODULES = (sources, corpora, tokenization, pretraining, evaluation, analysis, studies, figures)

STAGES: Mapping[str, Stage] = {stage.name: stage for module in _MODULES for stage in module.STAGES}

KEPT: Mapping[str, tuple[Stage, Kept]] = {
    stage.kept.folder: (stage, stage.kept) for stage in STAGES.values() if stage.kept is not None
}
"""The folders of an experiment whose results are kept by what they are made from, with the stages that make them."""


def stage_of(name: str) -> Stage:
    """The record of a stage. Raises ConfigError with the nearest match for a name that no stage has."""
    if name not in STAGES:
        raise ConfigError(
            f"got the stage {name!r}, which has no record in scripts/hatchery/stages{nearest(name, STAGES)}"
        )
    return STAGES[name]


def stage_settings(project: Project, name: str, **wildcards: str) -> str:
    """Canonical settings of a stage's job. Raises ConfigError for a broken or unknown block."""
    return stage_of(name).canonical_settings(project, **wildcards)


def own_commands() -> dict[str, Stage]:
    """The stages that have a command of their own, by their commands in `scripts/`."""
    return {stage.name: stage for stage in STAGES.values() if stage.script == stage.name}


def commands_by_environment() -> dict[str, list[str]]:
    """The commands that the rules call, by the conda environment that serves them."""
    found: dict[str, list[str]] = {}
    for name, entry in own_commands().items():
        found.setdefault(entry.environment, []).append(name)
    return found
