"""What a family of models is: one record, from which everything above the modules follows.

A family is a folder, called as the key `family` names it, with its modules, its configuration in `config.py` and its
record `FAMILY` in `family.py`. Nothing here needs torch: planning knows sizes, positions and operations without loading
it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.modeling.flops import PassShape

if TYPE_CHECKING:
    from hatchery.modeling.encoder import LayeredEncoder
    from hatchery.modeling.language_model import LanguageModel
    from hatchery.modeling.layers import VocabularyHead


class Modules(NamedTuple):
    """The parts of a model that need torch."""

    model: "type[LanguageModel]"
    """Made of a configuration; what the training engine calls with a batch."""
    encoder: "Callable[..., LayeredEncoder]"
    """Made of a configuration and, where one is handed in, a layer weighting."""
    head: "Callable[[Any], VocabularyHead]"
    """Made of a configuration; called with hidden states [..., D] and the word embedding, it gives logits [..., V]."""
    initialise_: "Callable[[LanguageModel, int], None]"
    """Sets every parameter in place, from a seed; the layer mixture sets its own."""


@dataclass(frozen=True)
class Exported:
    """How a family is called in a folder for `transformers`."""

    module: str
    """The modelling file, without its ending, and the module of `hatchery.export` that it is made from. There is none
    for an encoder with a head: `export/model_folder.py` writes it."""
    classes: str
    """What the names of its classes begin with."""
    title: str = ""
    """The models of the family."""
    base_size: str = ""
    """What the sizes are those of."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """A configuration that nothing is said of has these sizes."""
    further: tuple[str, ...] = (
        "ForSequenceClassification",
        "ForTokenClassification",
        "ForQuestionAnswering",
        "ForMultipleChoice",
    )
    """Classes with other heads that the weights can be loaded into."""
    bare: bool = True
    """Whether there is a class without a head."""

    @property
    def model_type(self) -> str:
        """What the library calls the family."""
        return f"hatchery_{self.module.removeprefix('modeling_')}"

    def auto_classes(self, language_models: Sequence[str]) -> dict[str, str]:
        """The library's auto classes, each with the end of the name of ours; `language_models` are those of a model."""
        bare = {"AutoModel": "Model"} if self.bare else {}
        heads = (*language_models, *self.further)
        return {"AutoConfig": "Config", **bare, **{f"AutoModel{head}": head for head in heads}}


@dataclass(frozen=True)
class Family:
    """All that tells one family of models from another; configurations are of the class `configuration`."""

    file: type[EncoderSizes]
    """What a file of config/models/ may say, as a class of settings."""
    configuration: type[ModelConfig]
    modules: Callable[[], Modules]
    """A call, so that torch is loaded only for it."""
    forward_flops: Callable[[Any, PassShape], dict[str, float]]
    """Operations of one forward pass of a configuration by part of the model (see `flops.encoder_flops`)."""
    paper_flops: Callable[[Any, int, Sequence[tuple[int, int]]], float]
    """What the family's paper would count for a whole training: of a configuration, its number of parameters, and how
    many sequences of which length are trained on."""
    paper_formula: str
    """The name of that formula."""
    exported: Exported
    token_ids: tuple[str, ...] = ()
    """Special tokens whose ids, as the tokenizer has them, stand in the configuration: "pad" is `pad_token_id`."""
