"""Models with one output per sequence: classification of a text or a pair of texts, regression, multiple choice.

A pair of texts is one input with separators, so a pair needs no separate head. The default head was published with
LTG-BERT's checkpoints (norm, linear, GELU, norm, dropout, linear, on the first token). ELC-BERT uses the same head for
GLUE. Other values of `pooling` and `transform` give the heads of other papers. A pooling computes one vector per
sequence. It requests from the encoder only the positions that it needs, because the encoder computes single positions
faster than all positions.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.targets import (
    IMPOSSIBLE_SCORE,
    Number,
    OneClass,
    RightChoice,
    Target,
    can_read_values,
    token_mask,
)
from hatchery.modeling.heads.task_model import (
    EncoderOptions,
    HeadContext,
    Initialisation,
    TaskModel,
    TransformName,
    initialise_as_pytorch_,
    score_head,
)
from hatchery.modeling.output_bias import set_output_bias_

PoolingName = Literal["first_token", "last_token", "mean", "position_linear"]


class FirstToken(nn.Module):
    """Pooling: the encoder's output at position 0, [CLS] (LTG-BERT, Appendix B.1; RoBERTa's stock classifier)."""

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return vectors [B, D] for `input_ids` int64 [B, T]; the mask is bool [B, T]. On the CPU, raises
        EvaluationError for padding at position 0.
        """
        if can_read_values(mask := token_mask(input_ids, attention_mask)) and not bool(mask[:, 0].all()):
            raise EvaluationError("input_ids: a sequence begins with padding, expected [CLS] at its first position")
        batch, length = input_ids.shape
        rows = torch.arange(batch, device=input_ids.device) * length
        return encoder.hidden_at(input_ids, attention_mask, rows)


class LastToken(nn.Module):
    """Pooling: the encoder's output at the last token that is not padding. This pooling is for causal models, because
    the first token of a causal model attends only to itself.
    """

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return vectors [B, D] for `input_ids` int64 [B, T]; the mask is bool [B, T].

        For a sequence without tokens, the vector is the encoder's output at position 0.
        """
        batch, length = input_ids.shape
        positions = torch.arange(length, device=input_ids.device)
        last = positions.where(token_mask(input_ids, attention_mask), 0).amax(dim=1)
        rows = torch.arange(batch, device=input_ids.device) * length + last
        return encoder.hidden_at(input_ids, attention_mask, rows)


class MeanOverTokens(nn.Module):
    """Pooling: the mean of the encoder's outputs over all tokens that are not padding, including special tokens."""

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return vectors [B, D] for `input_ids` int64 [B, T]; the mask is bool [B, T]."""
        states = encoder(input_ids, attention_mask)[-1]
        weights = token_mask(input_ids, attention_mask).to(states.dtype).unsqueeze(-1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)


class PositionLinear(nn.Module):
    """Pooling: the weighted sum of the encoder's outputs over all positions, with a learned weight per position, plus a
    learned bias.

    Source: the reduced-vocabulary study's own models (docs/papers/reduced-vocabulary.md, "Heads"). Every input is
    padded to `n_positions` with `pad_id`, so the result does not depend on the batch. As in the study's code, the
    encoder gets no mask, so tokens attend to padding. If `attend_padding` is False, tokens do not attend to padding,
    but the sum still includes padded positions.
    """

    def __init__(self, n_positions: int, pad_id: int, attend_padding: bool = True) -> None:
        super().__init__()
        if n_positions < 1:
            raise ModelError(f"n_positions: got {n_positions!r}, expected 1 or more")
        self.n_positions, self.pad_id, self.attend_padding = n_positions, pad_id, attend_padding
        self.position_weights = nn.Linear(n_positions, 1)

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return vectors [B, D] for `input_ids` int64 [B, T]; the mask is bool [B, T]. Raises EvaluationError if T >
        `n_positions`.
        """
        missing = self.n_positions - input_ids.shape[1]
        if missing < 0:
            length, most = input_ids.shape[1], self.n_positions
            raise EvaluationError(
                f"input_ids: got {length} positions, expected at most {most}, the number of positions with a weight "
                "in the head"
            )
        mask = F.pad(token_mask(input_ids, attention_mask), (0, missing))
        ids = F.pad(input_ids, (0, missing), value=self.pad_id).where(mask, self.pad_id)
        states = encoder(ids, None if self.attend_padding else mask)[-1]
        return self.position_weights(states.transpose(1, 2)).squeeze(-1)


POOLINGS: dict[PoolingName, type[nn.Module]] = {
    "first_token": FirstToken,
    "last_token": LastToken,
    "mean": MeanOverTokens,
    "position_linear": PositionLinear,
}


