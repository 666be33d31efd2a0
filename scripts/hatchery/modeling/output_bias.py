"""Writing a prior into the output layer of a model that is already built, and making sure that it is still there.

Source: "A Natural Bias for Language Generation Models", Section 3; docs/papers/natural-bias.md, "The bias". Works
on any linear layer (classifiers, sentence pairs, decoders) and on the language-model heads of all families. What an
initialiser, weight tying or loading does afterwards does not go unnoticed: `check_output_bias` compares bit by bit.
"""

import math
from typing import Literal, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.initialisation import normal_, uniform_

WeightScale = float | Literal["own", "unit", "unit_uniform", "centred", "frobenius"]


class VocabularyHead(Protocol):
    """What a language-model head offers, so that its output layer can be given a prior."""

    vocabulary_bias: nn.Parameter | None
    """fp32 [V]; None in a head without one."""
    vocabulary_weight: nn.Parameter | None
    """fp32 [V, E]; None where the output matrix is the word embedding."""

    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with: [..., E] from hidden states [..., D]."""


OutputLayer = nn.Linear | VocabularyHead


def vocabulary_head(head: nn.Module) -> VocabularyHead:
    """`head` as one that can be given a prior. Raises ModelError if it does not offer what that takes."""
    # One by one: from Python 3.12 on, isinstance with a protocol does not see the parameters of a module.
    if not all(hasattr(head, name) for name in ("vocabulary_bias", "vocabulary_weight", "features")):
        expected = "vocabulary_bias, vocabulary_weight and features"
        raise ModelError(f"output_bias: {type(head).__name__} is no language-model head, expected {expected}")
    return cast(VocabularyHead, head)


def output_bias(layer: OutputLayer) -> Tensor | None:
    """The bias of an output layer, or None if it has none."""
    return layer.bias if isinstance(layer, nn.Linear) else layer.vocabulary_bias


def output_weight(layer: OutputLayer) -> Tensor | None:
    """The matrix of an output layer, or None where it belongs to the embedding."""
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
    """Raise ModelError unless `layer` holds exactly `bias`; to be called when nothing else will touch the model."""
    parameter = output_bias(layer)
    if parameter is None or not torch.equal(parameter.detach().cpu(), bias.cpu()):
        raise ModelError("output_bias: the prior is no longer in the model; something initialised or loaded after it")


def check_weight_scale(layer: OutputLayer, scale: WeightScale) -> None:
    """Raise ModelError for any scale but "own" where the matrix is the word embedding, and for a number not above 0."""
    if scale != "own" and output_weight(layer) is None:
        raise ModelError(
            f"output_bias.weight_scale: got {scale!r}, only own is possible with tied embeddings: the output matrix is "
            "the input embedding too (untie them with tie_word_embeddings false)"
        )
    if not isinstance(scale, str) and not 0 < scale < math.inf:
        raise ModelError(f"output_bias.weight_scale: got {scale!r}, expected a number above 0")


@torch.no_grad()
def scale_output_weight_(layer: OutputLayer, scale: WeightScale, seed: int, bias: Tensor | None = None) -> None:
    """Draw the matrix [V, d] of `layer` anew from N(0, 1/d), times a factor s; "own" leaves the initialiser's values.

    "unit" is s = 1 and a number is s itself; "unit_uniform" is uniform with the variance of "unit". "centred" makes the
    Frobenius norm of the matrix that of `bias` [outputs] without its mean, "frobenius" that of `bias` as it is: the
    paper's rule taken literally, with logits of standard deviation 12 and a first loss near 39. The draw depends on the
    seed alone, so all variants share it. `bias` is without spare rows. Raises ModelError as `check_weight_scale` does,
    and where nothing can be matched.
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
    # The rule is stated for all models, but against a bias of 0 it would leave a matrix of zeros.
    values = torch.zeros(1) if bias is None else bias.double()
    matched = _norm(values - values.mean() if scale == "centred" else values)
    if matched == 0:
        raise ModelError(f"output_bias.weight_scale: got {scale!r}, expected unit or a number: the bias has no norm")
    return matched / _norm(unit_weight)


def _norm(values: Tensor) -> float:
    """The L2 norm, by numpy: torch's sums depend on the number of threads, and the first weights must not."""
    return float(np.sqrt(np.square(values.detach().cpu().double().numpy()).sum()))
