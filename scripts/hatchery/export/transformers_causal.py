"""What `transformers` expects of a causal language model, which has `generate`."""

from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationMixin
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast

from hatchery.export.transformers_classes import (
    HatcheryConfig,
    HatcheryPreTrainedModel,
    answer,
    given_tokens,
    working_precision,
)
from hatchery.modeling.norm_and_dropout import full_precision


class HatcheryForCausalLM(HatcheryPreTrainedModel, GenerationMixin):
    """The encoder of a causal model with the head that predicts the next subword, at every position."""

    base_class: ClassVar[Any] = None

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.model = self.base_class(config)
        self.model.encoder.causal = True
        self.head = self.head_class(config.architecture())
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool = False,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """Logits [B, T, V] of the next subword at every position.

        With `labels` int64 [B, T], mostly `input_ids` themselves (-100: nothing to predict), the mean cross-entropy of
        each given those before it. With `past_key_values`, `input_ids` are still the whole text, since positions may
        depend on it; logits are those of the tokens behind what is kept there, to which
        they are added; `use_cache` begins to keep. Raises ValueError where there are none behind.
        """
        cache = past_key_values
        if cache is None and use_cache:
            cache = DynamicCache()
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states, cache)
        with working_precision(self):
            logits = full_precision(self.head(encoded.last, self.get_input_embeddings().weight))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        made = {"loss": loss, "logits": logits, "past_key_values": cache}
        return answer(self, CausalLMOutputWithPast, encoded, return_dict, **made)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        *_: Any,
        **__: Any,
    ) -> dict[str, Any]:
        """What `generate` calls the model with for the next token: all so far, and what is known of them."""
        known = {"past_key_values": past_key_values, "use_cache": past_key_values is not None}
        return {"input_ids": input_ids, "attention_mask": attention_mask, **known}
