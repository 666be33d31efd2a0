"""The gated feed-forward block with an inner layer norm (LTG-BERT section 3.1: GEGLU and NormFormer)."""

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.configuration import EncoderConfig
from hatchery.modeling.numerics import Dropout, LayerNorm


class FeedForward(nn.Module):
    """Norm, projection to twice the inner width, gating, norm, projection back, dropout. No biases, no residual."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.pre_layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.input_projection = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.inner_layer_norm = LayerNorm(config.intermediate_size, config.layer_norm_eps)
        self.output_projection = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform `hidden` [..., D] position by position."""
        value, gate = self.input_projection(self.pre_layer_norm(hidden)).chunk(2, dim=-1)
        # On the CPU the GELU of a strided half costs twice as much as the copy and the GELU of a contiguous one.
        gated = value * F.gelu(gate.contiguous(), approximate="tanh")
        return self.dropout(self.output_projection(self.inner_layer_norm(gated)))
