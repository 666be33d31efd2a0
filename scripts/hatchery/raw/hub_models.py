"""Models of the Hugging Face hub at a pinned commit: weights, configuration and tokenizer, and nothing that is code.

Of several forms of the weights, those are fetched that hold tensors alone (safetensors); pickled ones only where there
are no others. A killed run keeps the files that are whole.
"""

import shutil
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download

from hatchery.errors import SourceError, first_line
from hatchery.raw.fetched_folder import FetchedFolder
from hatchery.raw.settings import HubModel

DESCRIPTIONS = ("config.json", "generation_config.json")
TOKENIZER = ("tokenizer*.json", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.model")
WEIGHTS = (("model*.safetensors", "model*.safetensors.index.json"), ("pytorch_model*.bin", "pytorch_model*.index.json"))
"""The forms of the weights, the better ones first; large ones lie in parts, of which an index knows."""


def names_in(model: HubModel) -> list[str]:
    """The files of the repository. Reaches the network."""
    return list(HfApi().list_repo_files(model.repository, revision=model.revision))


def fetch_file(model: HubModel, name: str, folder: Path) -> None:
    """Fetch one file into `folder`. Reaches the network."""
    hf_hub_download(model.repository, name, revision=model.revision, local_dir=folder)


def fetch_hub_model(model: HubModel, folder: Path) -> Path:
    """Write the files of a model to `folder`, which appears when all are there.

    Raises SourceError naming repository and commit when it cannot be read, or has no configuration or weights.
    """
    target = FetchedFolder(folder, {"hub_model": asdict(model)})
    if target.is_complete():
        return folder
    work, where = target.start(keep=True), f"{model.repository} at {model.revision}"
    try:
        for name in chosen_files(names_in(model), where):
            fetch_file(model, name, work)
    # What the library raises; errors of the network are OSErrors.
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(f"{where}: {first_line(error)[:300]}; finished files are kept") from error
    # What the library notes of its downloads.
    shutil.rmtree(work / ".cache", ignore_errors=True)
    return target.publish()


def chosen_files(names: list[str], where: str) -> list[str]:
    """The files that are fetched, sorted. Raises SourceError where there is no model among them."""

    def found(patterns: tuple[str, ...]) -> list[str]:
        return [name for name in sorted(names) if any(fnmatch(name, pattern) for pattern in patterns)]

    weights = next((files for form in WEIGHTS if (files := found(form))), [])
    if "config.json" not in names or not weights:
        raise SourceError(f"{where}: holds no config.json with weights, expected a model of the library transformers")
    return [*found(DESCRIPTIONS), *found(TOKENIZER), *weights]
