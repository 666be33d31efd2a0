"""The stage `measure_reading_times`: the gain in the likelihood of reading times if a regression also contains a
model's surprisals.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.evaluation import DataCheck, Evaluation, MostRows, ReadData
from hatchery.evaluation.reading_times.measurements import gain_rows
from hatchery.evaluation.reading_times.settings import NamedReadingTable
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.raw.listings import source_of
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import build, stage_body

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource


def reading_times_settings(project: "Project", reading_table: str) -> dict[str, object]:
    """Return the settings of a table of reading times: its columns, predictors and regressions."""
    return project.reading_table(reading_table).measured(reading_table)


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return the files with the tables of reading times, texts and frequencies."""
    from hatchery.evaluation.reading_times.table import table_files

    return table_files(source, build(NamedReadingTable, stage_body(settings)))


def tables_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the tables of reading times of an experiment."""
    for name, table in project.readable("reading_table", project.experiment(experiment).reading_times):
        yield ReadData(project.place("reading_table", name), table.data, build(NamedReadingTable, table.measured(name)))


def check_table(source: "RawSource", settings: NamedReadingTable, rows: MostRows) -> Iterable[str]:
    """Check a table of reading times by reading it."""
    from hatchery.evaluation.reading_times.table import read_table

    read_table(source, settings, rows)
    return ()


@Stage(
    version=2,
    settings=reading_times_settings,
    inputs=lambda of, project, reading_table: {
        "source": of("register_source", source=source_of(project.reading_table(reading_table)))
    },
    files_read=files_read,
    shared=StoredByDigest("reading_times", ("reading_table",)),
    evaluation=Evaluation(
        place=37,
        title="Likelihood of reading times",
        note="Gain in the log-likelihood (nats, per row and in total) of a regression of reading times if the "
        "surprisals of the model are added as predictors; chance is 0. The interval is over readers or, in a table "
        "without readers, over items.",
        asked=lambda experiment, run: experiment.reading_times,
        rows=gain_rows,
        data=DataCheck(settings=NamedReadingTable, reads=tables_read, check=check_table),
        direct="hatchery.evaluation.reading_times.measure:evaluate",
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=240,
    runtime=("device", "tokens_per_batch"),
)
def measure_reading_times(
    settings: NamedReadingTable, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun
) -> None:
    """Write `words.parquet`, `scores.csv` and `coefficients.csv` for the model of the manifest `model`.

    Raises EvaluationError naming file and line for wrong data, EvaluationError for too few rows, ConfigError for
    settings that the model does not support, and the errors of the model, tokenizer and source loaders.
    """
    from hatchery.evaluation.reading_times.measure import measure

    measure(settings, runtime, model, source, run)
