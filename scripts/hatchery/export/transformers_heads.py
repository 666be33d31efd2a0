"""What `transformers` expects of a causal language model, which has `generate`, and of a classifier of whole texts."""

from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationMixin, PretrainedConfig
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast, SequenceClassifierOutput

from hatchery.export.transformers_classes import HatcheryConfig, HatcheryPreTrainedModel, chosen, working_precision
from hatchery.modeling.heads.task_model import ScoreHead
from hatchery.modeling.norm_and_dropout import full_precision, set_dropout


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
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
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
        states = self.model.hidden_states(input_ids, attention_mask, output_attentions, cache)
        with working_precision(self):
            logits = full_precision(self.head(states[-1], self.get_input_embeddings().weight))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        kept = states if chosen(self, "output_hidden_states", output_hidden_states) else None
        output = CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=cache, hidden_states=kept)
        return output if chosen(self, "return_dict", return_dict) else output.to_tuple()

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


class HatcheryForSequenceClassification(HatcheryPreTrainedModel):
    """The encoder with a classification head on the first token, as fine-tuning here uses it.

    A causal model, whose first token has seen nothing, has it on the last token that is not padding.
    """

    base_class: ClassVar[Any] = None

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.num_labels = cast("int", config.num_labels)
        self.model = self.base_class(config)
        self.classifier = ScoreHead(
            config.hidden_size, self.num_labels, config.layer_norm_eps, config.classifier_transform
        )
        dropout = config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
        set_dropout(self.classifier, dropout)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> SequenceClassifierOutput | tuple[Any, ...]:
        """Logits [B, num_labels] and, with `labels`, the loss of the configuration's `problem_type`.

        `labels` are int64 [B] for one label out of several, float [B, num_labels] for several at once, float [B] or
        [B, num_labels] for regression. Without a problem type it is taken from the number and type of the labels.
        """
        states = self.model.hidden_states(input_ids, attention_mask, output_attentions)
        with working_precision(self):
            logits = full_precision(self.classifier(self._read(states[-1], attention_mask)))
        loss = None if labels is None else classification_loss(logits, labels, self.config)
        kept = states if chosen(self, "output_hidden_states", output_hidden_states) else None
        output = SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=kept)
        return output if chosen(self, "return_dict", return_dict) else output.to_tuple()

    def _read(self, states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The vectors [B, D] of `states` [B, T, D] that the head reads."""
        if not self.model.encoder.causal:
            return states[:, 0]
        if attention_mask is None:
            return states[:, -1]
        last = torch.arange(states.shape[1], device=states.device).where(attention_mask.bool(), 0).amax(dim=1)
        return states[torch.arange(len(states), device=states.device), last]


def classification_loss(logits: Tensor, labels: Tensor, config: PretrainedConfig) -> Tensor:
    """The mean loss of `logits` [B, K] by problem type, which is settled at the first call and then kept."""
    if config.problem_type is None:
        if config.num_labels == 1:
            config.problem_type = "regression"
        elif labels.is_floating_point():
            config.problem_type = "multi_label_classification"
        else:
            config.problem_type = "single_label_classification"
    if config.problem_type == "regression":
        return F.mse_loss(logits.view(labels.shape), labels.to(logits.dtype))
    if config.problem_type == "multi_label_classification":
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
    return F.cross_entropy(logits, labels.flatten())
