"""The initial bias of an output layer, and functions to write it into an existing model.

Source: "A Natural Bias for Language Generation Models", Section 3; docs/papers/natural-bias.md, "The bias" and "Other
objectives". The bias is the link function of the marginal of the layer's own targets: softmax layers get a log-prior
from counts, sigmoids a logit, regressions a mean. Every value is finite, even for labels that never occur, and is
computed in double precision, in nats. The functions work on any linear layer (classifiers, sentence pairs, decoders)
and on the language-model heads of all families. `check_output_bias` compares bit by bit, so it notices later changes by
an initialiser, weight tying or loading.
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
"""Bias of an output row without an id: probability exactly 0, but finite, so that label smoothing stays finite."""

Link = Literal["softmax", "binary", "multi_label", "regression"]


def log_prior(distribution: np.ndarray, n_rows: int | None = None, centred: bool = False) -> Tensor:
    """Return the bias of a softmax layer: fp32 [n_rows], the logarithm of `distribution` [V].

    Rows from V on are spare (vocabularies padded to a round size) and get `SPARE_ROW_BIAS`. `centred` subtracts the
    mean over the V types, which changes no probability but removes the arbitrary constant from the norm. Raises
    ModelError when there are fewer rows than types, or when a type has no probability.
    """
    if not np.all(distribution > 0):
        raise ModelError("distribution: a type has no probability, so its logarithm is not finite; use smoothing")
    logarithm = np.log(distribution)
    rows = len(logarithm) if n_rows is None else n_rows
    if rows < len(logarithm):
        raise ModelError(f"output layer: has {rows} rows, expected at least one for each of {len(logarithm)} types")
    bias = np.full(rows, SPARE_ROW_BIAS)
    bias[: len(logarithm)] = logarithm - logarithm.mean() if centred else logarithm
    return torch.from_numpy(bias).float()


def prevalence_logit(positive: ArrayLike, total: int, smoothing: float = ADD_ONE) -> Tensor:
    """Return the bias of sigmoid outputs: fp32 [L], the logit of (c + smoothing) / (N + 2 * smoothing).

    `positive` [L] are the numbers of positive targets of each label among `total` targets. Raises ModelError for
    impossible counts and for a prevalence of 0 or 1, which can occur with `smoothing` 0.
    """
    counts = np.atleast_1d(checked_counts(positive))
    if np.any(counts > total):
        raise ModelError(f"positive: got {counts.max():.0f} positive targets, expected at most {total}")
    positives, negatives = counts + smoothing, total - counts + smoothing
    if np.any(positives <= 0) or np.any(negatives <= 0):
        raise ModelError("positive: a label always or never holds, so its logit is not finite; use smoothing")
    return torch.from_numpy(np.log(positives) - np.log(negatives)).float()


def target_mean(targets: ArrayLike) -> Tensor:
    """Return the bias of a regression: the mean of `targets` [n] or [n, outputs], fp32 [1] or [outputs].

    Raises ModelError without targets, or if a target is not finite.
    """
    values = np.asarray(targets, dtype=np.float64)
    if not values.size or not np.all(np.isfinite(values)):
        raise ModelError("targets: expected at least one, and all finite, to take their mean")
    return torch.from_numpy(np.atleast_1d(values.mean(axis=0))).float()


def marginal_bias(link: Link, targets: np.ndarray, n_outputs: int, smoothing: float = ADD_ONE) -> Tensor:
    """Return the bias, fp32 [n_outputs], of a task's output layer from the targets of its training examples.

    `targets` are class indices [n] or [n, T] for "softmax" (negative ones are not targets), 0 or 1 [n] for "binary", 0
    or 1 [n, n_outputs] for "multi_label", numbers [n] or [n, n_outputs] for "regression". Raises ModelError for targets
    that the layer cannot predict.
    """
    if link == "softmax":
        classes = targets[targets >= 0]
        if classes.size and classes.max() >= n_outputs:
            raise ModelError(f"targets: got class {classes.max()}, expected one below {n_outputs}")
        return log_prior(smoothed_distribution(np.bincount(classes, minlength=n_outputs), smoothing))
    if link == "regression":
        bias = target_mean(targets)
    else:
        if not np.all((targets == 0) | (targets == 1)):
            raise ModelError("targets: expected only 0 and 1 for a sigmoid output")
        bias = prevalence_logit(targets.sum(axis=0), len(targets), smoothing)
    if len(bias) != n_outputs:
        raise ModelError(f"targets: are for {len(bias)} outputs, expected {n_outputs}")
    return bias


WeightScale = float | Literal["own", "unit", "unit_uniform", "centred", "frobenius"]


OutputLayer = nn.Linear | VocabularyHead


def output_bias(layer: OutputLayer) -> Tensor | None:
    """Return the bias of an output layer, or None without one."""
    return layer.bias if isinstance(layer, nn.Linear) else layer.vocabulary_bias


def output_weight(layer: OutputLayer) -> Tensor | None:
    """Return the matrix of an output layer, or None if the matrix belongs to the embedding."""
    return layer.weight if isinstance(layer, nn.Linear) else layer.vocabulary_weight


@torch.no_grad()
def set_output_bias_(layer: OutputLayer, bias: Tensor) -> None:
    """Copy `bias` fp32 [outputs] into the trainable bias of `layer`.

    Raises ModelError when the layer has no bias, another number of outputs, or when a value is not finite.
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
    """Raise ModelError unless the bias of `layer` equals `bias`; call it after the last change to the model."""
    parameter = output_bias(layer)
    if parameter is None or not torch.equal(parameter.detach().cpu(), bias.cpu()):
        raise ModelError("output_bias: the prior is no longer in the model; a later initialisation or load replaced it")


