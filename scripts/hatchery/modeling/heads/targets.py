"""Targets of heads (classes, independent labels, numbers, choices): losses and predictions.

A loss is a sum over labelled units (such as sequences or tokens), returned together with the number of units, so that
batches of different sizes can be accumulated exactly. Training minimises the mean. Scores are in full precision.

Models and losses check their inputs with the functions `token_mask`, `check_class_labels` and `check_spans`. Labels and
spans are only read on the CPU: on a GPU, reading would synchronise with the device, and under torch.compile, it would
break the graph. There, only shapes are checked.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.output_bias import Link
from hatchery.tokenization.special_tokens import UNLABELLED


class SummedLoss(NamedTuple):
    """A loss summed over labelled units (such as sequences or tokens): cross-entropies in nats, or squared errors."""

    loss_sum: Tensor
    """Sum of the losses: a scalar, differentiable."""
    n_labelled: Tensor
    """Number of labelled units: a scalar int64. The target defines the unit."""

    @property
    def mean(self) -> Tensor:
        """Return the mean loss, `loss_sum / n_labelled`; 0 if there are no labels."""
        return self.loss_sum / self.n_labelled.clamp(min=1)


class Target(Protocol):
    """Interface of prediction targets: functions that compute the loss of scores for given labels, and functions that
    compute the labels that scores predict.
    """

    link: ClassVar[Link | None]
    """Link function that converts a prior over the labels to an output bias (`output_bias.marginal_bias`), if there is
    one."""

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the loss. Raises EvaluationError for labels that do not fit the scores; values are only checked on the
        CPU.
        """

    def predictions(self, scores: Tensor) -> Tensor:
        """Return the labels that the scores predict."""


@dataclass(frozen=True)
class OneClass:
    """One of K classes for each unit (such as a sequence or a token), by softmax and cross-entropy.

    Scores are [..., K], labels int64 [...]; units with the label UNLABELLED are ignored.
    """

    link: ClassVar[Link | None] = "softmax"

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the cross-entropy, summed over all labels except UNLABELLED."""
        check_class_labels(scores, labels)
        flat = scores.flatten(0, -2)
        total = F.cross_entropy(flat, labels.flatten(), ignore_index=UNLABELLED, reduction="sum")
        return SummedLoss(total, (labels != UNLABELLED).sum())

    def predictions(self, scores: Tensor) -> Tensor:
        """Return class ids int64 [...]."""
        return scores.argmax(dim=-1)


@dataclass(frozen=True)
class IndependentLabels:
    """K independent binary labels for each unit (such as a span), each with a sigmoid and a binary cross-entropy (edge
    probing, Tenney et al. 2019).

    Scores are [..., K], labels [..., K] of any dtype: 0, 1 or UNLABELLED (ignored).
    """

    link: ClassVar[Link | None] = "multi_label"

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the binary cross-entropy, summed over all labels except UNLABELLED."""
        return _binary_loss(scores, labels)

    def predictions(self, scores: Tensor) -> Tensor:
        """Return bool [..., K]: True where the probability is at least 0.5."""
        return scores >= 0


@dataclass(frozen=True)
class Number:
    """A target of one number for each unit (such as a pair of texts); the loss is the squared error. Scores have the
    shape [..., 1], and labels are float [...].

    If `rectified_loss` is true, the loss compares max(0, score) with the label, so negative scores get no gradient;
    predictions are the unchanged scores. The published code of the reduced-vocabulary study trains STS-B in this way
    (docs/papers/reduced-vocabulary.md, "Heads").
    """

    link: ClassVar[Link | None] = "regression"

    rectified_loss: bool = False

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the squared error, summed over all labels."""
        values = self.predictions(scores)
        if labels.shape != values.shape:
            raise EvaluationError(
                f"labels: got shape {tuple(labels.shape)}, expected {tuple(values.shape)}, one number per prediction"
            )
        if can_read_values(labels) and not bool(torch.isfinite(labels).all()):
            raise EvaluationError("labels: a value is not finite, expected numbers")
        values = values.relu() if self.rectified_loss else values
        return SummedLoss(
            F.mse_loss(values, labels.to(values), reduction="sum"), labels.new_tensor(labels.numel(), dtype=torch.int64)
        )

    def predictions(self, scores: Tensor) -> Tensor:
        """Return the unchanged scores, float [...]."""
        return scores.squeeze(-1)


@dataclass(frozen=True)
class RightChoice:
    """The index of the correct choice, for B questions with up to C choices. Scores have the shape [B, C], with
    IMPOSSIBLE_SCORE at missing choices, and labels are int64 [B].

    By default, the choices of a question share a softmax. If `independent` is true, each choice is trained with a
    binary cross-entropy whose target is 1 for the correct choice, as in LTG-BERT's code for COPA
    (docs/papers/ltg-bert.md, "Fine-tuning").
    """

    # No prior sets the initial output bias of this target: the bias is equal for all choices of a question, so it
    # cannot change the prediction.
    link: ClassVar[Link | None] = None

    independent: bool = False

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the cross-entropy, summed over the labelled questions, or over their choices if choices are
        independent.
        """
        if not self.independent:
            return OneClass().loss(scores, labels)
        check_class_labels(scores, labels)
        is_right = torch.arange(scores.shape[-1], device=scores.device) == labels.unsqueeze(-1)
        counts = (labels != UNLABELLED).unsqueeze(-1) & (scores > IMPOSSIBLE_SCORE)
        return _binary_loss(scores, torch.where(counts, is_right.long(), UNLABELLED))

    def predictions(self, scores: Tensor) -> Tensor:
        """Return the index of the highest score, int64 [B]."""
        return scores.argmax(dim=-1)


