"""A tokenizer that is there already, as a `tokenizer.json` of the tokenizers library: taken as it is, not trained.

It is what a model that others pretrained needs to be trained on or evaluated here. Its settings are its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_bytes, write_json
from hatchery.artifacts.manifests import stage_run
from hatchery.errors import TokenizationError
from hatchery.settings.base import Settings
from hatchery.tokenization.tokenizer_file import load_tokenizer
from hatchery.tokenization.transformers_files import special_tokens_map, tokenizer_config
from hatchery.typed import build, stage_body


@dataclass(frozen=True)
class ImportedTokenizerSettings(Settings):
    """What is known of the file without reading it."""

    vocabulary_size: int
    # Always true; tells these settings from those of a training.
    imported: bool = True


def is_imported(settings: Mapping[str, Any]) -> bool:
    """Whether the settings of the stage ask for a tokenizer that is there already."""
    return bool(settings.get("imported"))


def import_tokenizer(settings: Mapping[str, Any], file: Path, output: Path) -> None:
    """Write what `train_tokenizer` writes beside the manifest `output`, with `file` as its `tokenizer.json`.

    Raises TokenizationError when the file is no usable tokenizer or has another size than the settings say.
    """
    wanted = build(ImportedTokenizerSettings, stage_body(settings)).vocabulary_size
    if not file.is_file():
        raise TokenizationError(f"{file}: the tokenizer is missing, expected a tokenizer.json")
    tokenizer = load_tokenizer(file)
    if tokenizer.vocabulary_size != wanted:
        raise TokenizationError(
            f"{file}: vocabulary_size: got {wanted}, expected {tokenizer.vocabulary_size}, the entries of the file"
        )
    with stage_run(output, settings, {"tokenizer_file": file}) as run:
        write_bytes(run.folder / "tokenizer.json", file.read_bytes())
        write_json(run.folder / "tokenizer_config.json", tokenizer_config(tokenizer.backend, tokenizer.special))
        write_json(run.folder / "special_tokens_map.json", special_tokens_map(tokenizer.special))
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            run.add_output(run.folder / name)
        run.measures["vocabulary_size"] = tokenizer.vocabulary_size
