"""LTG-BERT's self-attention, with disentangled content and position scores, or without position scores.

Source: LTG-BERT, Section 4 (after DeBERTa), in the form of the published code (docs/papers/ltg-bert.md, "Attention"):
tokens and positions share one query-key projection. Table 2 of the paper lists the ablations. Large distances between
tokens share a row of the relative embedding. The position scores of each token are computed once per row, and then
looked up for each pair of tokens. This avoids tensors of the size T x T x hidden_size (benchmarks/attention.py).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, attend, join_heads, split_heads
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, full_precision
from hatchery.modeling.relative_positions import PositionIndices


class DisentangledSelfAttention(nn.Module):
    """Attention block without residual: [norm,] attention, output projection, [affine norm,] dropout.

    NormFormer models have the first norm and the affine norm; pre-norm models have only the first norm. Post-norm
    models have no norm in this block, because `EncoderLayer` normalises the residual sum.
    """

    def __init__(self, config: Any) -> None:
        """Create the block; `config` is an `LtgBertConfig`, or the configuration of another family with the same
        settings.
        """
        super().__init__()
        size, eps = config.hidden_size, config.layer_norm_eps
        self.n_heads, self.head_size = config.num_attention_heads, config.head_size
        self.is_relative = config.position_embedding == "relative"
        self.position_bucket_size = config.position_bucket_size
        # The score is a sum of three products (content, query-to-position, position-to-key), hence the factor 3
        # (LTG-BERT, Section 4).
        self.scale = 1 / math.sqrt((3 if self.is_relative else 1) * self.head_size)
        self.position_head_layout = config.position_head_layout
        self.exchanged_position_query = config.position_to_content_index == "key_minus_query"
        has_pre_norm, has_post_norm = config.normalisation != "post_norm", config.normalisation == "normformer"
        self.pre_layer_norm = LayerNorm(size, eps, affine=config.affine_block_norms) if has_pre_norm else None
        # Two parameters, as in the published models. One joint parameter would change training, because LAMB computes
        # one trust ratio per parameter.
        self.query_key_projection = nn.Linear(size, 2 * size)
        self.value_projection = nn.Linear(size, size)
        self.head_scale = nn.Parameter(torch.ones(self.n_heads)) if config.head_scaling else None
        self.output_projection = nn.Linear(size, size)
        self.post_layer_norm = LayerNorm(size, eps, affine=True) if has_post_norm else None
        self.dropout = Dropout(config.attention_probs_dropout_prob)
        # Optional function, such as a GPU kernel, that computes scores and context in one operation.
        self.attend_at_once: Callable[..., Tensor] | None = None

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Return the output [B, T, D] of the block for `hidden` [B, T, D]. Every token attends to the tokens of its
        sequence that the mask allows.

        If a packing is given, input and result are [N, D], for the packing's N positions. If `inputs.query_rows`
        selects one query per sequence, which requires evaluation mode, the result is [B, D]. The output of a query that
        may attend to no key is finite but meaningless.
        """
        if self.pre_layer_norm is not None:
            hidden = self.pre_layer_norm(hidden)
        if inputs.query_rows is not None:
            asking = hidden.flatten(0, 1).index_select(0, inputs.query_rows)
            return self.closed(self._context_at_one(hidden, inputs, inputs.query_rows), self._value_and_gate(asking)[1])
        packing = inputs.packing
        keeps_nothing = inputs.cache is None and packing is None and inputs.probabilities is None
        if self.attend_at_once is not None and keeps_nothing:
            return self._at_once(self.attend_at_once, hidden, inputs)
        query, key = self.query_key(hidden, inputs)
        value, gate = self._value_and_gate(hidden)
        value = split_heads(value, self.n_heads, packing)
        if inputs.cache is not None:
            key, value = inputs.cache.extended(key, value)
        position_scores = None
        if self.is_relative:
            assert inputs.relative_embedding is not None and inputs.positions is not None
            position_scores = self._position_scores(query, key, inputs.relative_embedding, inputs.positions)
        context = attend(
            query, key, value, self.scale, inputs.mask, self.dropout, position_scores, inputs.probabilities
        )
        return self.closed(join_heads(context, packing), gate)

    def scores(self, hidden: Tensor, relative_embedding: Tensor, positions: PositionIndices) -> Tensor:
        """Return scaled scores [B, H, T, T] of query i and key j before masking, for the normalised `hidden` [B, T, D].

        `relative_embedding` is the relative embedding after its layer norm, [2 * bucket_size - 1, D].
        """
        query, key = self.query_key(hidden, AttentionInputs())
        position_scores = self._position_scores(query, key, relative_embedding, positions)
        return query @ key.transpose(2, 3) * self.scale + position_scores

    def _value_and_gate(self, hidden: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the values [..., D] of the normalised `hidden` [..., D], and None. In blocks that gate the attention's
        result, a subclass returns the gate [..., D] instead of None.
        """
        return self.value_projection(hidden), None

    def _value_parameters(self) -> tuple[Tensor, Tensor]:
        """Return weight [D, D] and bias [D] of the value projection."""
        return self.value_projection.weight, self.value_projection.bias

    def closed(self, context: Tensor, gate: Tensor | None = None) -> Tensor:
        """Return the output of the block, given `context` [..., D], the concatenated results of all heads. Only
        subclasses use `gate` [..., D].
        """
        if self.head_scale is not None:
            context = context * self.head_scale.repeat_interleave(self.head_size)
        output = self.output_projection(context)
        return self.dropout(output if self.post_layer_norm is None else self.post_layer_norm(output))

    def _at_once(self, attend_at_once: Callable[..., Tensor], hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Return the result of `forward`, with scores and context computed by the function `attend_at_once`, such as a
        GPU kernel. `hidden` [B, T, D] is already normalised.
        """
        positions = inputs.positions
        assert inputs.relative_embedding is not None and positions is not None
        position_query, position_key = self.position_vectors(self.dropout(positions.reached(inputs.relative_embedding)))
        query_key = self.query_key_projection(hidden)
        value, gate = self._value_and_gate(hidden)
        context = attend_at_once(
            query_key,
            value,
            position_key.transpose(1, 2),
            position_query.transpose(1, 2),
            positions.row_of_distance,
            positions.first_distance,
            inputs.mask,
            self.dropout,
            self.n_heads,
            self.scale,
        )
        return self.closed(context, gate)

    def _context_at_one(self, hidden: Tensor, inputs: AttentionInputs, query_rows: Tensor) -> Tensor:
        """Return the context [B, D] of one query per sequence, at the flat positions `query_rows` int64 [B]. `hidden`
        [B, T, D] is already normalised.
        """
        vectors = None
        if self.is_relative:
            assert inputs.relative_embedding is not None and inputs.positions is not None
            table = inputs.positions.reached(inputs.relative_embedding)
            vectors = PositionVectors(*self.position_vectors(table), inputs.positions)
        projections = (self.query_key_projection, *self._value_parameters())
        return context_at_one(hidden, query_rows, inputs.mask, *projections, self.n_heads, self.scale, vectors)

    def query_key(self, hidden: Tensor, inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
        """Return queries and keys [B, H, T, d] of the normalised `hidden` [B, T, D]."""
        projected = split_heads(self.query_key_projection(hidden), 2 * self.n_heads, inputs.packing)
        # Make queries and keys contiguous, because each of several products would make its own copy of a strided
        # tensor.
        query, key = projected.unflatten(1, (2, self.n_heads)).transpose(0, 1).contiguous().unbind(0)
        return query, key

    def _position_scores(
        self, query: Tensor, key: Tensor, relative_embedding: Tensor, positions: PositionIndices
    ) -> Tensor:
        """Return scaled position scores [B, H, T, S] of `query` [B, H, T, d] and `key` [B, H, S, d]."""
        batch, heads, length, width = query.shape
        position_query, position_key = self.position_vectors(self.dropout(positions.reached(relative_embedding)))
        # Scale the factors of the product instead of the scores, because the factors are smaller than the T x T scores.
        shape = (batch, heads, width, positions.n_rows)
        by_query = torch.bmm(query.flatten(0, 1), (position_key * self.scale).expand(shape).flatten(0, 1))
        by_key = torch.bmm(key.flatten(0, 1), (position_query * self.scale).expand(shape).flatten(0, 1))
        # Look up scores in fp32, also under autocast, for two reasons. In the backward pass, the gradients of many
        # (query, key) pairs are summed into one element of the table. On the CPU, lookups in fp32 are faster; there,
        # index_select from the flattened table is also faster than torch.gather.
        scores = full_precision(by_query).flatten(1).index_select(1, positions.by_query)
        scores += full_precision(by_key).flatten(1).index_select(1, positions.by_key)
        return scores.view(batch, heads, length, key.shape[2])

    def position_vectors(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """Return position queries and position keys for the rows of the relative embedding, each [H, d, rows].

        If the setting `position_head_layout` is "babylm", the outputs of the projection are first all queries and then
        all keys, as for tokens. If the setting is "bnc", as in LTG-BERT's BNC code, each head has 2d consecutive
        outputs: d for the query and d for the key.
        """
        projected = self.query_key_projection(table)
        if self.position_head_layout == "bnc":
            query, key = projected.view(-1, self.n_heads, 2, self.head_size).permute(2, 1, 3, 0).unbind(0)
        else:
            query, key = projected.view(-1, 2, self.n_heads, self.head_size).permute(1, 2, 3, 0).unbind(0)
        if self.exchanged_position_query:
            # Buckets are symmetric: the row of distance j - i is the row of distance i - j, counted from the end.
            query = query.flip(-1)
        return query, key


class PositionVectors(NamedTuple):
    """Position queries and position keys of one layer, and the indices that select the position score of each pair of
    tokens.
    """

    query: Tensor
    """Position queries [H, d, rows], unscaled."""
    key: Tensor
    """Position keys [H, d, rows], unscaled."""
    indices: PositionIndices


def context_at_one(
    hidden: Tensor,
    query_rows: Tensor,
    mask: Tensor | None,
    query_key: nn.Linear,
    value_weight: Tensor,
    value_bias: Tensor,
    n_heads: int,
    scale: float,
    vectors: PositionVectors | None,
) -> Tensor:
    """Return the context [B, D] of one query per sequence, at the positions `query_rows`, int64 [B]; a position is the
    flat index b * T + t.

    The last layer uses this function if only one prediction per sequence is requested. Up to rounding, the result
    equals the result of `DisentangledSelfAttention`, except for a query that may attend to no key. The products are
    computed in another order, because `q . (W x_j) = (W^T q) . x_j`: the matrices of keys and values multiply one
    vector per head and sequence, instead of every token.

    `hidden` [B, T, D] is already normalised. `mask` is bool [B, T] or [B, T, T] as in `attend`. `vectors` is None
    without relative positions. There is no dropout.
    """
    batch, length, size = hidden.shape
    at = query_rows % length
    # `query` contains the scaled queries [H, B, d].
    query = F.linear(hidden.flatten(0, 1).index_select(0, query_rows), query_key.weight[:size], query_key.bias[:size])
    query = (query * scale).view(batch, n_heads, -1).transpose(0, 1)
    key_weight = query_key.weight[size:].view(n_heads, -1, size)
    # The bias of the keys is omitted: it adds the same number to all scores of a query, which does not change the
    # softmax.
    key_query = torch.bmm(query, key_weight).transpose(0, 1)
    scores = torch.bmm(key_query, hidden.transpose(1, 2))
    if vectors is not None:
        key_bias = query_key.bias[size:].view(n_heads, 1, -1)
        scores += _position_scores(hidden, at, query, key_weight, key_bias, scale, vectors)
    if mask is not None:
        mask = mask if mask.dim() == 2 else mask[torch.arange(batch, device=mask.device), at]
        scores.masked_fill_(~mask[:, None], torch.finfo(scores.dtype).min)
    mixed = torch.bmm(torch.softmax(scores, dim=-1), hidden).transpose(0, 1)
    context = torch.bmm(mixed, value_weight.view(n_heads, -1, size).transpose(1, 2))
    return context.transpose(0, 1).reshape(batch, size) + value_bias


def _position_scores(
    hidden: Tensor,
    at: Tensor,
    query: Tensor,
    key_weight: Tensor,
    key_bias: Tensor,
    scale: float,
    vectors: PositionVectors,
) -> Tensor:
    """Return position scores [B, H, T] of one query per sequence with all T keys, multiplied by `scale`. `query` [H, B,
    d] contains the queries, already multiplied by `scale`; their positions are `at` int64 [B].

    `key_weight` [H, d, D] and `key_bias` [H, 1, d] are the parameters of the key projection.
    """
    batch, length, size = hidden.shape
    n_heads, n_rows = len(query), vectors.indices.n_rows
    columns = vectors.indices.columns(length).index_select(0, at)
    position_query = vectors.query * scale
    by_query = torch.bmm(query, vectors.key) + torch.bmm(key_bias, position_query)
    scores = by_query.transpose(0, 1).gather(2, columns[:, None].expand(-1, n_heads, -1))
    by_rows = torch.bmm(key_weight.transpose(1, 2), position_query).transpose(0, 1).reshape(size, n_heads * n_rows)
    by_key = (hidden.flatten(0, 1) @ by_rows).view(batch, length, n_heads, n_rows)
    chosen = columns[:, :, None, None].expand(-1, -1, n_heads, 1)
    return scores + by_key.gather(3, chosen).squeeze(3).transpose(1, 2)
