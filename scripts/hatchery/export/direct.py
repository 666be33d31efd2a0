"""`hatchery.export`: convert a model folder of Hatchery to a folder for `transformers`. This function needs no
experiment and writes no model card.
"""

from os import PathLike
from pathlib import Path

from hatchery.artifacts.manifests import MANIFEST, read_manifest
from hatchery.errors import ModelError
from hatchery.evaluation.opening import TOKENIZER_FILE, open_model
from hatchery.evaluation.pretrained import OurModel
from hatchery.export.model_folder import write_model_folder
from hatchery.export.write_export import generation_settings


def export(model: str | PathLike[str], folder: str | Path) -> list[Path]:
    """Write a folder for `transformers` from Hatchery's folder of a model; return the paths of the written files.

    Raises ModelError for an external model, for an ensemble, or if `folder` is not empty, and the errors of
    `open_model` and `write_model_folder`.
    """
    opened, folder = open_model(model), Path(folder)
    place = Path(opened.where)
    tokenizer = (place.parent if place.name == MANIFEST else place) / TOKENIZER_FILE
    if not isinstance(opened, OurModel):
        raise ModelError(f"{opened.where}: is an ensemble or an external model, expected a single model of Hatchery")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"{folder}: exists and is not empty, expected a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    generation = None
    if opened.translates and place.name == MANIFEST:
        generation = generation_settings(read_manifest(place), opened.tokenizer)
    return write_model_folder(
        folder, opened.network, opened.use.kinds, tokenizer, generation, opened.use.appends_end_token
    )
