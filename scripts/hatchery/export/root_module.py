"""The module that the modelling file of a family is made from: names of its classes, over what all families share.

A family that is an encoder with a head needs no such module of its own: it is written here, from the family's record.
Others have one in this folder.
"""

from typing import Any

from hatchery.export.bundle import SOURCES, bundle
from hatchery.modeling.family import Family

ROOT = '''"""{title} for `transformers`.

Load them with `trust_remote_code=True` through AutoModel, AutoModelForMaskedLM (causal ones AutoModelForCausalLM) or
AutoModelForSequenceClassification.
"""

from typing import Any, ClassVar

from hatchery.export.transformers_causal import HatcheryForCausalLM
from hatchery.export.transformers_classes import HatcheryConfig, HatcheryForMaskedLM, HatcheryModel
from hatchery.export.transformers_classification import HatcheryForSequenceClassification
{imports}


class {classes}Config(HatcheryConfig):
    """Configuration; the defaults are those of {base_size}."""

    model_type = "{model_type}"
    architecture_class = {configuration}

    def __init__(self, **values: Any) -> None:
        sizes = {{
{sizes}
        }}
        super().__init__(**{{**sizes, **values}})


class {classes}Model(HatcheryModel):
    """The encoder: `last_hidden_state` and `hidden_states`."""

    config_class = {classes}Config
    encoder_class: ClassVar[Any] = {encoder}


class {classes}ForMaskedLM(HatcheryForMaskedLM):
    """The masked language model."""

    config_class = {classes}Config
    base_class: ClassVar[Any] = {classes}Model
    head_class: ClassVar[Any] = {head}


class {classes}ForCausalLM(HatcheryForCausalLM):
    """The causal language model."""

    config_class = {classes}Config
    base_class: ClassVar[Any] = {classes}Model
    head_class: ClassVar[Any] = {head}


class {classes}ForSequenceClassification(HatcheryForSequenceClassification):
    """The encoder with a classification head."""

    config_class = {classes}Config
    base_class: ClassVar[Any] = {classes}Model
'''


def modelling_file(family: Family) -> str:
    """The text of the family's modelling file, with all code that it needs. Raises ModelError as `bundle` does."""
    exported, modules = family.exported, family.modules()
    root = f"hatchery.export.{exported.module}"
    if SOURCES.joinpath(*root.split(".")).with_suffix(".py").is_file():
        return bundle(root)
    named: dict[str, Any] = {"configuration": family.configuration, "encoder": modules.encoder, "head": modules.head}
    names = {role: part.__name__ for role, part in named.items()}
    imports = sorted(f"from {part.__module__} import {part.__name__}" for part in named.values())
    sizes = "\n".join(f'            "{key}": {size},' for key, size in exported.sizes.items())
    text = ROOT.format(
        title=exported.title,
        base_size=exported.base_size,
        classes=exported.classes,
        model_type=exported.model_type,
        imports="\n".join(imports),
        sizes=sizes,
        **names,
    )
    return bundle(root, text=text)
