"""Initial biases of output layers, and functions that write them into a model.

Source: "A Natural Bias for Language Generation Models", Section 3; docs/papers/natural-bias.md, "The bias" and "Other
objectives". The bias makes the initial prediction equal to the distribution of the layer's targets. For a softmax, the
bias is the logarithm of the class probabilities; for a sigmoid, the logit of the probability; for a regression, the
mean of the targets. Biases are computed in double precision, in nats. If the counts of the labels are smoothed, biases
are finite even for labels that never occur. The functions work on linear layers and on the language-model heads of all
families.
`check_output_bias` compares bit by bit, to detect a later change by initialisation, weight tying or loading.
"""

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.count_distributions import ADD_ONE, checked_counts, smoothed_distribution
from hatchery.modeling.initialisation import normal_, uniform_
from hatchery.modeling.layers import VocabularyHead

SPARE_ROW_BIAS = -1e4
"""Bias of output rows that no token id uses. The softmax probability is exactly 0, but the bias is finite, so that the
loss with label smoothing stays finite."""

Link = Literal["softmax", "binary", "multi_label", "regression"]


def log_prior(distribution: np.ndarray, n_rows: int | None = None, centred: bool = False) -> Tensor:
    """Return the bias of a softmax layer: fp32 [n_rows], the logarithm of `distribution` [V].

    Rows from V on, which pad the vocabulary to a round size, get `SPARE_ROW_BIAS`. If `centred` is true, the mean over
    the V entries is subtracted. This removes an arbitrary constant from the bias, so that the norm of the bias is well
    defined; probabilities do not change. Raises ModelError if there are fewer rows than entries, or if an entry has
    probability 0.
    """
    if not np.all(distribution > 0):
        raise ModelError(
            "distribution: a vocabulary entry has the probability 0, whose logarithm is not finite; use smoothing"
        )
    logarithm = np.log(distribution)
    rows = len(logarithm) if n_rows is None else n_rows
    if rows < len(logarithm):
        raise ModelError(
            f"output layer: has {rows} rows, expected at least one for each of the {len(logarithm)} vocabulary entries "
            "of the prior"
        )
    bias = np.full(rows, SPARE_ROW_BIAS)
    bias[: len(logarithm)] = logarithm - logarithm.mean() if centred else logarithm
    return torch.from_numpy(bias).float()


def prevalence_logit(positive: ArrayLike, total: int, smoothing: float = ADD_ONE) -> Tensor:
    """Return the biases of L sigmoid outputs: fp32 [L], the logits of (c + smoothing) / (N + 2 * smoothing).

    `positive` [L] is the number c of positive targets of each label, and `total` is the number N of targets. Raises
    ModelError for invalid counts, and if the smoothed share of positive targets is 0 or 1, which is only possible with
    `smoothing` 0.
    """
    counts = np.atleast_1d(checked_counts(positive))
    if np.any(counts > total):
        raise ModelError(f"positive: got {counts.max():.0f} positive targets, expected at most {total}")
    positives, negatives = counts + smoothing, total - counts + smoothing
    if np.any(positives <= 0) or np.any(negatives <= 0):
        raise ModelError(
            "positive: got a label that is positive in all examples or in no example, so that its logit is not finite; "
            "use smoothing"
        )
    return torch.from_numpy(np.log(positives) - np.log(negatives)).float()


def target_mean(targets: ArrayLike) -> Tensor:
    """Return the bias of a regression: the mean of `targets` [n] or [n, outputs], fp32 [1] or [outputs].

    Raises ModelError if there are no targets, or if a target is not finite.
    """
    values = np.asarray(targets, dtype=np.float64)
    if not values.size or not np.all(np.isfinite(values)):
        raise ModelError(
            "targets: expected at least one target, and only finite targets, because their mean is the bias"
        )
    return torch.from_numpy(np.atleast_1d(values.mean(axis=0))).float()


def marginal_bias(link: Link, targets: np.ndarray, n_outputs: int, smoothing: float = ADD_ONE) -> Tensor:
    """Return the initial bias, fp32 [n_outputs], of a task's output layer, from the targets of the training examples.

    The value of `link` determines the form of `targets`:

    - "softmax": class indices, [n] or [n, T]; negative indices are ignored.
    - "binary": 0 or 1, [n].
    - "multi_label": 0 or 1, [n, n_outputs].
    - "regression": numbers, [n] or [n, n_outputs].

    Raises ModelError for targets that do not fit the layer.
    """
    if link == "softmax":
        classes = targets[targets >= 0]
        if classes.size and classes.max() >= n_outputs:
            raise ModelError(f"targets: got class {classes.max()}, expected classes below {n_outputs}")
        return log_prior(smoothed_distribution(np.bincount(classes, minlength=n_outputs), smoothing))
    if link == "regression":
        bias = target_mean(targets)
    else:
        if not np.all((targets == 0) | (targets == 1)):
            raise ModelError("targets: expected only 0 and 1 for a sigmoid output")
        bias = prevalence_logit(targets.sum(axis=0), len(targets), smoothing)
    if len(bias) != n_outputs:
        raise ModelError(f"targets: got targets for {len(bias)} outputs, expected {n_outputs} outputs")
    return bias


