"""Measures of an output layer before the first update: norms of its weights, and the divergence of its predictions from
the prior, the distribution of the training labels.

Source: docs/papers/natural-bias.md, "Scale of the output matrix". The rule by which the natural-bias paper scales the
matrix is ambiguous; these measures show which reading of the rule a run uses. All losses and divergences are in nats.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import ModelError
from hatchery.modeling.count_distributions import entropy
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.norm_and_dropout import full_precision

# Numbers of digits to which measures are rounded. Further digits would differ between machines, but manifests must be
# equal.
_SIGNIFICANT_DIGITS, _DECIMALS = 5, 4


@torch.no_grad()
def output_measures(
    weight: Tensor,
    bias: Tensor | None,
    features: Tensor,
    distribution: np.ndarray | None = None,
    frequencies: np.ndarray | None = None,
    targets: Tensor | None = None,
) -> dict[str, float]:
    """Return measures of p = softmax(weight @ phi + bias) over the rows phi of `features` [M, d], M >= 1.

    `weight` [V, d] and `bias` [V] are the parameters of the output layer. The measures are norms of weight and bias,
    the root mean square of the features, the standard deviation of the logits without bias, and the loss of uniform
    predictions. If the prior is given, all these measures except for that of the features ignore the rows of the layer
    from n on. The prior is `distribution` [n], n <= V, the distribution of the training labels. It adds these measures:

    - `prior_entropy`
    - `divergence_from_prior`: the mean of KL(prior || p) over the rows of `features`
    - `predicted_divergence`: half the variance of the logits without bias, an approximation of a small
      `divergence_from_prior`
    - `bias_divergence_from_prior`, if the layer has a bias: KL(prior || softmax(bias)). If the bias was set from the
      prior, this measure is 0 until training changes the bias.

    If the unsmoothed label counts `frequencies` [n] are given with a prior, two cross-entropies of the counted labels
    are added: under the prior (`prior_loss`) and under p (`expected_first_loss`). If the labels `targets` int64 [M] are
    given, their cross-entropy under p (`first_loss`) is added. Raises ModelError if M is 0.
    """
    if not len(features):
        raise ModelError("output_measures: got no position, expected at least one predicted position")
    n_types = len(weight) if distribution is None else len(distribution)
    weight, features = weight.double(), features.double()
    rows = weight[:n_types]
    logits = features @ weight.T
    deviation = logits[:, :n_types].std(dim=-1, correction=0).square().mean().sqrt()
    measures = {
        "weight_frobenius_norm": rows.norm(),
        # Compute the largest singular value from a d x d matrix, because the V x d matrix would take minutes for a
        # large vocabulary.
        "weight_spectral_norm": torch.linalg.eigvalsh(rows.T @ rows)[-1].clamp_min(0).sqrt(),
        "features_rms": features.square().mean().sqrt(),
        "logit_deviation": deviation,
        "uniform_loss": math.log(n_types),
    }
    if bias is not None:
        logits = logits + bias.double()
        values = bias[:n_types].double()
        measures |= {"bias_norm": values.norm(), "centred_bias_norm": (values - values.mean()).norm()}
    log_probability = torch.log_softmax(logits, dim=-1)
    if distribution is not None:
        prior = torch.from_numpy(distribution).to(log_probability)
        mean_log_probability = log_probability[:, :n_types].mean(dim=0)
        prior_entropy = entropy(distribution)
        if bias is not None:
            of_bias = -(torch.log_softmax(bias.double(), dim=0)[:n_types] @ prior)
            measures["bias_divergence_from_prior"] = of_bias - prior_entropy
        measures |= {
            "prior_entropy": prior_entropy,
            "divergence_from_prior": -(mean_log_probability @ prior) - prior_entropy,
            "predicted_divergence": deviation.square() / 2,
        }
        if frequencies is not None:
            shares = torch.from_numpy(frequencies / frequencies.sum()).to(prior)
            measures |= {
                "prior_loss": -(prior.log() @ shares),
                "expected_first_loss": -(mean_log_probability @ shares),
            }
    if targets is not None:
        measures["first_loss"] = F.nll_loss(log_probability, targets)
    return {name: _rounded(float(value)) for name, value in measures.items()}


@torch.no_grad()
def language_model_measures(
    model: LanguageModel,
    batch: dict[str, Tensor],
    distribution: np.ndarray | None = None,
    frequencies: np.ndarray | None = None,
) -> dict[str, float]:
    """Return `output_measures` of a language model at the labelled positions of `batch`, without dropout.

    The batch has the keys of training examples (`input_ids`, `attention_mask`, `labels`). Raises ModelError if no
    position is labelled.
    """
    head = model.head
    was_training = model.training
    model.eval()
    try:
        hidden, targets = model.labelled_hidden(batch)
        features = full_precision(head.features(hidden))
    finally:
        model.train(was_training)
    return output_measures(*model.output_layer, features, distribution, frequencies, targets)


def _rounded(value: float) -> float:
    # Adding 0 turns a negative zero into 0.
    return round(float(f"{value:.{_SIGNIFICANT_DIGITS}g}"), _DECIMALS) + 0.0
