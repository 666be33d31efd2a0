"""Distance of the output layer's bias from its initial value and from the unigram distribution.

Source: docs/papers/natural-bias.md, "Drift of the bias". The KL divergence between the unigram distribution and the
softmax of the bias is measured in both directions. The norm of the bias is also measured after subtracting the bias's
mean, because softmax ignores a constant that is added to the bias. Padding entries of the vocabulary are left out.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.modeling.language_model import LanguageModel

if TYPE_CHECKING:
    from hatchery.training.engine import Engine

DRIFT = (
    "bias_kl_unigram",
    "reverse_bias_kl_unigram",
    "bias_norm",
    "centred_bias_norm",
    "bias_change",
    "largest_bias_change",
)
"""Columns of the metrics: KL(omega || softmax b), KL(softmax b || omega), the L2 norms of b, b - mean b and b - b_0,
and the maximum absolute value of b - b_0.

omega is the unigram distribution, b is the current bias, and b_0 is the initial bias of the run.
"""


class BiasDrift:
    """Measures the norm of a model's output bias, and the distance of the bias from its initial value and from the
    unigram distribution.
    """

    def __init__(self, model: LanguageModel, unigram: np.ndarray) -> None:
        """`model` is on the CPU and has the run's initial bias; `unigram`, fp64, is the probability of each vocabulary
        entry, above 0.
        """
        self._unigram = torch.from_numpy(unigram).double()
        self._start = self._bias(model)

    @torch.no_grad()
    def score(self, engine: "Engine") -> dict[str, float]:
        """Return six metrics of the output bias of `engine.model`, by the names in DRIFT: the KL divergences between
        the unigram distribution and the bias's softmax in both directions, two norms of the bias (with and without its
        mean), and the norm and the largest absolute value of the bias's change since the start of the run. All
        processes return equal values.
        """
        bias, log_unigram = self._bias(engine.model), self._unigram.log()
        log_bias = torch.log_softmax(bias, dim=0)
        change = bias - self._start
        values = (
            self._unigram @ (log_unigram - log_bias),
            log_bias.exp() @ (log_bias - log_unigram),
            bias.norm(),
            (bias - bias.mean()).norm(),
            change.norm(),
            change.abs().max(),
        )
        return {name: float(value) for name, value in zip(DRIFT, values, strict=True)}

    def _bias(self, model: nn.Module) -> Tensor:
        assert isinstance(model, LanguageModel), "only a LanguageModel has this output layer"
        bias = model.output_layer[1]
        assert bias is not None, "the settings refuse to measure the drift of a missing bias"
        return bias.detach()[: len(self._unigram)].cpu().double()
