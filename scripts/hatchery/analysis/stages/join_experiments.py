"""The stage `join_experiments`: concatenate the tidy tables of several experiments into the tables of a study.

Experiments may have models of the same name, so in a study's tables, `model`, `run` and `label` begin with the name of
the experiment (`demo/elc_bert`). The columns of a study's tables equal the columns of an experiment's tables, so the
same code reads both kinds of tables.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.analysis.analyses.analysis import TIDY_TABLES
from hatchery.analysis.stages.collect_measurements import TIDY_OUTPUTS
from hatchery.errors import ConfigError, ManifestError
from hatchery.settings.base import Settings
from hatchery.stage import Stage, one_of

if TYPE_CHECKING:
    import pyarrow as pa

    from hatchery.analysis.tidy_tables import TidyTable
    from hatchery.experiment.project import Project


@dataclass(frozen=True)
class JoinSettings(Settings):
    """The name of the study, and its experiments in the order of the configuration."""

    experiment: str
    experiments: tuple[str, ...]


def join_settings(project: "Project", experiment: str) -> dict[str, object]:
    """Return the stage's settings: the name of the study and its experiments."""
    return {"experiment": experiment, "experiments": project.study(experiment).experiments}


@Stage(
    version=1,
    settings=join_settings,
    inputs=lambda of, project, experiment: {
        table: of.each("collect_measurements", table, experiment=project.study(experiment).experiments)
        for table in TIDY_TABLES
    },
    outputs=TIDY_OUTPUTS,
    wildcard_patterns=lambda project: {"experiment": one_of(project.names("study"))},
    environment="analysis",
    runs_on="local",
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
    """Write the tables of a study into the folder of `output`. Each table joins the rows of all experiments of the
    study.

    `measurements`, `runs`, `curves` and `layers` contain the paths of the experiments' tables, by experiment. Tables
    are read one row group at a time, so the memory depends only on the largest row group. Raises ConfigError if one of
    these four arguments does not contain exactly the experiments in `settings`, in the same order. Raises ManifestError
    if a table was altered or contains rows of another experiment.
    """
    from hatchery.analysis.tidy_tables import TABLES, growing

    for table, given in zip(TABLES, (measurements, runs, curves, layers), strict=True):
        if list(given) != list(settings.experiments):
            raise ConfigError(
                f"--{table.name}: got tables of {', '.join(given)}, expected tables of "
                f"{', '.join(settings.experiments)}"
            )
        with growing(table.in_folder_of(output), table) as joined:
            for experiment, path in given.items():
                for part in _parts(path, table, experiment):
                    joined.add_table(part)


def _parts(path: Path, table: "TidyTable", experiment: str) -> Iterator["pa.Table"]:
    """Yield an experiment's table in parts, with the experiment's name prepended to `model`, `run` and `label`."""
    import pyarrow.compute as pc

    from hatchery.analysis.tidy_tables import read_parts

    for part in read_parts(path, table):
        if set(part["experiment"].unique().to_pylist()) - {experiment}:
            raise ManifestError(f"{path}: contains rows of another experiment, expected only rows of {experiment}")
        for name in [name for name in ("model", "run", "label") if name in table.names]:
            index = table.names.index(name)
            named = pc.binary_join_element_wise(f"{experiment}/", part[name], "")
            part = part.set_column(index, table.schema.field(name), named)
        yield part
