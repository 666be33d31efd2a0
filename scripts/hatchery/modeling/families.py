"""The families of models: which configuration, encoder, head and initial weights belong together.

A family is told by the key `family` of a configuration: "ltg" (LTG-BERT with its ablations, ELC-BERT) or "roberta"
(the models of the reduced-vocabulary study). Everything above this module works with either.
"""

from collections.abc import Mapping
from typing import Any

from torch import nn

from hatchery.errors import ModelError
from hatchery.modeling.configuration import LtgBertConfig
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.language_model_head import MaskedLanguageModelHead
from hatchery.modeling.layer_weighting import LayerWeighting
from hatchery.modeling.layered_encoder import LayeredEncoder
from hatchery.modeling.roberta_configuration import RobertaConfig
from hatchery.modeling.roberta_encoder import RobertaEncoder
from hatchery.modeling.roberta_head import RobertaHead

ModelConfig = LtgBertConfig | RobertaConfig

CONFIGURATIONS: dict[str, type[LtgBertConfig] | type[RobertaConfig]] = {"ltg": LtgBertConfig, "roberta": RobertaConfig}


def model_config(values: Mapping[str, Any], where: str = "model") -> ModelConfig:
    """The configuration in `values`, of the family that their key `family` names ("ltg" where it is missing).

    Raises ConfigError for an unknown key, a missing key or a wrong type, and ModelError for an impossible value or an
    unknown family; `where` is the place that the message names.
    """
    family = values.get("family", "ltg")
    if family not in CONFIGURATIONS:
        raise ModelError(f"{where}.family: got {family!r}, allowed are: {', '.join(CONFIGURATIONS)}")
    return CONFIGURATIONS[family].from_dict(values, where)


def build_encoder(config: ModelConfig, weighting: LayerWeighting | None = None) -> LayeredEncoder:
    """The encoder that `config` describes; `weighting` replaces the layer weighting that it names."""
    if isinstance(config, RobertaConfig):
        return RobertaEncoder(config, weighting)
    return Encoder(config, weighting)


def build_head(config: ModelConfig) -> nn.Module:
    """The language-model head; called with hidden states [..., D] and the word embedding, it gives logits [..., V]."""
    return RobertaHead(config) if isinstance(config, RobertaConfig) else MaskedLanguageModelHead(config)
