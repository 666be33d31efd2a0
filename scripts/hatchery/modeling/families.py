"""The families of models: which configuration, encoder, head and initial weights belong together.

A family is told by the key `family` of a configuration: "ltg" (LTG-BERT with its ablations, ELC-BERT) or "roberta"
(the models of the reduced-vocabulary study). Everything above this module works with either.
"""

from torch import nn

from hatchery.modeling.encoder import Encoder
from hatchery.modeling.family_configuration import CONFIGURATIONS, ModelConfig, model_config
from hatchery.modeling.language_model_head import MaskedLanguageModelHead
from hatchery.modeling.layer_weighting import LayerWeighting
from hatchery.modeling.layered_encoder import LayeredEncoder
from hatchery.modeling.roberta_configuration import RobertaConfig
from hatchery.modeling.roberta_encoder import RobertaEncoder
from hatchery.modeling.roberta_head import RobertaHead

__all__ = ["CONFIGURATIONS", "ModelConfig", "build_encoder", "build_head", "model_config", "position_limit"]


def build_encoder(config: ModelConfig, weighting: LayerWeighting | None = None) -> LayeredEncoder:
    """The encoder that `config` describes; `weighting` replaces the layer weighting that it names."""
    if isinstance(config, RobertaConfig):
        return RobertaEncoder(config, weighting)
    return Encoder(config, weighting)


def build_head(config: ModelConfig) -> nn.Module:
    """The language-model head; called with hidden states [..., D] and the word embedding, it gives logits [..., V]."""
    return RobertaHead(config) if isinstance(config, RobertaConfig) else MaskedLanguageModelHead(config)


def position_limit(config: ModelConfig) -> int | None:
    """Most tokens of an input, special ones included; None where there is no limit (relative positions)."""
    relative = getattr(config, "position_embedding", "absolute") == "relative"
    return None if relative else config.max_position_embeddings
