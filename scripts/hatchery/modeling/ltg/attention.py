"""Self-attention with disentangled content and position scores, and without positions for the absolute ablation.

Source: LTG-BERT, Section 4 (after DeBERTa) in the form of the published code (docs/papers/ltg-bert.md, "Attention"):
one query-key projection for tokens and positions; Table 2 for the ablations. Position scores are computed once per
bucket and then looked up for every pair of tokens, so nothing of the size T x T x hidden_size is ever made
(benchmarks/attention.py).
"""

import math

import torch
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, attend, join_heads, split_heads
from hatchery.modeling.bf16_on_cpu import attend_in_blocks, in_bf16_on_cpu, norm_for_product
from hatchery.modeling.ltg.attention_at_one import PositionVectors, context_at_one
from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.modeling.ltg.relative_positions import PositionIndices
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, full_precision


class DisentangledSelfAttention(nn.Module):
    """The attention block: [norm,] attention, output projection, [affine norm,] dropout. No residual inside.

    NormFormer has both norms, pre-norm the first alone, and post-norm none: there the layer normalises its sums.
    """

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        size, eps = config.hidden_size, config.layer_norm_eps
        self.n_heads, self.head_size = config.num_attention_heads, config.head_size
        self.is_relative = config.position_embedding == "relative"
        # Content, query-to-position and position-to-key scores are added, hence 3 (LTG-BERT, Section 4).
        self.scale = 1 / math.sqrt((3 if self.is_relative else 1) * self.head_size)
        self.position_head_layout = config.position_head_layout
        self.exchanged_position_query = config.position_to_content_index == "key_minus_query"
        has_pre_norm, has_post_norm = config.normalisation != "post_norm", config.normalisation == "normformer"
        self.pre_layer_norm = LayerNorm(size, eps, affine=config.affine_block_norms) if has_pre_norm else None
        # Two parameters and not one: LAMB's trust ratio is per tensor, and the published models have these two.
        self.query_key_projection = nn.Linear(size, 2 * size)
        self.value_projection = nn.Linear(size, size)
        self.head_scale = nn.Parameter(torch.ones(self.n_heads)) if config.head_scaling else None
        self.output_projection = nn.Linear(size, size)
        self.post_layer_norm = LayerNorm(size, eps, affine=True) if has_post_norm else None
        self.dropout = Dropout(config.attention_probs_dropout_prob)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Attend from every token of `hidden` [B, T, D] to the tokens of its sequence; returns [B, T, D].

        With a packing both are [N, D]: only the attention between the projections lays the tokens out as sequences.
        With `inputs.query_rows` it is [B, D], in evaluation mode. A query that may attend to nothing gets finite values
        without meaning.
        """
        if self.pre_layer_norm is not None:
            hidden = norm_for_product(self.pre_layer_norm, hidden)
        if inputs.query_rows is not None:
            return self._closed(self._context_at_one(hidden, inputs, inputs.query_rows))
        packing = inputs.packing
        # Blocks are for whole texts, whose queries and keys are the same tokens.
        if in_bf16_on_cpu(hidden) and inputs.cache is None:
            return self._closed(self._context_in_blocks(hidden, inputs))
        query, key = self._query_key(hidden, inputs)
        value = split_heads(self.value_projection(hidden), self.n_heads, packing)
        if inputs.cache is not None:
            key, value = inputs.cache.extended(key, value)
        position_scores = None
        if self.is_relative:
            assert inputs.relative_embedding is not None and inputs.positions is not None
            position_scores = self._position_scores(query, key, inputs.relative_embedding, inputs.positions)
        context = attend(query, key, value, self.scale, inputs.mask, self.dropout, position_scores)
        return self._closed(join_heads(context, packing))

    def scores(self, hidden: Tensor, relative_embedding: Tensor, positions: PositionIndices) -> Tensor:
        """Scaled scores [B, H, T, T] of query i and key j, before masking, of the normalised `hidden` [B, T, D].

        `relative_embedding` is the normalised table [2 * bucket_size - 1, D].
        """
        query, key = self._query_key(hidden, AttentionInputs())
        position_scores = self._position_scores(query, key, relative_embedding, positions)
        return query @ key.transpose(2, 3) * self.scale + position_scores

    def _closed(self, context: Tensor) -> Tensor:
        """The block's output from the joined heads' context."""
        if self.head_scale is not None:
            context = context * self.head_scale.repeat_interleave(self.head_size)
        output = self.output_projection(context)
        return self.dropout(output if self.post_layer_norm is None else self.post_layer_norm(output))

    def _context_in_blocks(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """The context of the normalised `hidden`, as `forward` has it, in bf16."""
        tables, packing = None, inputs.packing
        projected = self.query_key_projection(hidden), self.value_projection(hidden)
        query_key, value = projected if packing is None else map(packing.unpack, projected)
        if self.is_relative:
            assert inputs.relative_embedding is not None and inputs.positions is not None
            table = self.dropout(inputs.positions.reached(inputs.relative_embedding))
            position_query, position_key = self._position_vectors(table)
            tables = position_key, position_query
        of = (inputs.positions, inputs.mask, self.dropout, self.n_heads, self.scale)
        context = attend_in_blocks(query_key, value, tables, *of)
        return context if packing is None else packing.pack(context)

    def _context_at_one(self, hidden: Tensor, inputs: AttentionInputs, query_rows: Tensor) -> Tensor:
        """The context [B, D] of one query per sequence of the normalised `hidden`."""
        vectors = None
        if self.is_relative:
            assert inputs.relative_embedding is not None and inputs.positions is not None
            table = inputs.positions.reached(inputs.relative_embedding)
            vectors = PositionVectors(*self._position_vectors(table), inputs.positions)
        projections = (self.query_key_projection, self.value_projection)
        return context_at_one(hidden, query_rows, inputs.mask, *projections, self.n_heads, self.scale, vectors)

    def _query_key(self, hidden: Tensor, inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
        """Query and key [B, H, T, d] of the normalised `hidden`."""
        projected = split_heads(self.query_key_projection(hidden), 2 * self.n_heads, inputs.packing)
        # Both are read by several products, each of which would make its own copy of a strided one.
        query, key = projected.unflatten(1, (2, self.n_heads)).transpose(0, 1).contiguous().unbind(0)
        return query, key

    def _position_scores(
        self, query: Tensor, key: Tensor, relative_embedding: Tensor, positions: PositionIndices
    ) -> Tensor:
        """Scaled position scores [B, H, T, S] of `query` [B, H, T, d] and `key` [B, H, S, d]."""
        batch, heads, length, width = query.shape
        position_query, position_key = self._position_vectors(self.dropout(positions.reached(relative_embedding)))
        # The scale is applied to the small tensors and never to a T x T one.
        shape = (batch, heads, width, positions.n_rows)
        by_query = torch.bmm(query.flatten(0, 1), (position_key * self.scale).expand(shape).flatten(0, 1))
        by_key = torch.bmm(key.flatten(0, 1), (position_query * self.scale).expand(shape).flatten(0, 1))
        # In fp32 also under autocast: many gradients are summed into one bucket, and the CPU looks fp32 up faster. On
        # the CPU index_select from the flattened table is faster than torch.gather, forward and backward.
        scores = full_precision(by_query).flatten(1).index_select(1, positions.by_query)
        scores += full_precision(by_key).flatten(1).index_select(1, positions.by_key)
        return scores.view(batch, heads, length, key.shape[2])

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
        if self.exchanged_position_query:
            # Buckets are symmetric: row r of distance j - i is the r-th row from the end for distance i - j.
            query = query.flip(-1)
        return query, key
