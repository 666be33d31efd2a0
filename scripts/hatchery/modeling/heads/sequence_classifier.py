"""Models with one decision per sequence: classification of a text or a pair, regression, and one choice of several.

A pair is one input with separators, so it needs no head of its own. The default is the head published with LTG-BERT's
checkpoints (norm, linear, GELU, norm, dropout, linear) on the first token, used for GLUE by ELC-BERT too; poolings and
transforms of the other papers are values.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hatchery.errors import EvaluationError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.pooling import PoolingName, make_pooling
from hatchery.modeling.heads.score_head import TransformName, score_head
from hatchery.modeling.heads.targets import (
    IMPOSSIBLE_SCORE,
    Number,
    OneClass,
    RightChoice,
    Target,
    can_look,
    token_mask,
)
from hatchery.modeling.heads.task_model import EncoderOptions, HeadContext, TaskModel
from hatchery.modeling.output_bias import set_output_bias_


@dataclass(frozen=True)
class SequenceOptions(EncoderOptions):
    """Options of the heads with one vector per sequence."""

    transform: TransformName = "ltg_wrapper"
    pooling: PoolingName = "first_token"
    # Inputs are padded to this length, and cannot be longer; for position_linear alone.
    n_positions: int = 128
    # Whether tokens attend to that padding, as published; for position_linear alone.
    attend_padding: bool = True
    # The reduced-vocabulary study's script decides transform, pooling and loss by the model (`registry`).
    loader: Literal["none", "reduced_vocabulary"] = "none"


@dataclass(frozen=True)
class RegressionOptions(SequenceOptions):
    """Options of `regression`."""

    # The output bias at the start: the mean of the targets, 2.5 for STS-B in LTG-BERT's code.
    initial_value: float = 0.0
    # The reduced-vocabulary study's squared error on max(0, output).
    rectified_loss: bool = False


@dataclass(frozen=True)
class ChoiceOptions(SequenceOptions):
    """Options of `multiple_choice`."""

    # LTG-BERT's binary cross-entropy per choice (COPA) instead of a softmax over the choices.
    independent_choices: bool = False


class SequenceClassifier(TaskModel):
    """Pooling, transform and one score per label and sequence.

    Raises ModelError for an impossible number of labels or dropout.
    """

    def __init__(
        self, encoder: Encoder, context: HeadContext, options: SequenceOptions, target: Target | None = None
    ) -> None:
        head = score_head(encoder, context.n_outputs, options.transform)
        super().__init__(encoder, head, target or OneClass(), context, options.encoder_mode)
        self.pooling = make_pooling(options.pooling, options.n_positions, context.pad_id, options.attend_padding)
        self.add_fresh(self.pooling, context.seed, "pooling.")

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores [B, n_labels] of `input_ids` int64 [B, T], whose first token is [CLS]; mask bool [B, T]."""
        return self.head(self.pooling(self.encoder, input_ids, attention_mask))


class SequenceRegressor(SequenceClassifier):
    """One number per sequence; scores [B, 1], labels and predictions float [B].

    Raises ModelError when the initial value is not finite.
    """

    def __init__(self, encoder: Encoder, context: HeadContext, options: RegressionOptions) -> None:
        super().__init__(encoder, context, options, Number(options.rectified_loss))
        set_output_bias_(self.output_layer, torch.tensor([options.initial_value]))


class MultipleChoice(SequenceClassifier):
    """One score per choice, each choice being a sequence of its own; labels and predictions are positions int64 [B]."""

    def __init__(self, encoder: Encoder, context: HeadContext, options: ChoiceOptions) -> None:
        super().__init__(encoder, context, options, RightChoice(options.independent_choices))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores [B, C] of `input_ids` int64 [B, C, T]; mask bool [B, C, T].

        A choice without any token does not exist (questions may have different numbers): it is not computed, and its
        score is IMPOSSIBLE_SCORE. Raises EvaluationError for a question without choices.
        """
        mask = token_mask(input_ids, attention_mask)
        exists = mask.any(dim=-1)
        if can_look(exists) and not bool(exists.any(dim=-1).all()):
            raise EvaluationError("input_ids: a question has no choice with a token in it")
        rows = exists.flatten().nonzero().squeeze(1)
        scores = super().forward(input_ids.flatten(0, 1)[rows], mask.flatten(0, 1)[rows]).squeeze(-1)
        laid_out = torch.full((exists.numel(),), IMPOSSIBLE_SCORE, dtype=scores.dtype, device=scores.device)
        return laid_out.index_copy(0, rows, scores).view_as(exists)
