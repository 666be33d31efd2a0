"""The public interface of `import hatchery`, for notebooks and programs; docs/python.md has examples.

Results and models are read from their folders. No function in this module needs Snakemake, or writes results of
experiments. All errors are `HatcheryError`. No module of the library imports this module.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from torch import nn

from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, TidyTable, read_frame
from hatchery.artifacts.checksums import verified_view
from hatchery.artifacts.manifests import RESULTS
from hatchery.direct_evaluation import evaluate as evaluate
from hatchery.direct_evaluation import reading as reading
from hatchery.direct_evaluation import suites as suites
from hatchery.direct_evaluation import surprisals as surprisals
from hatchery.direct_job import job as job
from hatchery.direct_training import Training
from hatchery.direct_training import train as train
from hatchery.errors import ConfigError, ManifestError, first_line
from hatchery.evaluation.asked_model import AskedModel
from hatchery.evaluation.opening import MOST_LISTED, Named, open_model
from hatchery.experiment.kinds import FOLDERS
from hatchery.experiment.project import Project
from hatchery.experiment.shipped import open_project
from hatchery.export.direct import export as export
from hatchery.settings.base import DeviceName
from hatchery.settings.problems import alternatives, nearest
from hatchery.training.stages.pretrain import pretraining_settings
from hatchery.typed import build, plain
from hatchery.workflow.cost_estimate import estimate
from hatchery.workflow.cost_settings import CostSettings
from hatchery.workflow.stages.write_cost import cost_settings


class Results:
    """The tables of a finished experiment or study as polars data frames. Each table is read when it is first used.

    docs/tables.md describes the columns. Attributes raise ManifestError for a missing or altered table.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def measurements(self) -> pl.DataFrame:
        """Table with one row for each score of each run."""
        return self._table(MEASUREMENTS)

    @cached_property
    def runs(self) -> pl.DataFrame:
        """Table with one row per pretrained model or milestone: model sizes, numbers of steps and tokens, losses."""
        return self._table(RUNS)

    @cached_property
    def curves(self) -> pl.DataFrame:
        """Table with one row per logged step of each pretraining."""
        return self._table(CURVES)

    @cached_property
    def layers(self) -> pl.DataFrame:
        """Table with one row for each weight of a layer in a weighted sum of layers. The sum is the input of another
        layer or of a probe.
        """
        return self._table(LAYERS)

    @cached_property
    def surprisals(self) -> pl.DataFrame:
        """Table (surprisals.parquet) with one row per word of each text and model. The table also contains the columns
        of the user's own files of texts.

        Raises ManifestError for an experiment without texts under `surprisal`, and for a study.
        """
        path = self.folder / "surprisals.parquet"
        if not path.exists():
            raise ManifestError(
                f"{path}: the table of words does not exist; for an experiment with texts under `surprisal`, "
                f"snakemake {RESULTS}/{self.folder.name}/surprisals.csv makes it (docs/surprisal.md)"
            )
        return _read_view(path)

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Table (summary.csv) with one row per model and measure: the mean of the measure over runs, and the published
        value of the measure, if there is one.
        """
        return _read_view(self.folder / "summary.parquet")

    def _table(self, table: TidyTable) -> pl.DataFrame:
        return read_frame(self.folder / f"{table.name}.parquet", table)


def _read_view(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(verified_view(path))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ManifestError(f"{path}: not a readable Parquet file: {first_line(error)}") from error


class Experiment:
    """The configuration of an experiment, checked, with the runs that sweeps and grids generate. Nothing is trained."""

    def __init__(self, project: Project, name: str) -> None:
        self.name = name
        self.description = project.experiment(name).description
        self._project = project

    @property
    def runs(self) -> pl.DataFrame:
        """Table with one row per pretrained model: `run`, `model`, `seed`, `label`."""
        rows = [(run.name, run.model, run.seed, run.title) for run in self._project.seeded_runs(self.name)]
        return pl.DataFrame(rows, schema=["run", "model", "seed", "label"], orient="row")

    def settings(self, run: str) -> dict[str, Any]:
        """Return all settings that determine a run's weights, except for the data: model, objective, training, seed.

        Raises ConfigError, which suggests the most similar name, for an unknown run.
        """
        found: dict[str, Any] = plain(pretraining_settings(self._project, self.name, run))
        return found

    @property
    def costs(self) -> pl.DataFrame:
        """Table of the estimated cost of each pretraining: parameters, FLOPs, hours and bytes, as in cost.csv."""
        settings = build(CostSettings, cost_settings(self._project, self.name), "cost")
        return pl.DataFrame([asdict(cost) for cost in estimate(settings)])


def results(path: str | Path) -> Results:
    """Return the results in a folder such as `results/demo`. Raises ManifestError for a folder without tables."""
    folder, tables = Path(path), f"{MEASUREMENTS.name}.parquet"
    if not (folder / tables).is_file():
        example = f"expected a folder such as {RESULTS}/demo"
        if folder.parent.name == RESULTS:
            example = f"to make them: snakemake {RESULTS}/{folder.name}/summary.csv"
        raise ManifestError(f"{folder}: contains no tables; {example}{_beside(folder, tables)}")
    return Results(folder)


def experiment(path: str | Path) -> Experiment:
    """Return the experiment that a file such as `config/experiments/demo.yaml` defines.

    Raises ConfigError for an invalid file.
    """
    file = Path(path)
    if file.parent.name != FOLDERS["experiment"] or file.suffix != ".yaml":
        raise ConfigError(f"{file}: expected a file such as config/{FOLDERS['experiment']}/demo.yaml")
    project = open_project(file.parent.parent)
    project.check("experiment", file.stem)
    return Experiment(project, file.stem)


def model(
    path: str | Path | nn.Module | Training | Sequence[str | Path],
    device: DeviceName = "cpu",
    tokenizer: Any = None,
    architecture: Named | None = None,
) -> AskedModel:
    """Return a model for queries such as filling gaps; `AskedModel` describes its methods.

    `path` is a folder such as `results/demo/pretraining/ltg_bert-s42`, an exported folder, a name on the hub, a folder
    in the format of `transformers`, a module with its `tokenizer`, or the result of `hatchery.train` (see
    `opening.open_model`).

    Raises ManifestError for a folder without a model; the message suggests folders next to it that contain a model.
    Also raises EvaluationError for a translation model, and ConfigError for an unknown or unavailable device.
    """
    if isinstance(path, Training):
        path, tokenizer = path.opened_as(tokenizer)
    return AskedModel(open_model(path, tokenizer, architecture), device)


def _beside(folder: Path, file: str) -> str:
    """Return a text that lists the folders next to `folder` that contain the file `file`; empty if there is no such
    folder.

    If there are many folders, only the most similar names are listed.
    """
    names = sorted(path.parent.name for path in folder.parent.glob(f"*/{file}"))
    listed = alternatives if 0 < len(names) <= MOST_LISTED else nearest
    return listed(folder.name, names)
