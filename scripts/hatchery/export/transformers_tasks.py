"""The interface of `transformers` for models with a newly initialised head: classification of texts or tokens,
extractive question answering, and multiple choice.

Heads and their inputs are the same as in Hatchery's fine-tuning. The first token's vector represents a text. In a
causal model, the first token has no context, so the last token's vector represents the text.
"""

from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PretrainedConfig
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from hatchery.export.transformers_classes import (
    HatcheryConfig,
    HatcheryPreTrainedModel,
    answer,
    given_tokens,
    working_precision,
)
from hatchery.modeling.heads.task_model import ScoreHead
from hatchery.modeling.norm_and_dropout import full_precision, set_dropout


class HatcheryWithFreshHead(HatcheryPreTrainedModel):
    """Base class of models with a newly initialised head on a pretrained encoder."""

    base_class: ClassVar[Any] = None

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.num_labels = cast("int", config.num_labels)
        self.model = self.base_class(config)

    def fresh_head(self, n_outputs: int, transform: Any = None) -> ScoreHead:
        """Return a newly initialised head with `n_outputs` outputs.

        `transform` names the layers of the head before its output layer; None means the configuration's
        `classifier_transform`.
        """
        config = self.config
        transform = config.classifier_transform if transform is None else transform
        head = ScoreHead(config.hidden_size, n_outputs, config.layer_norm_eps, transform)
        dropout = config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
        set_dropout(head, dropout)
        return head

    def scores(self, head: ScoreHead, vectors: Tensor) -> Tensor:
        """Return the outputs of `head` for `vectors` [..., D], in fp32."""
        with working_precision(self):
            return full_precision(head(vectors))

    def vectors_of_texts(self, states: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return the vectors [B, D] that represent whole texts, selected from the token vectors `states` [B, T, D]: the
        vector of the first token or, in a causal model, of the last token. Padding may be on either side of the tokens.
        """
        causal, length = self.model.encoder.causal, states.shape[1]
        if attention_mask is None:
            return states[:, -1 if causal else 0]
        positions, is_token = torch.arange(length, device=states.device), attention_mask.bool()
        first, last = positions.where(is_token, length - 1).amin(dim=1), positions.where(is_token, 0).amax(dim=1)
        read = last if causal else first
        return states[torch.arange(len(states), device=states.device), read]


class HatcheryForSequenceClassification(HatcheryWithFreshHead):
    """Classification or regression of a text or a pair of texts; a text may have several labels."""

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.classifier = self.fresh_head(self.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> SequenceClassifierOutput | tuple[Any, ...]:
        """Return logits [B, num_labels]. If `labels` are given, also return the loss for the configuration's
        `problem_type`.

        `labels` are int64 [B] for a single label per text, float [B, num_labels] for several labels per text, and float
        [B] or [B, num_labels] for regression. If `problem_type` is not set, it is derived from the number and type of
        the labels.
        """
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states)
        logits = self.scores(self.classifier, self.vectors_of_texts(encoded.last, attention_mask))
        loss = None if labels is None else classification_loss(logits, labels, self.config)
        return answer(self, SequenceClassifierOutput, encoded, return_dict, loss=loss, logits=logits)


class HatcheryForTokenClassification(HatcheryWithFreshHead):
    """Classification of each token."""

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.classifier = self.fresh_head(self.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> TokenClassifierOutput | tuple[Any, ...]:
        """Return logits [B, T, num_labels] of each token's label. If `labels` int64 [B, T] are given (-100: ignored),
        also return the mean cross-entropy.
        """
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states)
        logits = self.scores(self.classifier, encoded.last)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return answer(self, TokenClassifierOutput, encoded, return_dict, loss=loss, logits=logits)


class HatcheryForQuestionAnswering(HatcheryWithFreshHead):
    """Extractive question answering: prediction of the first and the last token of an answer."""

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        # PEFT and other libraries recognise a newly initialised head by the name `qa_outputs`.
        self.qa_outputs = self.fresh_head(2, "none")
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> QuestionAnsweringModelOutput | tuple[Any, ...]:
        """Return logits [B, T] for the first token of the answer, and logits [B, T] for the last token. If the
        positions of these tokens, int64 [B] each, are given, also return the mean of both cross-entropies.

        Truncation can move a position beyond the end of the input. Such positions are ignored in the loss.
        """
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states)
        starts, ends = self.scores(self.qa_outputs, encoded.last).unbind(dim=-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            outside = tokens.shape[1]
            wanted = [positions.flatten().clamp(0, outside) for positions in (start_positions, end_positions)]
            losses = [F.cross_entropy(*pair, ignore_index=outside) for pair in zip((starts, ends), wanted, strict=True)]
            loss = (losses[0] + losses[1]) / 2
        made = {"loss": loss, "start_logits": starts, "end_logits": ends}
        return answer(self, QuestionAnsweringModelOutput, encoded, return_dict, **made)


class HatcheryForMultipleChoice(HatcheryWithFreshHead):
    """Multiple choice: selection of the correct text among several texts."""

    def __init__(self, config: HatcheryConfig) -> None:
        super().__init__(config)
        self.classifier = self.fresh_head(1)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> MultipleChoiceModelOutput | tuple[Any, ...]:
        """Return logits [B, C] for the C choices in `input_ids` int64 [B, C, T]. If `labels` int64 [B] are given, also
        return the mean cross-entropy.
        """
        given = input_ids if inputs_embeds is None else inputs_embeds
        n_choices = 1 if given is None else given.shape[1]
        input_ids, attention_mask, position_ids, inputs_embeds = (
            None if one is None else one.flatten(0, 1)
            for one in (input_ids, attention_mask, position_ids, inputs_embeds)
        )
        tokens = given_tokens(self, input_ids, inputs_embeds, attention_mask, position_ids)
        encoded = self.model.encoded(tokens, attention_mask, output_attentions, output_hidden_states)
        scores = self.scores(self.classifier, self.vectors_of_texts(encoded.last, attention_mask))
        logits = scores.view(-1, n_choices)
        loss = None if labels is None else F.cross_entropy(logits, labels.flatten())
        return answer(self, MultipleChoiceModelOutput, encoded, return_dict, loss=loss, logits=logits)


def classification_loss(logits: Tensor, labels: Tensor, config: PretrainedConfig) -> Tensor:
    """Return the mean loss of `logits` [texts, num_labels] for the configuration's `problem_type`. If `problem_type` is
    not set, this call sets it, by the number of labels and the type of `labels`.
    """
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
