"""The blocks of LTG-BERT as their formulas are printed: one position vector for every pair of tokens.

Source: LTG-BERT, Section 4, in the form of the papers' code, which writes T x T x 2D position values. The blocks are
the readable reference of the tests and the baseline of benchmarks/training_step.py; they share parameters with the fast
blocks, but no code.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs
from hatchery.modeling.ltg.config import LtgBertConfig


class PlainAttention(nn.Module):
    """Compute the output of `attention` from its parameters. `rows` int64 [T, T]: relative row of every i - j."""

    def __init__(self, attention: nn.Module, config: LtgBertConfig, rows: Tensor) -> None:
        super().__init__()
        for name, child in attention.named_children():
            self.add_module(name, child)
        self.config = config
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Return the output for hidden states [B, T, D], or [N, D] with a packing, in the same shape."""
        if inputs.packing is not None:
            laid_out = hidden.new_zeros(inputs.packing.batch * inputs.packing.length, hidden.shape[-1])
            laid_out[inputs.packing.rows] = hidden
            padded = self(laid_out.view(inputs.packing.batch, inputs.packing.length, -1), inputs._replace(packing=None))
            return padded.flatten(0, 1)[inputs.packing.rows]
        if self.config.normalisation != "post_norm":
            hidden = self.norm(hidden, self.pre_layer_norm)
        scores = self.scores(hidden, inputs.relative_embedding)
        if inputs.mask is not None:
            may_attend = inputs.mask[:, None, None, :] if inputs.mask.dim() == 2 else inputs.mask[:, None]
            scores = scores.masked_fill(~may_attend, float("-inf"))
        probabilities = self.drop(scores.softmax(dim=-1))
        if inputs.mask is not None:
            probabilities = probabilities.masked_fill(~may_attend, 0)
        heads = self.config.num_attention_heads
        value = self.value_projection(hidden).unflatten(-1, (heads, -1))
        context = torch.einsum("bhij,bjhd->bihd", probabilities, value).flatten(2)
        output = self.output_projection(context)
        if self.config.normalisation == "normformer":
            output = self.norm(output, self.post_layer_norm)
        return self.drop(output)

    def scores(self, hidden: Tensor, relative_embedding: Tensor | None) -> Tensor:
        """Scaled scores [B, H, T, T]."""
        length, heads, width = hidden.shape[1], self.config.num_attention_heads, self.config.head_size
        query, key = self.query_key_projection(hidden).chunk(2, dim=-1)
        query, key = query.unflatten(-1, (heads, width)), key.unflatten(-1, (heads, width))
        content = torch.einsum("bihd,bjhd->bhij", query, key)
        if self.config.position_embedding == "absolute":
            return content / width**0.5
        table = self.query_key_projection(self.drop(relative_embedding))
        query_table, key_table = self.split_table(table)
        rows = self.rows[:length, :length]
        position_key = F.embedding(rows, key_table).unflatten(-1, (heads, width))
        if self.config.position_to_content_index == "key_minus_query":
            rows = rows.t()
        position_query = F.embedding(rows, query_table).unflatten(-1, (heads, width))
        content_to_position = torch.einsum("bihd,ijhd->bhij", query, position_key)
        position_to_content = torch.einsum("ijhd,bjhd->bhij", position_query, key)
        return (content + content_to_position + position_to_content) / (3 * width) ** 0.5

    def split_table(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Split the projected relative embedding [R, 2D] into position queries and position keys [R, D] by head."""
        if self.config.position_head_layout == "babylm":
            query, key = table.chunk(2, dim=-1)
            return query, key
        per_head = table.unflatten(-1, (self.config.num_attention_heads, 2 * self.config.head_size))
        query, key = per_head.chunk(2, dim=-1)
        return query.flatten(1), key.flatten(1)

    def norm(self, values: Tensor, norm: nn.Module) -> Tensor:
        """Layer norm in at least fp32, with the parameters of `norm` if it has any."""
        values = values.float() if values.dtype == torch.bfloat16 else values
        return F.layer_norm(values, values.shape[-1:], norm.weight, norm.bias, self.config.layer_norm_eps)

    def drop(self, values: Tensor) -> Tensor:
        """Torch's own dropout."""
        return F.dropout(values, self.config.attention_probs_dropout_prob, self.training)


class PlainFeedForward(nn.Module):
    """Compute the output of `feed_forward`, LTG-BERT's gated block between two norms, from its parameters."""

    def __init__(self, feed_forward: nn.Module, config: LtgBertConfig) -> None:
        super().__init__()
        self.input_projection, self.output_projection = feed_forward.input_projection, feed_forward.output_projection
        self.config = config

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform `hidden` [..., D] position by position."""
        value, gate = self.input_projection(self.norm(hidden)).chunk(2, dim=-1)
        output = self.output_projection(self.norm(value * F.gelu(gate, approximate="tanh")))
        return F.dropout(output, self.config.hidden_dropout_prob, self.training)

    def norm(self, values: Tensor) -> Tensor:
        """Layer norm in at least fp32."""
        values = values.float() if values.dtype == torch.bfloat16 else values
        return F.layer_norm(values, values.shape[-1:], eps=self.config.layer_norm_eps)
