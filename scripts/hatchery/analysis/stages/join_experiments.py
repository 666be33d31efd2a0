"""The stage `join_experiments`: the tidy tables of several experiments below each other, as those of a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.settings.base import Settings
from hatchery.stage import Stage

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


@dataclass(frozen=True)
class JoinSettings(Settings):
    """The study, and its experiments in their order."""

    experiment: str
    experiments: tuple[str, ...]


def join_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Which experiments are joined."""
    return {"experiment": experiment, "experiments": project.study(experiment).experiments}


@Stage(
    version=1,
    settings=join_settings,
    inputs=lambda results, experiment: results.joined(experiment),
    environment="analysis",
    sort="local",
    memory_mb=2000,
    minutes=30,
)
def join_experiments(
    settings: JoinSettings,
    measurements: Mapping[str, Path],
    runs: Mapping[str, Path],
    curves: Mapping[str, Path],
    layers: Mapping[str, Path],
    output: Path,
) -> None:
    """Write the tables of a study beside `output`; every argument is a table of its experiments, by their names.

    In memory is one part of one table. Raises ConfigError when they are not those of the settings, ManifestError for
    one that was altered or has rows of another experiment.
    """
    from hatchery.analysis.join_experiments import join

    join(settings, measurements, runs, curves, layers, output)
