"""The description of a model family, through which all other code uses the family.

Each family has a folder, named like the key `family`. The folder contains the modules of the model, the configuration
class (`config.py`) and an object of the class `Family` (`FAMILY` in `family.py`). `FAMILY` gives access to sizes,
positions and FLOPs without loading torch, so that planning is fast.
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
    """The classes and functions of a family that need torch."""

    model: "type[LanguageModel]"
    """Class of the model; its constructor receives a configuration. The training engine calls the model with a batch.
    """
    encoder: "Callable[..., LayeredEncoder]"
    """Class of the encoder; its constructor receives a configuration and, optionally, a layer weighting."""
    head: "Callable[[Any], VocabularyHead]"
    """Class of the language-model head; its constructor receives a configuration. The head computes logits [..., V]
    from hidden states [..., D] and the word embedding.
    """
    initialise_: "Callable[[LanguageModel, int], None]"
    """Function that sets every parameter in place, given a seed, except for the parameters of a `LayerMixture`."""


@dataclass(frozen=True)
class Exported:
    """Names of a family's exported classes and files for `transformers`, and the default sizes in an exported
    configuration.
    """

    module: str
    """Name, without suffix, of the modelling file in an exported folder. The file is made from the module of this name
    in `hatchery.export` or, if there is no such module, from a text that `export/model_folder.py` writes.
    """
    classes: str
    """Prefix of the names of the family's classes."""
    title: str = ""
    """Name of the family in texts and tables, such as LTG-BERT."""
    base_size: str = ""
    """Name, in texts and tables, of a model with the default `sizes`."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Default sizes of an exported configuration."""
    further: tuple[str, ...] = (
        "ForSequenceClassification",
        "ForTokenClassification",
        "ForQuestionAnswering",
        "ForMultipleChoice",
    )
    """Suffixes of the exported classes with a task head. The weights of the language model can be loaded into these
    classes."""
    bare: bool = True
    """True if there is also an exported class without any head."""

    @property
    def model_type(self) -> str:
        """Return the key `model_type` of the exported configuration."""
        return f"hatchery_{self.module.removeprefix('modeling_')}"

    def auto_classes(self, language_models: Sequence[str]) -> dict[str, str]:
        """Return, for each auto class of `transformers`, the name of the exported class without the family's prefix.
        For example, "AutoModelForMaskedLM" has the value "ForMaskedLM".

        `language_models` are the names of the exported classes with a language-model head, also without prefix.
        """
        bare = {"AutoModel": "Model"} if self.bare else {}
        heads = (*language_models, *self.further)
        return {"AutoConfig": "Config", **bare, **{f"AutoModel{head}": head for head in heads}}


def six_per_parameter_and_token(config: object, parameters: int, work: Sequence[tuple[int, int]]) -> float:
    """Return 6 FLOPs for each parameter and token. Families whose papers publish no formula for FLOPs use this formula.
    `work` contains pairs (number of sequences, sequence length).
    """
    return kaplan_flops(parameters, sum(sequences * length for sequences, length in work))


@dataclass(frozen=True)
class Family:
    """A model family: its classes, its FLOPs, and the names of its exported models."""

    file: type[EncoderSizes]
    """Settings class of the family's files in config/models/."""
    configuration: type[ModelConfig]
    modules: Callable[[], Modules]
    """Function that imports and returns the modules, so that torch is only loaded when the function is called."""
    forward_flops: Callable[[Any, PassShape], dict[str, float]]
    """Function that returns the FLOPs of one forward pass by part of the model (see `flops.encoder_flops`)."""
    exported: Exported
    paper_flops: Callable[[Any, int, Sequence[tuple[int, int]]], float] = six_per_parameter_and_token
    """Function that returns the training FLOPs by the formula of the family's paper.

    Its arguments are the configuration, the number of parameters, and pairs (number of sequences, sequence length).
    """
    paper_formula: str = "6 N D"
    """Name of the formula of `paper_flops`."""
    token_ids: tuple[str, ...] = ()
    """Special tokens whose ids are keys of the configuration. For example, "pad" adds the key `pad_token_id`."""
