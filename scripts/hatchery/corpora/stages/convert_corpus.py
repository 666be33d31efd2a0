"""The stage `convert_corpus`: conversion of raw sources to the documents of a corpus."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.manifests import StageRun
from hatchery.corpora.settings import ConvertSettings
from hatchery.job_spec import Paths
from hatchery.raw.listings import source_of
from hatchery.stage import Stage
from hatchery.typed import build, keys_of, stage_body

if TYPE_CHECKING:
    from hatchery.experiment.project import Project
    from hatchery.raw.registration import RawSource
    from hatchery.workflow.outputs import Outputs


def corpus_settings(project: "Project", corpus: str) -> dict[str, object]:
    """Return the settings of the stage `convert_corpus` for a corpus."""
    block = project.corpus(corpus)
    # `languages` is part of the settings only if it determines how the user's own text is split into sentences. So this
    # key does not change the results of other corpora.
    own = [source.options for source in block.sources if source.reader == "plain_text"]
    cut = any(options.sentences is None and not options.tagged for options in own)
    sources = [keys_of(source, "data", "embedded") for source in block.sources]
    return {**keys_of(block, only=ConvertSettings), "sources": sources, "languages": block.languages if cut else None}


def conversion_inputs(of: "Outputs", project: "Project", corpus: str) -> dict[str, Paths]:
    """Return the manifests of a corpus's sources, of its sentence model (if set), and of the evaluation data (if
    decontamination is set).
    """
    block = project.corpus(corpus)
    found: dict[str, Paths] = {
        "source": {each.name: of("register_source", source=source_of(each)) for each in of.part(corpus, "sources")},
        "sentence_model": of.source(block.sentence_model),
    }
    if block.decontamination is not None:
        found["evaluation"] = {name: of("register_source", source=name) for name in block.decontamination.data}
    return found


def files_read(settings: Mapping[str, Any], name: str, source: "RawSource") -> Iterable[str]:
    """Return the files that the stage reads from a source: for a corpus source, the files that its reader reads, with
    companion files such as translations; for a sentence model, its parameter files; for evaluation data, all files.
    """
    from hatchery.corpora.file_groups import files_of
    from hatchery.corpora.sentences import parameter_files

    built = build(ConvertSettings, stage_body(settings), "convert_corpus")
    chosen = [block for block in built.sources if block.name == name]
    if chosen:
        return files_of(chosen[0], source)
    if built.decontamination is not None and name in built.decontamination.data:
        return source.names()
    return parameter_files(source)


@Stage(
    version=1,
    settings=corpus_settings,
    inputs=conversion_inputs,
    outputs={"output": "results/corpora/{corpus}/manifest.json"},
    input_names={"sentence_model": "sentence model"},
    files_read=files_read,
    environment="corpora",
    runs_on="cpu",
    threads="corpus",
    memory_mb=2000,
    memory_mb_per_thread=1000,
    minutes=240,
)
def convert_corpus(
    settings: ConvertSettings,
    source: Mapping[str, Path],
    run: StageRun,
    sentence_model: Path | None = None,
    evaluation: Mapping[str, Path] = MappingProxyType({}),
    workers: int = 1,
) -> None:
    """Write the shards and tables of a corpus into `run.folder`.

    All inputs are manifests of raw sources. `source` are the manifests by name of the source; `evaluation` are the
    manifests of the evaluation data by name; `sentence_model` is the manifest of the sentence splitter's parameters.
    Raises ConfigError for a source without a manifest or with wrong options, SourceError for damaged input, and
    CorpusError for a source without documents.
    """
    from hatchery.corpora.convert import convert

    convert(settings, source, run, sentence_model, workers, evaluation)
