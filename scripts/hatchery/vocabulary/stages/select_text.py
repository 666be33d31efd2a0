"""The stage `select_text`: raw texts in, the sentences, spans or windows of a selection out."""

from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import StageRun
from hatchery.stage import Stage
from hatchery.typed import keys_of
from hatchery.vocabulary.settings import SelectionSettings

if TYPE_CHECKING:
    from hatchery.experiment.project import Project


def selection_settings(project: "Project", selection: str) -> dict[str, object]:
    """What text a selection takes."""
    return {"name": selection, **keys_of(project.selection(selection), of=SelectionSettings)}


@Stage(
    version=2,
    settings=selection_settings,
    inputs=lambda data, selection: data.selection_inputs(selection),
    input_names={"sentence_model": "sentence model"},
    environment="corpora",
    runs_on="cpu",
    threads="corpus",
    memory_mb=2000,
    memory_mb_per_thread=1000,
    minutes=1440,
)
def select_text(
    settings: SelectionSettings,
    source: Path,
    vocabulary: Path,
    run: StageRun,
    sentence_model: Path | None = None,
    workers: int = 1,
) -> None:
    """Write `items-*.parquet`, `counts.csv` and `samples.csv` of a selection into the folder of `run`.

    `source` and `sentence_model` are source manifests, but without options `source` is the manifest of a corpus;
    `vocabulary` is the manifest of a built vocabulary. Raises SourceError naming file and place of damaged input,
    ManifestError for a damaged corpus, EvaluationError for a damaged vocabulary, ConfigError for settings that do not
    fit.
    """
    from hatchery.vocabulary.select import select

    select(settings, source, vocabulary, run, sentence_model, workers)
