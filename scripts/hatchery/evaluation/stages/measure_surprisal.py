"""The stage `measure_surprisal`: the surprisal of every word of the user's texts under one language model."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.evaluation import DataCheck, Evaluated, Evaluation, MostRows, ReadData, TidyRow
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.settings import NamedTexts, SurprisalSettings
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_manifest, source_of
from hatchery.stage import Stage, StoredByDigest
from hatchery.typed import build, keys_of, stage_body

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.result_paths import ResultPaths


def surprisal_settings(project: "Project", experiment: str, texts: str) -> dict[str, object]:
    """Return the settings of the texts and of the scoring method."""
    return {"name": texts, **keys_of(project.experiment(experiment).surprisal[texts], only=SurprisalSettings)}


def surprisal_inputs(results: "ResultPaths", experiment: str, texts: str) -> dict[str, Paths]:
    """Return the source manifest of the texts."""
    return {"source": source_manifest(source_of(results.project.experiment(experiment).surprisal[texts]))}


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return the files that contain the texts."""
    from hatchery.evaluation.surprisal.texts import text_files

    return text_files(source, build(NamedTexts, stage_body(settings)))


def texts_read(project: "Project", experiment: str) -> Iterator[ReadData]:
    """Yield the texts for whose words an experiment measures the surprisal."""
    for name, texts in project.experiment(experiment).surprisal.items():
        where = f"{project.place('experiment', experiment)}: surprisal.{name}"
        yield ReadData(where, texts.data, build(SurprisalSettings, keys_of(texts, only=SurprisalSettings)))


def check_texts(source: "RawSource", settings: SurprisalSettings, rows: MostRows) -> Iterable[str]:
    """Check the texts by reading them, and return notes about the texts for the user."""
    from hatchery.evaluation.surprisal.texts import read_texts

    return read_texts(source, settings, rows).notes(settings)


def rows_of_words(evaluated: Evaluated) -> list[TidyRow]:
    """Return a row for the mean bits per word, and a row for the surprisal of each word that a figure shows. The figure
    shows the first words of one text.
    """
    from hatchery.evaluation.surprisal.measurements import surprisal_rows

    return surprisal_rows(evaluated)


@Stage(
    version=1,
    settings=surprisal_settings,
    inputs=surprisal_inputs,
    files_read=files_read,
    shared=StoredByDigest("surprisal", ("texts",)),
    evaluation=Evaluation(
        place=35,
        title="Surprisal of words",
        note="Mean surprisal in bits over all words of the texts. surprisal.parquet contains the surprisal of every "
        "word.",
        asked=lambda experiment, run: experiment.surprisal,
        rows=rows_of_words,
        data=DataCheck(settings=SurprisalSettings, reads=texts_read, check=check_texts),
    ),
    keep=True,
    environment="evaluation",
    runs_on="gpu",
    threads="evaluation",
    memory_mb=8000,
    minutes=240,
    runtime=("device", "tokens_per_batch"),
)
def measure_surprisal(
    settings: NamedTexts, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun
) -> None:
    """Write `surprisal.parquet` and `surprisal.csv`: a row for each word of the texts of the source manifest.

    `model` is the manifest of a pretraining run or of an imported model. Raises EvaluationError naming file and line
    for wrong data, ConfigError for settings that the model does not support, and the errors of the model, tokenizer and
    source loaders.
    """
    from hatchery.evaluation.surprisal.measure_texts import measure_texts

    measure_texts(settings, runtime, model, source, run)
