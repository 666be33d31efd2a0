"""Stages that make corpora, the vocabularies and selections that they are filtered by, and their cards."""

from functools import partial
from typing import Any

from hatchery.experiment.block_bodies import without
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import raw_inputs
from hatchery.stages.record import Stage


def vocabulary_settings(project: Project, vocabulary: str) -> dict[str, Any]:
    """How a vocabulary is read."""
    block = project.block("vocabulary", vocabulary)
    return without(block, "description", "data", "embedded", "dictionary", "released")


def selection_settings(project: Project, selection: str) -> dict[str, Any]:
    """What text a selection takes."""
    block = project.block("selection", selection)
    return {"name": selection, **without(block, "description", "data", "embedded", "corpus", "vocabulary")}


def corpus_settings(project: Project, corpus: str) -> dict[str, Any]:
    """How raw sources become the documents of a corpus."""
    block = project.block("corpus", corpus)
    sources = [without(source, "data", "embedded") for source in block["sources"]]
    # What languages there are decides only how text of one's own is cut, where no option says it.
    own = [source["options"] for source in sources if source["reader"] == "plain_text"]
    cut = any(options["sentences"] is None and not options["tagged"] for options in own)
    languages = {"languages": block["languages"]} if cut else {}
    return {**without(block, "description", "languages", "card_tokenizer"), "sources": sources, **languages}


def sample_settings(project: Project, corpus: str) -> dict[str, Any]:
    """How a sample is drawn."""
    block = project.block("corpus", corpus)
    return {**without(block["sample"], "corpus", "size_of"), "documents_per_shard": block["documents_per_shard"]}


def sequences_settings(project: Project, corpus: str) -> dict[str, Any]:
    """How selections are grouped into sequences."""
    block = project.block("corpus", corpus)
    return {**without(block["sequences"], "held_out_from"), "documents_per_shard": block["documents_per_shard"]}


def card_settings(project: Project, corpus: str) -> dict[str, Any]:
    """What a corpus's card says of where the corpus comes from."""
    block = project.block("corpus", corpus)
    sources = {source["name"]: source for source in raw_inputs(project, corpus)}
    return {
        "corpus": corpus,
        "description": block["description"],
        "languages": block["languages"],
        "sources": [sources[name] for name in sorted(sources)],
    }


_of_text = partial(Stage, environment="corpora", sort="cpu")

STAGES = (
    _of_text(
        name="build_vocabulary",
        version=1,
        settings=vocabulary_settings,
        arguments=lambda layout, vocabulary: layout.vocabulary_inputs(vocabulary),
        memory_mb=2000,
        minutes=60,
    ),
    _of_text(
        name="select_text",
        version=2,
        settings=selection_settings,
        arguments=lambda layout, selection: layout.selection_inputs(selection),
        threads="corpus",
        memory_mb=2000,
        memory_mb_per_thread=1000,
        minutes=1440,
    ),
    _of_text(
        name="convert_corpus",
        version=4,
        settings=corpus_settings,
        arguments=lambda layout, corpus: {
            "source": layout.corpus_sources(corpus),
            "sentence_model": layout.sentence_model(corpus),
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
        arguments=lambda layout, corpus: layout.sampled_corpora(corpus),
        memory_mb=4000,
        minutes=240,
    ),
    _of_text(
        name="group_sequences",
        version=1,
        settings=sequences_settings,
        arguments=lambda layout, corpus: {
            "selection": layout.grouped_selections(corpus),
            "held_out": layout.held_out(corpus),
        },
        memory_mb=4000,
        minutes=240,
    ),
    _of_text(
        name="describe_corpus",
        version=4,
        settings=card_settings,
        arguments=lambda layout, corpus: {"tokens": layout.card_tokens(corpus)},
        environment="analysis",
        memory_mb=4000,
        minutes=120,
    ),
)
