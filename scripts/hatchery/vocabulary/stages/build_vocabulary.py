"""The stage `build_vocabulary`, which builds a vocabulary from transcripts or from a word list."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_of
from hatchery.stage import Stage
from hatchery.typed import keys_of
from hatchery.vocabulary.settings import VocabularySettings

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.outputs import Outputs


def vocabulary_settings(project: "Project", vocabulary: str) -> dict[str, object]:
    """Return the settings of the vocabulary `vocabulary` from its configuration file."""
    return keys_of(project.vocabulary(vocabulary), only=VocabularySettings)


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return those files of the raw input `name` that the stage reads.

    From `source`, the stage reads the transcripts or word lists that match the patterns in the settings. From
    `dictionary`, it reads all files except README files. From `released`, the word list that the reduced-vocabulary
    study published, it reads all files.
    """
    from hatchery.corpora.raw_files import matching_names
    from hatchery.typed import build, stage_body
    from hatchery.vocabulary.word_lists import dictionary_files

    if name == "source":
        return matching_names(source, build(VocabularySettings, stage_body(settings)).files)
    return dictionary_files(source) if name == "dictionary" else source.names()


def vocabulary_inputs(of: "Outputs", vocabulary: str) -> dict[str, Paths]:
    """Return the source manifests of a vocabulary's raw inputs, by argument of the stage."""
    block = of.project.vocabulary(vocabulary)
    named = {"source": source_of(block), "dictionary": block.dictionary, "released": block.released}
    return {key: of("register_source", source=name) for key, name in named.items() if name is not None}


@Stage(
    version=1,
    settings=vocabulary_settings,
    inputs=vocabulary_inputs,
    outputs={"output": "results/vocabularies/{vocabulary}/manifest.json"},
    files_read=files_read,
    environment="corpora",
    runs_on="cpu",
    memory_mb=2000,
    minutes=60,
)
def build_vocabulary(
    settings: VocabularySettings, source: Path, dictionary: Path | None, released: Path | None, run: StageRun
) -> None:
    """Build a vocabulary and write it into the folder of `run`.

    `source` is the manifest of the transcripts or the word list, and `dictionary` is the manifest of a dictionary.
    `released` is the manifest of the word list that the reduced-vocabulary study published. Raises SourceError for
    damaged or missing input, and ConfigError if a dictionary is given but the source is a word list.
    """
    from hatchery.vocabulary.build import build

    build(settings, source, dictionary, released, run)
