"""LTG-BERT and ELC-BERT for `transformers`: configuration, encoder, language models, sequence classifier.

Load them with `trust_remote_code=True` through AutoModel, AutoModelForMaskedLM (causal ones AutoModelForCausalLM) or
AutoModelForSequenceClassification.
"""

from typing import Any, ClassVar

from hatchery.export.transformers_causal import HatcheryForCausalLM
from hatchery.export.transformers_classes import HatcheryConfig, HatcheryForMaskedLM, HatcheryModel
from hatchery.export.transformers_classification import HatcheryForSequenceClassification
from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.modeling.ltg.encoder import LtgEncoder
from hatchery.modeling.ltg.head import LtgHead


class HatcheryLtgBertConfig(HatcheryConfig):
    """Configuration; the defaults are LTG-BERT's base size."""

    model_type = "hatchery_ltg_bert"
    architecture_class = LtgBertConfig

    def __init__(self, **values: Any) -> None:
        sizes = {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12}
        super().__init__(**{"vocab_size": 16384, **sizes, **values})


class HatcheryLtgBertModel(HatcheryModel):
    """The encoder: `last_hidden_state` and `hidden_states`."""

    config_class = HatcheryLtgBertConfig
    encoder_class: ClassVar[Any] = LtgEncoder


class HatcheryLtgBertForMaskedLM(HatcheryForMaskedLM):
    """The masked language model."""

    config_class = HatcheryLtgBertConfig
    base_class: ClassVar[Any] = HatcheryLtgBertModel
    head_class: ClassVar[Any] = LtgHead


class HatcheryLtgBertForCausalLM(HatcheryForCausalLM):
    """The causal language model."""

    config_class = HatcheryLtgBertConfig
    base_class: ClassVar[Any] = HatcheryLtgBertModel
    head_class: ClassVar[Any] = LtgHead


class HatcheryLtgBertForSequenceClassification(HatcheryForSequenceClassification):
    """The encoder with a classification head."""

    config_class = HatcheryLtgBertConfig
    base_class: ClassVar[Any] = HatcheryLtgBertModel
