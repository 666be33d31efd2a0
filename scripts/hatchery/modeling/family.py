"""The record of a family of models, which all code outside of the modules uses.

A family is a folder with the name of the key `family`, with its modules, its configuration in `config.py` and its
record `FAMILY` in `family.py`. The record needs no torch, so planning reads sizes, positions and FLOPs without loading
it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.modeling.flops import PassShape, kaplan_flops

if TYPE_CHECKING:
    from hatchery.modeling.encoder import LayeredEncoder
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.modeling.layers import VocabularyHead


class Modules(NamedTuple):
    """The parts of a model that need torch."""

    model: "type[LanguageModel]"
    """Class of the model, constructed from a configuration; the training engine calls it with a batch."""
    encoder: "Callable[..., LayeredEncoder]"
    """Class of the encoder, constructed from a configuration and, optionally, a layer weighting."""
    head: "Callable[[Any], VocabularyHead]"
    """Class of the head, constructed from a configuration; returns logits [..., V] of hidden states [..., D] and the
    word embedding.
    """
    initialise_: "Callable[[LanguageModel, int], None]"
    """Sets every parameter in place, from a seed; the layer mixture sets its own parameters."""


@dataclass(frozen=True)
class Exported:
    """Names of a family in a folder for `transformers`."""

    module: str
    """The modelling file, without its suffix, and the module of `hatchery.export` that it is made from. An encoder with
    a head has no export module: `export/model_folder.py` writes its file.
    """
    classes: str
    """Prefix of the names of the family's classes."""
    title: str = ""
    """Name of the family in texts and tables, such as LTG-BERT."""
    base_size: str = ""
    """Name in texts and tables of the model that has the sizes in `sizes`."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Default sizes of an exported configuration."""
    further: tuple[str, ...] = (
        "ForSequenceClassification",
        "ForTokenClassification",
        "ForQuestionAnswering",
        "ForMultipleChoice",
    )
    """Suffixes of the classes with other heads into which the weights can be loaded."""
    bare: bool = True
    """True if a class without a head exists."""

    @property
    def model_type(self) -> str:
        """Return the library's name of the family."""
        return f"hatchery_{self.module.removeprefix('modeling_')}"

    def auto_classes(self, language_models: Sequence[str]) -> dict[str, str]:
        """Return the suffix of our class for each of the library's auto classes.

        `language_models` are the suffixes of the language-model classes.
        """
        bare = {"AutoModel": "Model"} if self.bare else {}
        heads = (*language_models, *self.further)
        return {"AutoConfig": "Config", **bare, **{f"AutoModel{head}": head for head in heads}}


def six_per_parameter_and_token(config: object, parameters: int, work: Sequence[tuple[int, int]]) -> float:
    """Return 6 FLOPs for each parameter and token: the formula of families whose papers count no FLOPs."""
    return kaplan_flops(parameters, sum(sequences * length for sequences, length in work))


@dataclass(frozen=True)
class Family:
    """The differences between families of models; configurations are of the class `configuration`."""

    file: type[EncoderSizes]
    """Class of settings of a file in config/models/."""
    configuration: type[ModelConfig]
    modules: Callable[[], Modules]
    """Returns the modules; a function, so that torch is loaded only for a call."""
    forward_flops: Callable[[Any, PassShape], dict[str, float]]
    """Returns the FLOPs of one forward pass of a configuration by part of the model (see `flops.encoder_flops`)."""
    exported: Exported
    paper_flops: Callable[[Any, int, Sequence[tuple[int, int]]], float] = six_per_parameter_and_token
    """Returns the FLOPs of a whole training by the formula of the family's paper, for a configuration, its number of
    parameters, and the number and length of the sequences.
    """
    paper_formula: str = "6 N D"
    """Name of the formula of `paper_flops`."""
    token_ids: tuple[str, ...] = ()
    """Roles of the special tokens whose ids are keys of the configuration: "pad" is `pad_token_id`."""
