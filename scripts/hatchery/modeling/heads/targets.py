"""What scores are compared with: classes, independent labels, numbers, choices. Gives losses and predictions.

One convention for all: a loss is the sum over labelled units together with their number, so that batches of any size
can be accumulated exactly; training minimises `mean`. Scores come from a head in full precision.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import EvaluationError
from hatchery.modeling.heads.checks import IMPOSSIBLE_SCORE, UNLABELLED, can_look, check_class_labels
from hatchery.modeling.output_prior import Link


class SummedLoss(NamedTuple):
    """A loss in nats (or squared units of the labels) over some labelled units."""

    loss_sum: Tensor
    """Scalar, differentiable."""
    n_labelled: Tensor
    """Scalar int64: the units that were summed; which units, the target says."""

    @property
    def mean(self) -> Tensor:
        """`loss_sum / n_labelled`, and 0 where nothing is labelled."""
        return self.loss_sum / self.n_labelled.clamp(min=1)


class Target(Protocol):
    """Turns the scores of a head into a loss for given labels, and into predictions of the labels' own form."""

    link: ClassVar[Link | None]
    """How a prior over the labels becomes an output bias (`output_prior.marginal_bias`); None: there is none."""

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Raises EvaluationError for labels that do not fit the scores (values: where looking is free)."""

    def predictions(self, scores: Tensor) -> Tensor:
        """The label that the scores speak for."""


@dataclass(frozen=True)
class OneClass:
    """One of K classes per unit: softmax and cross-entropy. Scores [..., K], labels int64 [...], UNLABELLED ignored."""

    link: ClassVar[Link | None] = "softmax"

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Sum over the labelled units."""
        check_class_labels(scores, labels)
        flat = scores.flatten(0, -2)
        total = F.cross_entropy(flat, labels.flatten(), ignore_index=UNLABELLED, reduction="sum")
        return SummedLoss(total, (labels != UNLABELLED).sum())

    def predictions(self, scores: Tensor) -> Tensor:
        """Class ids int64 [...]."""
        return scores.argmax(dim=-1)


@dataclass(frozen=True)
class IndependentLabels:
    """Any of K labels per unit: a sigmoid and a binary cross-entropy each, as in edge probing (Tenney et al. 2019).

    Scores [..., K], labels [..., K] of 0, 1 and UNLABELLED (ignored), of any dtype.
    """

    link: ClassVar[Link | None] = "multi_label"

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Sum over the labelled binary decisions."""
        return _binary_loss(scores, labels)

    def predictions(self, scores: Tensor) -> Tensor:
        """bool [..., K]: whether the probability is at least one half."""
        return scores >= 0


@dataclass(frozen=True)
class Number:
    """A number per unit: squared error. Scores [..., 1], labels float [...].

    `rectified_loss` compares max(0, score) with the label in the loss alone, as the published code of the
    reduced-vocabulary study does for STS-B (reference section 6.1): a negative score gets no gradient.
    """

    link: ClassVar[Link | None] = "regression"

    rectified_loss: bool = False

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Sum over the units."""
        values = self.predictions(scores)
        if labels.shape != values.shape:
            raise EvaluationError(f"labels: got shape {tuple(labels.shape)}, expected {tuple(values.shape)}")
        if can_look(labels) and not bool(torch.isfinite(labels).all()):
            raise EvaluationError("labels: a value is not finite, expected numbers")
        values = values.relu() if self.rectified_loss else values
        return SummedLoss(F.mse_loss(values, labels.to(values), reduction="sum"), _count(labels))

    def predictions(self, scores: Tensor) -> Tensor:
        """The scores themselves, float [...]."""
        return scores.squeeze(-1)


@dataclass(frozen=True)
class RightChoice:
    """The right one of some choices. Scores [B, C] with IMPOSSIBLE_SCORE at missing choices, labels int64 [B].

    `independent` trains every choice by itself with a binary cross-entropy, target 1 for the right one, as LTG-BERT
    does for COPA (reference section 6.2); otherwise the choices of a question share a softmax.
    """

    # The bias is shared by all choices, so it can prefer none of them.
    link: ClassVar[Link | None] = None

    independent: bool = False

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Sum over the labelled questions, or over all choices of the labelled questions where they are independent."""
        if not self.independent:
            return OneClass().loss(scores, labels)
        check_class_labels(scores, labels)
        is_right = torch.arange(scores.shape[-1], device=scores.device) == labels.unsqueeze(-1)
        counts = (labels != UNLABELLED).unsqueeze(-1) & (scores > IMPOSSIBLE_SCORE)
        return _binary_loss(scores, torch.where(counts, is_right.long(), UNLABELLED))

    def predictions(self, scores: Tensor) -> Tensor:
        """The position of the highest score, int64 [B]."""
        return scores.argmax(dim=-1)


def _binary_loss(scores: Tensor, labels: Tensor) -> SummedLoss:
    if labels.shape != scores.shape:
        raise EvaluationError(f"labels: got shape {tuple(labels.shape)}, expected {tuple(scores.shape)}")
    # A bool has no room for UNLABELLED, and an unsigned label no sign.
    labels = labels.to(scores.dtype)
    labelled = labels != UNLABELLED
    if can_look(labels) and bool((labelled & (labels != 0) & (labels != 1)).any()):
        raise EvaluationError(f"labels: expected 0 or 1 for each label, or {UNLABELLED} for none")
    losses = F.binary_cross_entropy_with_logits(scores, labels, reduction="none")
    return SummedLoss(losses.where(labelled, 0.0).sum(), labelled.sum())


def _count(labels: Tensor) -> Tensor:
    return torch.tensor(labels.numel(), device=labels.device)
