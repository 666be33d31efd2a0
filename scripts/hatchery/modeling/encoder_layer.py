"""A layer: attention and feed-forward block, with the residual paths that normalisation and layer weighting ask for.

Source: LTG-BERT, Section 4 and Appendix C (post-norm); ELC-BERT, Equations 2 and 5. Both families of encoders are
stacks of this one layer; what differs are the blocks and norms that are handed in.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.attention_inputs import AttentionInputs
from hatchery.modeling.layer_weighting import LayerWeighting
from hatchery.modeling.norm_and_dropout import LayerNorm, full_precision


class EncoderLayer(nn.Module):
    """Attention and feed-forward block around a residual stream, or between weighted layers.

    Without the two norms, what the blocks return is added as it is. With them (post-norm) every sum is normalised:
    `x = norm(x + attention(x))`, then `x = norm(x + feed_forward(x))`. A layer weighting that leaves the input out of
    the output normalises the attention alone instead, with the same parameters. With `residual_scaling` the second sum
    is `scale * x + feed_forward(x)`.
    """

    def __init__(
        self,
        attention: nn.Module,
        feed_forward: nn.Module,
        weighting: LayerWeighting,
        hidden_size: int,
        eps: float,
        attention_norm: LayerNorm | None = None,
        feed_forward_norm: LayerNorm | None = None,
        *,
        residual_scaling: bool = False,
    ) -> None:
        super().__init__()
        self.weighting = weighting
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_norm = attention_norm
        self.feed_forward_norm = feed_forward_norm
        self.residual_scale = nn.Parameter(torch.ones(hidden_size)) if residual_scaling else None
        self.output_layer_norm = LayerNorm(hidden_size, eps)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Transform `hidden` [B, T, D], or [N, D] with a packing; to [B, D] where `inputs.query_rows` says so."""
        attention = self.attention(hidden, inputs)
        if inputs.query_rows is not None:
            hidden = hidden.flatten(0, 1).index_select(0, inputs.query_rows)
        weighting = self.weighting
        # Each of the two is made, and normalised, only where it is read.
        with_input = without_input = None
        if weighting.input_in_feed_forward or weighting.input_in_output:
            with_input = self._normalised(hidden + attention)
        if not (weighting.input_in_feed_forward and weighting.input_in_output):
            without_input = self._normalised(attention)
        feed_forward = self.feed_forward(with_input if weighting.input_in_feed_forward else without_input)
        residual = with_input if weighting.input_in_output else without_input
        if residual is not None and self.residual_scale is not None:
            residual = residual * self.residual_scale
        output = residual + feed_forward
        if self.feed_forward_norm is not None:
            output = self.feed_forward_norm(output)
        if weighting.output_normalisation == "layer_norm":
            return self.output_layer_norm(output)
        if weighting.output_normalisation == "unit_vector":
            return F.normalize(full_precision(output), dim=-1)
        return output

    def _normalised(self, summed: Tensor) -> Tensor:
        return summed if self.attention_norm is None else self.attention_norm(summed)