def make_pooling(name: PoolingName, n_positions: int, pad_id: int, attend_padding: bool) -> nn.Module:
    """Return a new pooling. All arguments except `name` are only used by "position_linear"."""
    if name == "position_linear":
        return PositionLinear(n_positions, pad_id, attend_padding)
    return POOLINGS[name]()


@dataclass(frozen=True)
class SequenceOptions(EncoderOptions):
    """Options of the head `sequence_classification`; base class of the options of regression and multiple choice."""

    transform: TransformName = "ltg_wrapper"
    pooling: PoolingName = "first_token"
    # Number of positions to which the pooling `position_linear` pads inputs; longer inputs are refused.
    n_positions: int = 128
    # True if tokens attend to the padding that the pooling `position_linear` adds, as in the code of the
    # reduced-vocabulary study.
    attend_padding: bool = True
    # With `reduced_vocabulary`, transform, pooling and loss follow the rules of the reduced-vocabulary study's script
    # (see `_as_loaded` in `registry`).
    loader: Literal["none", "reduced_vocabulary"] = "none"
    # Epsilon of the transform's layer norms; None: the encoder's epsilon.
    layer_norm_eps: float | None = None
    # Initialisation of the head. `ltg`: LTG-BERT's truncated normal distribution. `pytorch`: PyTorch's default, as in
    # BabyLM's pipelines since 2025.
    initialisation: Initialisation = "ltg"


@dataclass(frozen=True)
class RegressionOptions(SequenceOptions):
    """Options of the head `regression`."""

    # Initial output bias. For STS-B, LTG-BERT's code uses 2.5, the middle of the range of targets (0 to 5).
    initial_value: float = 0.0
    # True: the loss is the squared error of max(0, output), as in the reduced-vocabulary study.
    rectified_loss: bool = False


@dataclass(frozen=True)
class ChoiceOptions(SequenceOptions):
    """Options of the head `multiple_choice`."""

    # True: each choice has a binary cross-entropy, as in LTG-BERT's code for COPA. False: the choices share a softmax.
    independent_choices: bool = False


class SequenceClassifier(TaskModel):
    """Classification of sequences: pooling, transform, and one score per label.

    Raises ModelError for an invalid number of labels or dropout.
    """

    def __init__(
        self, encoder: Encoder, context: HeadContext, options: SequenceOptions, target: Target | None = None
    ) -> None:
        head = score_head(encoder, context.n_outputs, options.transform)
        super().__init__(encoder, head, target or OneClass(), context, options.encoder_mode)
        self.pooling = make_pooling(options.pooling, options.n_positions, context.pad_id, options.attend_padding)
        self.add_fresh(self.pooling, context.seed, "pooling.")
        if options.layer_norm_eps is not None:
            head.layer_norm_eps = options.layer_norm_eps
        if options.initialisation == "pytorch":
            initialise_as_pytorch_(head, context.seed)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return scores [B, n_labels] of `input_ids` int64 [B, T], which begin with [CLS]; the mask is bool [B, T]."""
        return self.head(self.pooling(self.encoder, input_ids, attention_mask))


class SequenceRegressor(SequenceClassifier):
    """Regression: predicts one number for each sequence. Scores [B, 1], labels and predictions float [B].

    Raises ModelError if the option `initial_value`, the initial bias of the output layer, is not finite.
    """

    def __init__(self, encoder: Encoder, context: HeadContext, options: RegressionOptions) -> None:
        super().__init__(encoder, context, options, Number(options.rectified_loss))
        set_output_bias_(self.output_layer, torch.tensor([options.initial_value]))


class MultipleChoice(SequenceClassifier):
    """Multiple choice: computes one score for each choice. Each choice is a separate input sequence; labels and
    predictions are indices of choices, int64 [B]."""

    def __init__(self, encoder: Encoder, context: HeadContext, options: ChoiceOptions) -> None:
        super().__init__(encoder, context, options, RightChoice(options.independent_choices))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return scores [B, C] of `input_ids` int64 [B, C, T]; `attention_mask` is bool [B, C, T].

        Questions with fewer than C choices are padded with choices that contain no tokens. The model does not compute
        these choices; their score is IMPOSSIBLE_SCORE. On the CPU, raises EvaluationError for a question without
        choices.
        """
        mask = token_mask(input_ids, attention_mask)
        exists = mask.any(dim=-1)
        if can_read_values(exists) and not bool(exists.any(dim=-1).all()):
            raise EvaluationError(
                "input_ids: a question has only choices without tokens, expected a choice with at least one token"
            )
        rows = exists.flatten().nonzero().squeeze(1)
        scores = super().forward(input_ids.flatten(0, 1)[rows], mask.flatten(0, 1)[rows]).squeeze(-1)
        laid_out = torch.full((exists.numel(),), IMPOSSIBLE_SCORE, dtype=scores.dtype, device=scores.device)
        return laid_out.index_copy(0, rows, scores).view_as(exists)