def check_weight_scale(layer: OutputLayer, scale: WeightScale) -> None:
    """Raise ModelError for any scale except "own" if the matrix is the word embedding, and for a number not above 0."""
    if scale != "own" and output_weight(layer) is None:
        raise ModelError(
            f"output_bias.weight_scale: got {scale!r}, only own is possible with tied embeddings: the output matrix is "
            "the input embedding too (untie them with tie_word_embeddings false)"
        )
    if not isinstance(scale, str) and not 0 < scale < math.inf:
        raise ModelError(f"output_bias.weight_scale: got {scale!r}, expected a number above 0")


@torch.no_grad()
def scale_output_weight_(layer: OutputLayer, scale: WeightScale, seed: int, bias: Tensor | None = None) -> None:
    """Draw the matrix [V, d] of `layer` anew from N(0, 1/d), times a factor s; "own" keeps the initialiser's values.

    "unit" is s = 1 and a number is s itself; "unit_uniform" is uniform with the variance of "unit". "centred" sets the
    Frobenius norm of the matrix to the norm of `bias` [outputs] without its mean, "frobenius" to the norm of `bias`:
    the paper's rule taken literally, with logits of standard deviation 12 and a first loss near 39. The draw depends
    only on the seed, so all variants share it. `bias` is without spare rows. Raises ModelError as `check_weight_scale`
    does, and if the bias has no norm to match.
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
    # The rule holds for all models, but with a bias of 0 the matrix would be zero.
    values = torch.zeros(1) if bias is None else bias.double()
    matched = _norm(values - values.mean() if scale == "centred" else values)
    if matched == 0:
        raise ModelError(f"output_bias.weight_scale: got {scale!r}, expected unit or a number: the bias has no norm")
    return matched / _norm(unit_weight)


def _norm(values: Tensor) -> float:
    """Return the L2 norm, computed by numpy, because torch's sums depend on the number of threads, and the initial
    weights must not.
    """
    return float(np.sqrt(np.square(values.detach().cpu().double().numpy()).sum()))
