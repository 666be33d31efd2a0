"""Loading of folders that Hatchery exported for `transformers`, without running the exported code.

`export.model_folder` writes these folders. The pretrained weights in a folder have the parameter names of the exported
classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hatchery.errors import ModelError
from hatchery.modeling.families import FAMILIES
from hatchery.modeling.family import Family
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.store import WEIGHTS_FILE, filled_language_model, read_tensors
from hatchery.typed import build

INSIDE = "model."
"""Prefix of weight names in exported classes that have both a base model and a head."""


@dataclass(frozen=True)
class ExportedModel:
    """A model in float32 on the CPU. `heads` are the classes in the key `architectures` of its config.json, without the
    family's prefix, such as "ForMaskedLM".
    """

    network: LanguageModel
    heads: tuple[str, ...]


def exported_family(values: Mapping[str, Any]) -> Family | None:
    """Return the family of the model that an exported config.json (`values`) describes; None for an external model."""
    families = [one for one in FAMILIES.values() if one.exported.model_type == values.get("model_type")]
    return families[0] if families else None


def load_exported(folder: Path, values: Mapping[str, Any]) -> ExportedModel:
    """Load an exported folder, whose config.json has the content `values`.

    Raises ModelError in three cases: Hatchery did not export the folder; the file of weights is missing or damaged; or
    the weights do not fit the configuration. Raises ConfigError for an invalid configuration.
    """
    family = exported_family(values)
    if family is None:
        raise ModelError(
            f"{folder}: model_type: got {values.get('model_type')!r}, expected a model exported by Hatchery"
        )
    field_names = {field.name for field in fields(family.configuration)} | {"family"}
    heads = tuple(name.removeprefix(family.exported.classes) for name in values.get("architectures", ()))
    config = build(
        family.configuration, {key: value for key, value in values.items() if key in field_names}, str(folder)
    )
    path = folder / WEIGHTS_FILE
    tensors = read_tensors(path)
    if family.exported.bare:
        tensors = {name.removeprefix(INSIDE): tensor for name, tensor in tensors.items()}
    return ExportedModel(filled_language_model(config, heads == ("ForCausalLM",), tensors, path), heads)
