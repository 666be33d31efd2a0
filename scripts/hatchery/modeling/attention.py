"""Self-attention with disentangled content and position scores.

Source: LTG-BERT section 3.1 (after DeBERTa) in the form of the published code: one bucket index for both position
terms, one query-key projection for tokens and positions. Position scores are computed once per bucket and then looked
up for every pair of tokens, so nothing of the size T x T x hidden_size is ever made (benchmarks/attention.py).
"""

import math

import torch
from torch import Tensor, nn

from hatchery.modeling.configuration import EncoderConfig
from hatchery.modeling.numerics import Dropout, LayerNorm, full_precision
from hatchery.modeling.relative_positions import PositionIndices


class DisentangledSelfAttention(nn.Module):
    """The attention block: norm, attention, output projection, affine norm, dropout. No residual inside."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.n_heads, self.head_size = config.num_attention_heads, config.head_size
        # Content, query-to-position and position-to-key scores are added, hence 3 (DeBERTa, equation 4).
        self.scale = 1 / math.sqrt(3 * self.head_size)
        self.position_head_layout = config.position_head_layout
        self.pre_layer_norm = LayerNorm(size, config.layer_norm_eps)
        # Two parameters and not one: LAMB's trust ratio is per tensor, and the published models have these two.
        self.query_key_projection = nn.Linear(size, 2 * size)
        self.value_projection = nn.Linear(size, size)
        self.output_projection = nn.Linear(size, size)
        self.post_layer_norm = LayerNorm(size, config.layer_norm_eps, affine=True)
        self.dropout = Dropout(config.attention_probs_dropout_prob)

    def forward(
        self, hidden: Tensor, relative_embedding: Tensor, positions: PositionIndices, padding: Tensor | None
    ) -> Tensor:
        """Attend from every token of `hidden` [B, T, D] to the tokens of its sequence; returns [B, T, D].

        `relative_embedding` is the normalised table [2 * bucket_size - 1, D]; `padding` [B, T] is True where a key is
        no token, None where all are tokens. A sequence without any token gives finite values without meaning.
        """
        batch, length, size = hidden.shape
        hidden = self.pre_layer_norm(hidden)
        scores = self.scores(hidden, relative_embedding, positions)
        if padding is not None:
            # The lowest finite value and not -inf: a padded key gets probability exactly 0 all the same, and a row
            # without any token stays finite instead of spreading NaN through the gradients.
            scores = scores.masked_fill(padding[:, None, None, :], torch.finfo(scores.dtype).min)
        probabilities = self.dropout(torch.softmax(full_precision(scores), dim=-1)).flatten(0, 1)
        value = self.value_projection(hidden).view(batch, length, self.n_heads, self.head_size)
        value = value.transpose(1, 2).reshape(batch * self.n_heads, length, self.head_size)
        context = torch.bmm(probabilities, value).view(batch, self.n_heads, length, self.head_size)
        context = context.transpose(1, 2).reshape(batch, length, size)
        return self.dropout(self.post_layer_norm(self.output_projection(context)))

    def scores(self, hidden: Tensor, relative_embedding: Tensor, positions: PositionIndices) -> Tensor:
        """Scaled scores [B, H, T, T] of query i and key j, before masking, of the normalised `hidden` [B, T, D]."""
        batch, length, _ = hidden.shape
        heads, width, n_rows = self.n_heads, self.head_size, positions.n_rows
        query_key = self.query_key_projection(hidden).view(batch, length, 2, heads, width)
        query, key = query_key.permute(2, 0, 3, 1, 4).reshape(2, batch * heads, length, width).unbind(0)

        # Only the rows that distances below T can reach take part; the others would get neither use nor gradient.
        table = self.dropout(relative_embedding[positions.first_row : positions.first_row + n_rows])
        position_query, position_key = self._position_vectors(table)
        # The scale is applied to the small tensors and inside the product, never to a T x T one.
        shape = (batch, heads, width, n_rows)
        query_table = torch.bmm(query, (position_key * self.scale).expand(shape).flatten(0, 1))
        key_table = torch.bmm(key, (position_query * self.scale).expand(shape).flatten(0, 1))
        # On the CPU index_select from the flattened table is faster than torch.gather, forward and backward.
        position_scores = query_table.flatten(1).index_select(1, positions.by_query)
        position_scores = position_scores + key_table.flatten(1).index_select(1, positions.by_key)
        position_scores = position_scores.view(batch * heads, length, length)
        scores = torch.baddbmm(position_scores, query, key.transpose(1, 2), alpha=self.scale)
        return scores.view(batch, heads, length, length)

    def _position_vectors(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Position queries and position keys of the relative embedding's rows, each [H, d, rows].

        "babylm" splits the projection as for tokens: first all queries, then all keys. "bnc" is the layout of
        LTG-BERT's BNC code, which gives each head 2d consecutive outputs and halves those.
        """
        projected = self.query_key_projection(table)
        if self.position_head_layout == "bnc":
            query, key = projected.view(-1, self.n_heads, 2, self.head_size).permute(2, 1, 3, 0).unbind(0)
        else:
            query, key = projected.view(-1, 2, self.n_heads, self.head_size).permute(1, 2, 3, 0).unbind(0)
        return query, key