def _binary_loss(scores: Tensor, labels: Tensor) -> SummedLoss:
    if labels.shape != scores.shape:
        raise EvaluationError(
            f"labels: got shape {tuple(labels.shape)}, expected {tuple(scores.shape)}, one label per score"
        )
    # Convert the labels first, because the type bool or uint8 cannot represent UNLABELLED, which is negative.
    labels = labels.to(scores.dtype)
    labelled = labels != UNLABELLED
    if can_read_values(labels) and bool((labelled & (labels != 0) & (labels != 1)).any()):
        raise EvaluationError(f"labels: expected 0 or 1 for each label, or {UNLABELLED} for a missing label")
    losses = F.binary_cross_entropy_with_logits(scores, labels, reduction="none")
    return SummedLoss(losses.where(labelled, 0.0).sum(), labelled.sum())


# Score of missing choices and positions: finite, to avoid NaN, but so low that the softmax probability is exactly 0.
IMPOSSIBLE_SCORE = -1e9


def can_read_values(*tensors: Tensor) -> bool:
    """Return whether reading the values of all `tensors` needs no synchronisation with a device."""
    return not torch.compiler.is_compiling() and all(tensor.device.type == "cpu" for tensor in tensors)


def token_mask(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Return `attention_mask` as bool, shaped like `input_ids`, True at tokens. None means that all positions are
    tokens.

    Raises ModelError for a mask of another shape, such as the mask of packed texts, which heads do not support.
    """
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    if attention_mask.shape != input_ids.shape:
        shape, expected = tuple(attention_mask.shape), tuple(input_ids.shape)
        raise ModelError(f"attention_mask: got shape {shape}, expected {expected}, one value per token")
    return attention_mask.bool()


def check_class_labels(scores: Tensor, labels: Tensor) -> None:
    """Raise EvaluationError unless every label int64 [...] is UNLABELLED or a possible class of `scores` [..., K]; on a
    GPU, only the shape is checked.
    """
    if labels.shape != scores.shape[:-1]:
        shape, expected = tuple(labels.shape), tuple(scores.shape[:-1])
        raise EvaluationError(f"labels: got shape {shape}, expected {expected}, one class per example")
    if not can_read_values(scores, labels):
        return
    n_classes = scores.shape[-1]
    outside = (labels != UNLABELLED) & ((labels < 0) | (labels >= n_classes))
    if bool(outside.any()):
        wrong = int(labels[outside][0])
        raise EvaluationError(
            f"labels: got {wrong}, expected 0 to {n_classes - 1}, or {UNLABELLED} for a missing label"
        )
    given = labels != UNLABELLED
    chosen = scores[given].gather(-1, labels[given].unsqueeze(-1))
    if bool((chosen <= IMPOSSIBLE_SCORE).any()):
        raise EvaluationError("labels: a label is the index of a missing choice or of a position outside the input")


def check_spans(spans: Tensor, sentences: Tensor, mask: Tensor) -> None:
    """Raise EvaluationError if a span is empty or contains a position that is not a token; on a GPU, only shapes are
    checked.

    `spans` int64 [N, S, 2] are the positions [start, end) of S spans for each of N targets. `sentences` int64 [N] are
    the indices of the targets' sequences in a batch. `mask` bool [B, T] is True at the tokens of this batch.
    """
    if spans.ndim != 3 or spans.shape[-1] != 2 or sentences.shape != spans.shape[:1]:
        shapes = f"{tuple(spans.shape)} and {tuple(sentences.shape)}"
        raise EvaluationError(
            f"spans, sentences: got shapes {shapes}, expected [targets, spans per target, 2] and [targets]"
        )
    if not can_read_values(spans, sentences, mask) or len(spans) == 0:
        return
    if bool(((sentences < 0) | (sentences >= len(mask))).any()):
        raise EvaluationError(f"spans: a sentence index is outside the batch of {len(mask)} sentences")
    # tokens_before[b, t] is the number of tokens before position t, so a span contains tokens_before[end] -
    # tokens_before[start] tokens.
    tokens_before = torch.nn.functional.pad(mask.long().cumsum(1), (1, 0))
    start, end = spans[..., 0], spans[..., 1]
    for condition, complaint in (
        (end <= start, "is empty"),
        ((start < 0) | (end > mask.shape[1]), "leaves the sequence"),
    ):
        _refuse(condition, spans, complaint)
    rows = tokens_before[sentences]
    _refuse(rows.gather(1, end) - rows.gather(1, start) != end - start, spans, "covers padding")


def _refuse(condition: Tensor, spans: Tensor, complaint: str) -> None:
    if bool(condition.any()):
        start, end = spans[condition][0].tolist()
        raise EvaluationError(
            f"spans: [{start}, {end}) {complaint}; expected 0 <= start < end within the tokens of the sentence"
        )
