"""The RoBERTa-like models of the reduced-vocabulary study for `transformers`: configuration, encoder, heads.

Load them with `trust_remote_code=True` through AutoModel, AutoModelForMaskedLM (causal ones AutoModelForCausalLM) or
AutoModelForSequenceClassification.
"""

from typing import Any, ClassVar

from hatchery.export.transformers_causal import HatcheryForCausalLM
from hatchery.export.transformers_classes import HatcheryConfig, HatcheryForMaskedLM, HatcheryModel
from hatchery.export.transformers_classification import HatcheryForSequenceClassification
from hatchery.modeling.roberta.configuration import RobertaConfig
from hatchery.modeling.roberta.encoder import RobertaEncoder
from hatchery.modeling.roberta.head import RobertaHead


class HatcheryRobertaConfig(HatcheryConfig):
    """Configuration; the defaults are those of roberta-base."""

    model_type = "hatchery_roberta"
    architecture_class = RobertaConfig

    def __init__(self, **values: Any) -> None:
        sizes = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
        super().__init__(**{"vocab_size": 50265, **sizes, **values})


class HatcheryRobertaModel(HatcheryModel):
    """The encoder: `last_hidden_state` and `hidden_states`."""

    config_class = HatcheryRobertaConfig
    encoder_class: ClassVar[Any] = RobertaEncoder


class HatcheryRobertaForMaskedLM(HatcheryForMaskedLM):
    """The masked language model."""

    config_class = HatcheryRobertaConfig
    base_class: ClassVar[Any] = HatcheryRobertaModel
    head_class: ClassVar[Any] = RobertaHead


class HatcheryRobertaForCausalLM(HatcheryForCausalLM):
    """The causal language model."""

    config_class = HatcheryRobertaConfig
    base_class: ClassVar[Any] = HatcheryRobertaModel
    head_class: ClassVar[Any] = RobertaHead


class HatcheryRobertaForSequenceClassification(HatcheryForSequenceClassification):
    """The encoder with a classification head."""

    config_class = HatcheryRobertaConfig
    base_class: ClassVar[Any] = HatcheryRobertaModel
