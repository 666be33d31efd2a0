"""What an output layer's bias is before training: the link function of the marginal of the layer's own targets.

Source: "A Natural Bias for Language Generation Models", Section 3; docs/papers/natural-bias.md, "The bias" and "Other
objectives". Softmax layers get a log-prior from counts, sigmoids a logit, regressions a mean. Every value is finite,
whatever never occurred, and everything is computed in double precision, in nats.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hatchery.errors import ModelError
from hatchery.modeling.count_distributions import ADD_ONE, checked_counts, smoothed_distribution

SPARE_ROW_BIAS = -1e4
"""Bias of an output row that no id has: probability exactly 0, yet finite, so that label smoothing stays finite."""

Link = Literal["softmax", "binary", "multi_label", "regression"]


def log_prior(distribution: np.ndarray, n_rows: int | None = None, centred: bool = False) -> Tensor:
    """The bias of a softmax layer: fp32 [n_rows], the logarithm of `distribution` [V].

    Rows from V on are spare (vocabularies padded to a round size) and get `SPARE_ROW_BIAS`. `centred` subtracts the
    mean over the V types, which changes no probability but takes the arbitrary constant out of the norm. Raises
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
    """The bias of sigmoid outputs: fp32 [L], the logit of (c + smoothing) / (N + 2 * smoothing).

    `positive` [L] counts how often each label held among `total` targets. Raises ModelError for impossible counts and
    for a prevalence of 0 or 1, which `smoothing` 0 can leave.
    """
    counts = np.atleast_1d(checked_counts(positive))
    if np.any(counts > total):
        raise ModelError(f"positive: got {counts.max():.0f} positive targets, expected at most {total}")
    positives, negatives = counts + smoothing, total - counts + smoothing
    if np.any(positives <= 0) or np.any(negatives <= 0):
        raise ModelError("positive: a label always or never holds, so its logit is not finite; use smoothing")
    return torch.from_numpy(np.log(positives) - np.log(negatives)).float()


def target_mean(targets: ArrayLike) -> Tensor:
    """The bias of a regression: the mean of `targets` [n] or [n, outputs], fp32 [1] or [outputs].

    Raises ModelError without targets, or when one is not finite.
    """
    values = np.asarray(targets, dtype=np.float64)
    if not values.size or not np.all(np.isfinite(values)):
        raise ModelError("targets: expected at least one, and all finite, to take their mean")
    return torch.from_numpy(np.atleast_1d(values.mean(axis=0))).float()


def sentence_pair_bias() -> Tensor:
    """The bias of a next-sentence, document or order head: 0, fp32 [1].

    Such pairs are drawn half and half, so the prior says nothing; this function exists to say so.
    """
    return torch.zeros(1)


def marginal_bias(link: Link, targets: np.ndarray, n_outputs: int, smoothing: float = ADD_ONE) -> Tensor:
    """The bias, fp32 [n_outputs], of a task's output layer from the targets of its training examples.

    `targets` are class indices [n] or [n, T] for "softmax" (negative ones are not targets), 0 or 1 [n] for "binary",
    0 or 1 [n, n_outputs] for "multi_label", numbers [n] or [n, n_outputs] for "regression". Raises ModelError for
    targets that the layer cannot predict.
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
