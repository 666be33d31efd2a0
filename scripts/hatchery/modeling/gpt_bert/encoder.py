"""GPT-BERT's encoder: LTG-BERT's encoder with a gate and a norm between attention and output projection.

Source: GPT-BERT, after the published code (docs/papers/gpt-bert.md, "Model"). The layer weighting "unrestricted" adds
GPT-BERT's learned weights between blocks.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.gpt_bert.config import GptBertConfig
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.ltg.encoder import LtgEncoder
from hatchery.modeling.norm_and_dropout import LayerNorm


class GatedSelfAttention(DisentangledSelfAttention):
    """Attention block without residual: norm, attention, optional gate, norm, output projection, dropout.

    The gate is the exact GELU of a projection of the block's normalised input. The norms have no parameters.
    """

    def __init__(self, config: GptBertConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        self.post_layer_norm = None
        self.inner_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.gated = config.attention_gate
        if self.gated:
            # Value projection and gate projection are one parameter, as in the published models, because LAMB computes
            # one trust ratio per parameter. The rows of the values come first.
            self.value_projection = nn.Linear(size, 2 * size)

    def _value_and_gate(self, hidden: Tensor) -> tuple[Tensor, Tensor | None]:
        projected = self.value_projection(hidden)
        if not self.gated:
            return projected, None
        value, gate = projected.chunk(2, dim=-1)
        return value, gate

    def _value_parameters(self) -> tuple[Tensor, Tensor]:
        size = self.output_projection.in_features
        return self.value_projection.weight[:size], self.value_projection.bias[:size]

    def closed(self, context: Tensor, gate: Tensor | None = None) -> Tensor:
        """Return the output of the attention block, given `context` [..., D], the concatenated results of all heads. If
        there is a `gate` [..., D], its GELU multiplies `context`.
        """
        if gate is not None:
            context = context * F.gelu(gate)
        return self.dropout(self.output_projection(self.inner_layer_norm(context)))


class GptBertEncoder(LtgEncoder):
    """The layers of GPT-BERT, which are LTG-BERT's layers with gated attention."""

    attention = GatedSelfAttention
