"""The interface of `transformers` for a causal language model, with `generate`."""

from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationMixin
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast

from hatchery.export.transformers_classes import (
    CACHE_FIELD,
    HatcheryConfig,
    HatcheryPreTrainedModel,
    answer,
    given_tokens,
    working_precision,
)
from hatchery.modeling.norm_and_dropout import full_precision


class HatcheryForCausalLM(HatcheryPreTrainedModel, GenerationMixin):
    """A causal language model: the encoder, and the head that predicts the next subword at each position."""

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
        logits_to_keep: int | Tensor = 0,
        cache: Cache | None = None,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """Return logits [B, T, V] of the next subword at each position.

        If `labels` int64 [B, T] are given (usually equal to `input_ids`; -100: ignored), also return the mean
        cross-entropy of the labels given the previous tokens.

        `past_key_values` contains cached tokens; since version 5.24 of `transformers`, this argument is named `cache`.
        With a cache, `input_ids` are the tokens that follow the cached tokens, and are appended to the cache;
        `attention_mask` [B, S] covers cached and new tokens. If `use_cache` is true and there is no cache, a new cache
        is returned. `logits_to_keep` is the number of last positions whose logits are returned (0: all), or the indices
        of these positions, int64 [K].

        Raises ValueError if the mask does not cover the cache, or if labels and logits have different numbers of
        positions.
        """
        cache = past_key_values if cache is None else cache
        if cache is None and use_cache:
            cache = DynamicCache()
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states, cache)
        states = encoded.last
        if not isinstance(logits_to_keep, int):
            states = states[:, logits_to_keep]
        elif logits_to_keep:
            states = states[:, -logits_to_keep:]
        with working_precision(self):
            logits = full_precision(self.head(states, self.get_input_embeddings().weight))
        loss = None
        if labels is not None:
            if logits.shape[1] != labels.shape[1]:
                raise ValueError(
                    f"labels: got {labels.shape[1]} for each sequence and {logits.shape[1]} positions with logits; "
                    "expected equal numbers: omit logits_to_keep, or only pass labels of the new tokens"
                )
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        made = {"loss": loss, "logits": logits, CACHE_FIELD: cache}
        return answer(self, CausalLMOutputWithPast, encoded, return_dict, **made)

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        next_sequence_length: int | None = None,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        *_: Any,
        logits_to_keep: int | Tensor = 0,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the arguments with which `generate` calls the model: the tokens that are not yet cached, and the
        attention mask of all tokens.
        """
        kept = options.get("cache") if past_key_values is None else past_key_values
        known = {CACHE_FIELD: kept, "use_cache": kept is not None}
        before = 0 if kept is None else int(kept.get_seq_length())
        known |= {name: options[name] for name in ("output_attentions", "output_hidden_states") if name in options}
        return {
            "input_ids": input_ids[:, before:],
            "attention_mask": attention_mask,
            "logits_to_keep": logits_to_keep,
            **known,
        }
