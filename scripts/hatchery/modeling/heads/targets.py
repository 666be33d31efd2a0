"""Targets of scores (classes, independent labels, numbers, choices), with their losses and predictions.

All targets share a convention: a loss is the sum over labelled units together with their number, so that batches of any
size can be accumulated exactly; training minimises `mean`. Scores come from a head in full precision.

The checks refuse masks of another shape, labels outside of the classes, and spans without tokens. Reading values is
free on the CPU; on a GPU it would synchronise with the device, and under torch.compile it would break the graph. So
heads check only tensors on the CPU, and data loaders can call the same checks before they move tensors to the device.
Every message is one line.
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
    """A loss in nats (or squared units of the labels) over some labelled units."""

    loss_sum: Tensor
    """Scalar, differentiable."""
    n_labelled: Tensor
    """Scalar int64: the number of summed units; the target defines the unit."""

    @property
    def mean(self) -> Tensor:
        """Return `loss_sum / n_labelled`, or 0 without labels."""
        return self.loss_sum / self.n_labelled.clamp(min=1)


class Target(Protocol):
    """Computes the loss of a head's scores for given labels, and predictions in the form of the labels."""

    link: ClassVar[Link | None]
    """Link function from a prior over the labels to an output bias (`output_bias.marginal_bias`); None without one."""

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the loss. Raises EvaluationError for labels that do not fit the scores (values only on the CPU)."""

    def predictions(self, scores: Tensor) -> Tensor:
        """Return the labels that the scores predict."""


@dataclass(frozen=True)
class OneClass:
    """One of K classes per unit: softmax and cross-entropy. Scores [..., K], labels int64 [...], UNLABELLED ignored."""

    link: ClassVar[Link | None] = "softmax"

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the sum over the labelled units."""
        check_class_labels(scores, labels)
        flat = scores.flatten(0, -2)
        total = F.cross_entropy(flat, labels.flatten(), ignore_index=UNLABELLED, reduction="sum")
        return SummedLoss(total, (labels != UNLABELLED).sum())

    def predictions(self, scores: Tensor) -> Tensor:
        """Return class ids int64 [...]."""
        return scores.argmax(dim=-1)


@dataclass(frozen=True)
class IndependentLabels:
    """Any of K labels per unit: a sigmoid and a binary cross-entropy each, as in edge probing (Tenney et al. 2019).

    Scores [..., K], labels [..., K] of 0, 1 and UNLABELLED (ignored), of any dtype.
    """

    link: ClassVar[Link | None] = "multi_label"

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the sum over the labelled binary decisions."""
        return _binary_loss(scores, labels)

    def predictions(self, scores: Tensor) -> Tensor:
        """Return bool [..., K]: whether the probability is at least one half."""
        return scores >= 0


@dataclass(frozen=True)
class Number:
    """A number per unit: squared error. Scores [..., 1], labels float [...].

    `rectified_loss` compares max(0, score) with the label, but only in the loss, as the published code of the
    reduced-vocabulary study does for STS-B (docs/papers/reduced-vocabulary.md, "Heads"): a negative score gets no
    gradient.
    """

    link: ClassVar[Link | None] = "regression"

    rectified_loss: bool = False

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the sum over the units."""
        values = self.predictions(scores)
        if labels.shape != values.shape:
            raise EvaluationError(f"labels: got shape {tuple(labels.shape)}, expected {tuple(values.shape)}")
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
    """The correct choice among several. Scores [B, C] with IMPOSSIBLE_SCORE at missing choices, labels int64 [B].

    `independent` trains every choice separately with a binary cross-entropy, target 1 for the correct choice, as
    LTG-BERT's code does for COPA (docs/papers/ltg-bert.md, "Fine-tuning"); otherwise the choices of a question share a
    softmax.
    """

    # None, because all choices share the bias, so that it cannot prefer a choice.
    link: ClassVar[Link | None] = None

    independent: bool = False

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the sum over the labelled questions, or, if choices are independent, over all choices of these
        questions.
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
        raise EvaluationError(f"labels: got shape {tuple(labels.shape)}, expected {tuple(scores.shape)}")
    # Convert the labels first, because Boolean and unsigned labels cannot be equal to UNLABELLED, which is negative.
    labels = labels.to(scores.dtype)
    labelled = labels != UNLABELLED
    if can_read_values(labels) and bool((labelled & (labels != 0) & (labels != 1)).any()):
        raise EvaluationError(f"labels: expected 0 or 1 for each label, or {UNLABELLED} for none")
    losses = F.binary_cross_entropy_with_logits(scores, labels, reduction="none")
    return SummedLoss(losses.where(labelled, 0.0).sum(), labelled.sum())


# Finite, so that logits stay finite, but far enough below any score that its probability is exactly 0.
IMPOSSIBLE_SCORE = -1e9


def can_read_values(*tensors: Tensor) -> bool:
    """Return whether the values of all `tensors` can be read without synchronisation."""
    return not torch.compiler.is_compiling() and all(tensor.device.type == "cpu" for tensor in tensors)


def token_mask(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Return a bool mask, True at tokens, of the shape of `input_ids`; None means that all positions are tokens.

    Raises ModelError for a mask of another shape, such as that of packed segments, which heads cannot distinguish.
    """
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    if attention_mask.shape != input_ids.shape:
        shape, expected = tuple(attention_mask.shape), tuple(input_ids.shape)
        raise ModelError(f"attention_mask: got shape {shape}, expected {expected}, one value per token")
    return attention_mask.bool()


def check_class_labels(scores: Tensor, labels: Tensor) -> None:
    """Raise EvaluationError unless every label int64 [...] is UNLABELLED or a possible class of `scores` [..., K]."""
    if labels.shape != scores.shape[:-1]:
        shape, expected = tuple(labels.shape), tuple(scores.shape[:-1])
        raise EvaluationError(f"labels: got shape {shape}, expected {expected}")
    if not can_read_values(scores, labels):
        return
    n_classes = scores.shape[-1]
    outside = (labels != UNLABELLED) & ((labels < 0) | (labels >= n_classes))
    if bool(outside.any()):
        wrong = int(labels[outside][0])
        raise EvaluationError(f"labels: got {wrong}, expected 0 to {n_classes - 1}, or {UNLABELLED} for none")
    given = labels != UNLABELLED
    chosen = scores[given].gather(-1, labels[given].unsqueeze(-1))
    if bool((chosen <= IMPOSSIBLE_SCORE).any()):
        raise EvaluationError("labels: a label names a choice or a position that the input does not have")


def check_spans(spans: Tensor, sentences: Tensor, mask: Tensor) -> None:
    """Raise EvaluationError unless every span contains only tokens.

    `spans` int64 [N, S, 2] are positions [start, end) in the sentences int64 [N] of a batch whose `mask` bool [B, T] is
    True at tokens.
    """
    if spans.ndim != 3 or spans.shape[-1] != 2 or sentences.shape != spans.shape[:1]:
        shapes = f"{tuple(spans.shape)} and {tuple(sentences.shape)}"
        raise EvaluationError(f"spans: got shapes {shapes}, expected [N, spans per target, 2] and [N]")
    if not can_read_values(spans, sentences, mask) or len(spans) == 0:
        return
    if bool(((sentences < 0) | (sentences >= len(mask))).any()):
        raise EvaluationError(f"spans: a sentence number is not one of the {len(mask)} sentences of the batch")
    # tokens_before[b, t] is the number of tokens before position t, so the number of a span's tokens is one difference.
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
        raise EvaluationError(f"spans: [{start}, {end}) {complaint}; expected 0 <= start < end, tokens only")
