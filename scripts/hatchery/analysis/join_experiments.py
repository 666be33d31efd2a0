"""The `join_experiments` stage: the tidy tables of several experiments below each other, as those of a study.

The experiments keep their tables. Here `model` and `run` begin with the experiment (`demo/elc_bert`), because several
may have a model of the same name; so everything that reads the tables of an experiment reads these as well.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hatchery.analysis.stages.join_experiments import JoinSettings
from hatchery.analysis.tidy_tables import TABLES, TidyTable, growing, read_parts
from hatchery.errors import ConfigError, ManifestError

NAMES, LABEL = ("model", "run"), "label"


def join(
    settings: JoinSettings,
    measurements: Mapping[str, Path],
    runs: Mapping[str, Path],
    curves: Mapping[str, Path],
    layers: Mapping[str, Path],
    output: Path,
) -> None:
    """Write the tables of a study; see the stage `join_experiments`."""
    for table, given in zip(TABLES, (measurements, runs, curves, layers), strict=True):
        if list(given) != list(settings.experiments):
            raise ConfigError(f"--{table.name}: got {', '.join(given)}, expected {', '.join(settings.experiments)}")
        with growing(table.beside(output), table) as joined:
            for experiment, path in given.items():
                for part in _parts(path, table, experiment):
                    joined.add_table(part)


def _parts(path: Path, table: TidyTable, experiment: str) -> Iterator[pa.Table]:
    for part in read_parts(path, table):
        if set(part["experiment"].unique().to_pylist()) - {experiment}:
            raise ManifestError(f"{path}: holds rows of other experiments than {experiment}")
        for name in (*NAMES, *([LABEL] if LABEL in table.names else [])):
            index = table.names.index(name)
            part = part.set_column(
                index, table.schema.field(name), pc.binary_join_element_wise(f"{experiment}/", part[name], "")
            )
        yield part
