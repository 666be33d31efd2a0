"""The stage `select_text`, which selects sentences, spans or windows from raw texts or a corpus."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_of
from hatchery.settings.fields import ABSENT
from hatchery.stage import Stage
from hatchery.typed import build, keys_of, stage_body
from hatchery.vocabulary.settings import SelectionSettings

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.outputs import Outputs


SENTENCE_MODEL = "sentence model"
"""Name, in manifests, of the input that contains the parameters of the sentence splitter."""


def selection_settings(project: "Project", selection: str) -> dict[str, object]:
    """Return the settings of the text selection named `selection`, from its configuration file."""
    return {"name": selection, **keys_of(project.selection(selection), only=SelectionSettings)}


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return those files of the raw input `name` that the stage reads.

    The stage reads the texts that match the options or, if the raw input is a model of sentence splitting, its
    parameter files.
    """
    from hatchery.corpora.raw_texts import raw_text_files
    from hatchery.corpora.sentences import parameter_files

    options = build(SelectionSettings, stage_body(settings)).options
    return parameter_files(source) if options is None or name == SENTENCE_MODEL else raw_text_files(source, options)


def selection_inputs(of: "Outputs", selection: str) -> dict[str, Paths]:
    """Return the manifests of a selection's inputs, by argument of the stage.

    The inputs are the raw source or the corpus, the vocabulary and, if the settings name one, the model of sentence
    splitting.
    """
    block = of.project.selection(selection)
    return {
        "source": of("register_source", source=source_of(block)) if block.corpus is ABSENT else of.corpus(block.corpus),
        "vocabulary": of("build_vocabulary", vocabulary=block.vocabulary),
        **({} if block.sentence_model is None else {"sentence_model": of.source(block.sentence_model)[0]}),
    }


@Stage(
    version=1,
    settings=selection_settings,
    inputs=selection_inputs,
    outputs={"output": "results/selections/{selection}/manifest.json"},
    input_names={"sentence_model": SENTENCE_MODEL},
    files_read=files_read,
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

    `source` is a source manifest or, if `settings.options` is None, the manifest of a corpus. `sentence_model` is the
    source manifest of a model of sentence splitting, and `vocabulary` is the manifest of a vocabulary. Raises
    SourceError, which names file and position, for damaged input, ManifestError for a damaged corpus, EvaluationError
    for a damaged vocabulary, and ConfigError if `settings` and `sentence_model` contradict each other.
    """
    from hatchery.vocabulary.select import select

    select(settings, source, vocabulary, run, sentence_model, workers)
