"""Models with one decision per sequence: classification of a text or a pair, regression, and one choice of several.

A pair is one input with separators, so it needs no head of its own. The default is the head published with LTG-BERT's
checkpoints (norm, linear, GELU, norm, dropout, linear) on the first token, used for GLUE by ELC-BERT too; poolings and
transforms of the other papers are values.
"""

import torch
from torch import Tensor, nn

from hatchery.errors import EvaluationError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.pooling import FirstToken
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
from hatchery.modeling.heads.task_model import EncoderMode, TaskModel
from hatchery.modeling.output_bias import set_output_bias_


class SequenceClassifier(TaskModel):
    """Pooling, transform and `n_labels` scores per sequence.

    `dropout` is used in the head and, replacing its pretraining values, in the encoder, which is not copied. `seed`
    determines the fresh weights. Raises ModelError for an impossible number of labels or dropout.
    """

    def __init__(
        self,
        encoder: Encoder,
        n_labels: int,
        dropout: float,
        seed: int,
        *,
        pooling: nn.Module | None = None,
        transform: TransformName = "ltg_wrapper",
        target: Target | None = None,
        encoder_mode: EncoderMode = "trained",
    ) -> None:
        head = score_head(encoder, n_labels, transform)
        super().__init__(encoder, head, target or OneClass(), dropout, seed, encoder_mode)
        self.pooling = pooling or FirstToken()
        self.add_fresh(self.pooling, seed, "pooling.")

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores [B, n_labels] of `input_ids` int64 [B, T], whose first token is [CLS]; mask bool [B, T]."""
        return self.head(self.pooling(self.encoder, input_ids, attention_mask))


class SequenceRegressor(SequenceClassifier):
    """One number per sequence; scores [B, 1], labels and predictions float [B].

    `initial_value` is the output bias at the start: the mean of the targets, 2.5 for STS-B (LTG-BERT's code).
    Raises ModelError when it is not finite.
    """

    def __init__(
        self,
        encoder: Encoder,
        dropout: float,
        seed: int,
        *,
        initial_value: float = 0.0,
        rectified_loss: bool = False,
        pooling: nn.Module | None = None,
        transform: TransformName = "ltg_wrapper",
        encoder_mode: EncoderMode = "trained",
    ) -> None:
        super().__init__(
            encoder,
            1,
            dropout,
            seed,
            pooling=pooling,
            transform=transform,
            target=Number(rectified_loss),
            encoder_mode=encoder_mode,
        )
        set_output_bias_(self.output_layer, torch.tensor([initial_value]))


class MultipleChoice(SequenceClassifier):
    """One score per choice, each choice being a sequence of its own; labels and predictions are positions int64 [B].

    `independent_choices` trains with LTG-BERT's binary cross-entropy per choice instead of a softmax over choices.
    """

    def __init__(
        self,
        encoder: Encoder,
        dropout: float,
        seed: int,
        *,
        independent_choices: bool = False,
        pooling: nn.Module | None = None,
        transform: TransformName = "ltg_wrapper",
        encoder_mode: EncoderMode = "trained",
    ) -> None:
        super().__init__(
            encoder,
            1,
            dropout,
            seed,
            pooling=pooling,
            transform=transform,
            target=RightChoice(independent_choices),
            encoder_mode=encoder_mode,
        )

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
