"""Stages that train, choose and apply tokenizers."""

from functools import partial

from hatchery.errors import ConfigError
from hatchery.experiment.project import Project
from hatchery.stages.record import Stage
from hatchery.tokenization.selection.settings import CandidateKeys, SweepKeys
from hatchery.tokenization.trainer_settings import TokenizerSettings
from hatchery.typed import keys_of, validated


def tokenizer_settings(project: Project, tokenizer: str) -> dict[str, object]:
    """How a tokenizer is trained, or that it is taken from a file."""
    return project.tokenizer(tokenizer).training()


def tokens_settings(project: Project, corpus: str, tokenizer: str) -> dict[str, object]:
    """Nothing: token shards follow from their corpus and tokenizer."""
    return {}


def sweep_settings(project: Project, sweep: str) -> dict[str, object]:
    """The tokenizers that a sweep compares. Raises ConfigError for a key that the sweep itself says."""
    block = project.tokenizer_sweep(sweep)
    types = []
    for name, entry in block.types.items():
        where = f"{project.place('tokenizer_sweep', sweep)}: types.{name}.definition"
        if "vocabulary_size" in entry.definition:
            raise ConfigError(f"{where}: vocabulary_size: the sweep itself says it")
        trained = validated(TokenizerSettings, {**entry.definition, "vocabulary_size": entry.sizes[0]}, where)
        rest = keys_of(entry, of=CandidateKeys)
        types.append({"name": name, "definition": keys_of(trained, "vocabulary_size"), **rest})
    return {"name": sweep, **keys_of(block, of=SweepKeys), "types": types}


_of_tokens = partial(Stage, environment="tokenization", sort="cpu", threads="tokenization", memory_mb=8000)

STAGES = (
    _of_tokens(name="train_tokenizer", version=2, settings=tokenizer_settings, minutes=120),
    _of_tokens(name="encode_corpus", version=2, settings=tokens_settings, minutes=120),
    _of_tokens(
        name="select_tokenizer",
        version=1,
        settings=sweep_settings,
        inputs=lambda data, sweep: {
            "morphemes": data.sweep_morphemes(sweep),
            "reference": data.sweep_references(sweep),
            "published": data.sweep_published(sweep),
        },
        threads="corpus",
        memory_mb_per_thread=2000,
        minutes=1440,
    ),
)
