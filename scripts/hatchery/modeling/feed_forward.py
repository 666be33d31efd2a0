"""The feed-forward block in all its forms: gated or plain, with and without biases and inner norms.

Source: LTG-BERT, Section 4 (GEGLU after Shazeer, NormFormer's inner norm) and the ablations of its Table 2; the
RoBERTa-like models use the plain form with biases. No form has a residual inside.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.bf16_on_cpu import gated_norm, in_bf16_on_cpu, norm_for_product
from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm


class FeedForward(nn.Module):
    """[Norm,] projection, activation, [norm,] projection back, dropout."""

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        dropout: float,
        *,
        gated: bool,
        bias: bool,
        exact_gelu: bool = False,
        relu: bool = False,
        pre_layer_norm: LayerNorm | None = None,
        inner_layer_norm: LayerNorm | None = None,
    ) -> None:
        """`exact_gelu` is the GELU with the error function, otherwise the tanh approximation; `relu` replaces it."""
        super().__init__()
        self.gated, self.relu, self.approximate = gated, relu, "none" if exact_gelu else "tanh"
        self.pre_layer_norm = pre_layer_norm
        self.input_projection = nn.Linear(hidden_size, (1 + gated) * intermediate_size, bias=bias)
        self.inner_layer_norm = inner_layer_norm
        self.output_projection = nn.Linear(intermediate_size, hidden_size, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform `hidden` [..., D] position by position."""
        if self.pre_layer_norm is not None:
            hidden = norm_for_product(self.pre_layer_norm, hidden)
        projected = self.input_projection(hidden)
        norm = self.inner_layer_norm
        if norm is not None and self._is_gated_norm and in_bf16_on_cpu(projected):
            return self.dropout(self.output_projection(gated_norm(projected, norm.eps)))
        inner = self._activation(projected)
        if norm is not None:
            inner = norm(inner)
        return self.dropout(self.output_projection(inner))

    @property
    def _is_gated_norm(self) -> bool:
        """Whether activation and inner norm are those of LTG-BERT, which `gated_norm` computes at once."""
        norm = self.inner_layer_norm
        return norm is not None and norm.weight is None and self.gated and self.approximate == "tanh"

    def _activation(self, projected: Tensor) -> Tensor:
        if self.relu:
            return F.relu(projected)
        if not self.gated:
            return F.gelu(projected, approximate=self.approximate)
        value, gate = projected.chunk(2, dim=-1)
        # On the CPU the GELU of a strided half costs twice as much as the copy and the GELU of a contiguous one.
        return value * F.gelu(gate.contiguous(), approximate=self.approximate)


def ltg_feed_forward(config: LtgBertConfig) -> FeedForward:
    """The block that a configuration of the LTG-BERT family describes."""
    before = LayerNorm(config.hidden_size, config.layer_norm_eps, affine=config.affine_block_norms)
    return FeedForward(
        config.hidden_size,
        config.intermediate_size,
        config.hidden_dropout_prob,
        gated=config.feed_forward_activation == "geglu",
        bias=config.feed_forward_bias,
        pre_layer_norm=None if config.normalisation == "post_norm" else before,
        inner_layer_norm=LayerNorm(config.intermediate_size, config.layer_norm_eps)
        if config.normalisation == "normformer"
        else None,
    )
