"""Stages that make corpora, the vocabularies and selections that they are filtered by, and their cards."""

from functools import partial

from hatchery.corpora.grouping import SequenceKeys
from hatchery.corpora.settings import ConvertSettings, SampleSettings
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.stages.record import Stage
from hatchery.typed import keys_of
from hatchery.vocabulary.settings import SelectionSettings, VocabularySettings


def vocabulary_settings(project: Project, vocabulary: str) -> dict[str, object]:
    """How a vocabulary is read."""
    return keys_of(project.vocabulary(vocabulary), of=VocabularySettings)


def selection_settings(project: Project, selection: str) -> dict[str, object]:
    """What text a selection takes."""
    return {"name": selection, **keys_of(project.selection(selection), of=SelectionSettings)}


def corpus_settings(project: Project, corpus: str) -> dict[str, object]:
    """How raw sources become the documents of a corpus."""
    block = project.corpus(corpus)
    # What languages there are decides only how text of one's own is cut, where no option says it.
    own = [source.options for source in block.sources if source.reader == "plain_text"]
    cut = any(options.sentences is None and not options.tagged for options in own)
    languages = {"languages": block.languages} if cut else {}
    sources = [keys_of(source, "data", "embedded") for source in block.sources]
    return {**keys_of(block, "languages", of=ConvertSettings), "sources": sources, **languages}


def sample_settings(project: Project, corpus: str) -> dict[str, object]:
    """How a sample is drawn."""
    block = project.corpus(corpus)
    return {**keys_of(block.sample, of=SampleSettings), "documents_per_shard": block.documents_per_shard}


def sequences_settings(project: Project, corpus: str) -> dict[str, object]:
    """How selections are grouped into sequences."""
    block = project.corpus(corpus)
    return {**keys_of(block.sequences, of=SequenceKeys), "documents_per_shard": block.documents_per_shard}


def card_settings(project: Project, corpus: str) -> dict[str, object]:
    """What a corpus's card says of where the corpus comes from."""
    block = project.corpus(corpus)
    sources = {source["name"]: source for source in raw_inputs(project, corpus)}
    return {
        "corpus": corpus,
        "description": block.description,
        "languages": block.languages,
        "sources": [sources[name] for name in sorted(sources)],
    }


_of_text = partial(Stage, environment="corpora", sort="cpu")

STAGES = (
    _of_text(
        name="build_vocabulary",
        version=1,
        settings=vocabulary_settings,
        inputs=lambda data, vocabulary: data.vocabulary_inputs(vocabulary),
        memory_mb=2000,
        minutes=60,
    ),
    _of_text(
        name="select_text",
        version=2,
        settings=selection_settings,
        inputs=lambda data, selection: data.selection_inputs(selection),
        threads="corpus",
        memory_mb=2000,
        memory_mb_per_thread=1000,
        minutes=1440,
    ),
    _of_text(
        name="convert_corpus",
        version=4,
        settings=corpus_settings,
        inputs=lambda data, corpus: {
            "source": data.corpus_sources(corpus),
            "sentence_model": data.sentence_model(corpus),
        },
        threads="corpus",
        memory_mb=2000,
        memory_mb_per_thread=1000,
        minutes=240,
    ),
    _of_text(
        name="sample_corpus",
        version=1,
        settings=sample_settings,
        inputs=lambda data, corpus: data.sampled_corpora(corpus),
        memory_mb=4000,
        minutes=240,
    ),
    _of_text(
        name="group_sequences",
        version=1,
        settings=sequences_settings,
        inputs=lambda data, corpus: {
            "selection": data.grouped_selections(corpus),
            "held_out": data.held_out(corpus),
        },
        memory_mb=4000,
        minutes=240,
    ),
    _of_text(
        name="describe_corpus",
        version=4,
        settings=card_settings,
        inputs=lambda data, corpus: {"tokens": data.card_tokens(corpus)},
        environment="analysis",
        memory_mb=4000,
        minutes=120,
    ),
)