WeightScale = float | Literal["own", "unit", "unit_uniform", "centred", "frobenius"]


OutputLayer = nn.Linear | VocabularyHead


def output_bias(layer: OutputLayer) -> Tensor | None:
    """Return the bias of an output layer; None if the layer has no bias."""
    return layer.bias if isinstance(layer, nn.Linear) else layer.vocabulary_bias


def output_weight(layer: OutputLayer) -> Tensor | None:
    """Return the matrix of an output layer; None if the layer uses the word embedding."""
    return layer.weight if isinstance(layer, nn.Linear) else layer.vocabulary_weight


@torch.no_grad()
def set_output_bias_(layer: OutputLayer, bias: Tensor) -> None:
    """Copy `bias` fp32 [outputs] into the trainable bias of `layer`.

    Raises ModelError if the layer has no bias or another number of outputs, or if a value is not finite.
    """
    parameter = output_bias(layer)
    if parameter is None:
        raise ModelError("output_bias: the layer has no bias to set; expected vocabulary_bias true in the model")
    if parameter.shape != bias.shape:
        raise ModelError(f"output_bias: got {tuple(bias.shape)} values, expected {tuple(parameter.shape)}")
    if not bool(torch.isfinite(bias).all()):
        raise ModelError("output_bias: a value is not finite, expected a smoothed prior")
    parameter.copy_(bias)


def check_output_bias(layer: OutputLayer, bias: Tensor) -> None:
    """Raise ModelError unless the bias of `layer` equals `bias`. Call this function after all changes to the model."""
    parameter = output_bias(layer)
    if parameter is None or not torch.equal(parameter.detach().cpu(), bias.cpu()):
        raise ModelError(
            "output_bias: the output bias differs from the prior; a later initialisation or a loaded state replaced "
            "the prior"
        )


def check_weight_scale(layer: OutputLayer, scale: WeightScale) -> None:
    """Raise ModelError if `scale` is a number that is infinite or not above 0. Also raise ModelError if `layer` has
    tied weights and `scale` is not "own". The scale "own" keeps the initial matrix.
    """
    if scale != "own" and output_weight(layer) is None:
        raise ModelError(
            f"output_bias.weight_scale: got {scale!r}, expected own, because the embeddings are tied: the output "
            "matrix is also the input embedding; for another scale, set tie_word_embeddings to false"
        )
    if not isinstance(scale, str) and not 0 < scale < math.inf:
        raise ModelError(f"output_bias.weight_scale: got {scale!r}, expected a number above 0")


@torch.no_grad()
def scale_output_weight_(layer: OutputLayer, scale: WeightScale, seed: int, bias: Tensor | None = None) -> None:
    """Draw the output matrix [V, d] of `layer` from N(0, 1/d) and multiply it by a factor; "own" keeps the initial
    matrix.

    - "unit": the factor is 1. A number is itself the factor.
    - "unit_uniform": the matrix is drawn from a uniform distribution of the same variance, and the factor is 1.
    - "frobenius": the Frobenius norm of the matrix becomes the norm of `bias` [outputs]. This is the literal reading of
      the rule in "A Natural Bias for Language Generation Models", Section 4.1. The factor is about ten, so the first
      loss is larger than the loss of uniform predictions.
    - "centred": the Frobenius norm of the matrix becomes the norm of `bias` after its mean is subtracted.

    The drawn matrix depends only on `seed`. `bias` must have one value per vocabulary entry, and no values for rows
    that pad the matrix to a round size. Raises ModelError as `check_weight_scale` does, and if the norm of `bias`
    determines the factor but is 0.
    """
    check_weight_scale(layer, scale)
    weight = output_weight(layer)
    if scale == "own" or weight is None:
        return
    draw_ = uniform_ if scale == "unit_uniform" else normal_
    draw_(weight, 1 / math.sqrt(weight.shape[1]), seed, "output_weight")
    weight.mul_(_factor(scale, weight, bias))


def _factor(scale: WeightScale, unit_weight: Tensor, bias: Tensor | None) -> float:
    if scale in ("unit", "unit_uniform"):
        return 1.0
    if not isinstance(scale, str):
        return float(scale)
    # The norm of a zero bias is 0, so "centred" and "frobenius", which scale the matrix to this norm, would make the
    # matrix zero.
    values = torch.zeros(1) if bias is None else bias.double()
    matched = _norm(values - values.mean() if scale == "centred" else values)
    if matched == 0:
        raise ModelError(
            f"output_bias.weight_scale: got {scale!r}, expected unit or a number, because the norm of the bias is 0"
        )
    return matched / _norm(unit_weight)


def _norm(values: Tensor) -> float:
    """Return the L2 norm. It is computed by numpy, because torch's sums depend on the number of threads, and initial
    weights must not depend on this number.
    """
    return float(np.sqrt(np.square(values.detach().cpu().double().numpy()).sum()))
