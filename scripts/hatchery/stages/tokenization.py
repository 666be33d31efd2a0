"""Stages that train, choose and apply tokenizers."""

from functools import partial
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.block_bodies import tokenizer_body, without
from hatchery.experiment.project import Project
from hatchery.experiment.text_files import TokenizerFile
from hatchery.stages.record import Stage
from hatchery.typed import validated


def tokenizer_settings(project: Project, tokenizer: str) -> dict[str, Any]:
    """How a tokenizer is trained, or that it is taken from a file."""
    return tokenizer_body(project.block("tokenizer", tokenizer))


def tokens_settings(project: Project, corpus: str, tokenizer: str) -> dict[str, Any]:
    """Nothing: token shards follow from their corpus and tokenizer."""
    return {}


def sweep_settings(project: Project, sweep: str) -> dict[str, Any]:
    """The tokenizers that a sweep compares. Raises ConfigError for a key that the sweep itself says."""
    block = project.block("tokenizer_sweep", sweep)
    types = []
    for name, entry in block["types"].items():
        where = f"{project.place('tokenizer_sweep', sweep)}: types.{name}.definition"
        taken = {"corpus": block["corpus"], "vocabulary_size": entry["sizes"][0]}
        if twice := sorted(taken.keys() & entry["definition"].keys()):
            raise ConfigError(f"{where}: {twice[0]}: the sweep itself says it")
        definition = tokenizer_body(validated(TokenizerFile, {**entry["definition"], **taken}, where))
        rest = without(entry, "definition", "reference")
        types.append({"name": name, "definition": without(definition, "vocabulary_size"), **rest})
    body = without(block, "description", "corpus", "types", "morphemes_data", "published")
    return {"name": sweep, **body, "types": types}


_of_tokens = partial(Stage, environment="tokenization", sort="cpu", threads="tokenization", memory_mb=8000)

STAGES = (
    _of_tokens(name="train_tokenizer", version=2, settings=tokenizer_settings, minutes=120),
    _of_tokens(name="encode_corpus", version=2, settings=tokens_settings, minutes=120),
    _of_tokens(
        name="select_tokenizer",
        version=1,
        settings=sweep_settings,
        arguments=lambda layout, sweep: {
            "morphemes": layout.sweep_morphemes(sweep),
            "reference": layout.sweep_references(sweep),
            "published": layout.sweep_published(sweep),
        },
        threads="corpus",
        memory_mb_per_thread=2000,
        minutes=1440,
    ),
)
