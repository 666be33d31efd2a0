"""A tokenizer that is there already, as a `tokenizer.json` or as a SentencePiece model: taken as it is, not trained.

It is what a model that others pretrained needs to be trained on or evaluated here. Its settings are its own.
"""

from dataclasses import dataclass
from pathlib import Path

from hatchery.artifacts.atomic import write_bytes, write_json, write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.errors import TokenizationError
from hatchery.runner import stage
from hatchery.settings.base import Settings
from hatchery.tokenization.sentencepiece_model import tokenizer_text
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.transformers_files import special_tokens_map, tokenizer_config

SENTENCEPIECE = ".model"
"""Ending of SentencePiece models."""


@dataclass(frozen=True)
class ImportedTokenizerSettings(Settings):
    """What is known of the file without reading it."""

    vocabulary_size: int
    # Always true; tells these settings from those of a training.
    imported: bool = True


@stage()
def import_tokenizer(settings: ImportedTokenizerSettings, tokenizer_file: Path, run: StageRun) -> None:
    """Write what `train_tokenizer` writes into the folder of `run`, with `tokenizer_file` as its `tokenizer.json`.

    Raises TokenizationError when the file is no usable tokenizer or has another size than the settings say.
    """
    made = run.folder / "tokenizer.json"
    if tokenizer_file.suffix == SENTENCEPIECE:
        write_text(made, tokenizer_text(tokenizer_file))
        tokenizer = load_tokenizer(made)
    else:
        tokenizer = load_tokenizer(tokenizer_file)
        write_bytes(made, tokenizer_file.read_bytes())
    if tokenizer.vocabulary_size != settings.vocabulary_size:
        raise TokenizationError(
            f"{tokenizer_file}: vocabulary_size: got {settings.vocabulary_size}, expected "
            f"{tokenizer.vocabulary_size}, the entries of the file"
        )
    write_json(run.folder / "tokenizer_config.json", tokenizer_config(tokenizer.backend, tokenizer.special))
    write_json(run.folder / "special_tokens_map.json", special_tokens_map(tokenizer.special))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        run.add_output(run.folder / name)
    run.measures["vocabulary_size"] = tokenizer.vocabulary_size
