"""All stages by name, in the order in which data passes through them."""

from collections.abc import Mapping
from pathlib import Path

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.settings.problems import nearest
from hatchery.stages import analysis, corpora, evaluation, figures, pretraining, sources, studies, tokenization
from hatchery.stages.functions import FUNCTIONS
from hatchery.stages.record import Shared, Stage

_MODULES = (sources, corpora, tokenization, pretraining, evaluation, analysis, studies, figures)

STAGES: Mapping[str, Stage] = {stage.name: stage for module in _MODULES for stage in module.STAGES}

SHARED: Mapping[str, tuple[Stage, Shared]] = {
    stage.shared.folder: (stage, stage.shared) for stage in STAGES.values() if stage.shared is not None
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


def computing_stages() -> dict[str, Stage]:
    """The stages that have a function, by their common name."""
    return {name: stage for name, stage in STAGES.items() if stage.computes}


def code_by_environment(scripts: Path) -> dict[str, list[Path]]:
    """The files in which the code of the stages begins, by the conda environment that serves it; `scripts` is here."""
    found: dict[str, list[Path]] = {}
    for name, stage in computing_stages().items():
        module = scripts.joinpath(*FUNCTIONS[name].split(".")).with_suffix(".py")
        found.setdefault(stage.environment, [scripts / "run.py"]).append(module)
    return found
