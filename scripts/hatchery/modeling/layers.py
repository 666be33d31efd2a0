"""Modules that several families share: attention block, feed-forward block, layer, and heads of pretraining.

Families differ in the arguments of these modules. Sources: "Attention Is All You Need", Section 3.2; ELC-BERT,
Equations 2 and 5; LTG-BERT, Section 4 (GEGLU after Shazeer, NormFormer's inner norm), Table 2 (ablations), Appendix C
(post-norm) and Section 5.2 (the sentence-pair head). LTG-BERT's published training code does not pass the sentence-pair
head to the optimiser (docs/papers/ltg-bert.md, "Sentence pairs"). Here the head is a part of the model, so it is
trained, and gradient clipping includes its gradient.
"""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, Packing, attend, join_heads, split_heads
from hatchery.modeling.block_sums import BlockSums
from hatchery.modeling.configuration import EncoderSizes, ModelConfig
from hatchery.modeling.layer_weighting import LayerWeighting
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, full_precision


def word_vectors(embedding: nn.Embedding, tokens: Tensor) -> Tensor:
    """Return the rows [B, T, E] of `embedding` for token ids int64 [B, T]. Word vectors [B, T, E] are returned
    unchanged.
    """
    vectors: Tensor = tokens if tokens.is_floating_point() else embedding(tokens)
    return vectors


class FeedForward(nn.Module):
    """Feed-forward block without residual: [norm,] projection, activation, [norm,] projection back, dropout."""

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
        silu: bool = False,
        pre_layer_norm: nn.Module | None = None,
        inner_layer_norm: LayerNorm | None = None,
    ) -> None:
        """Create the block. Its activation is the GELU: the exact form (error function) if `exact_gelu` is true, else
        the tanh form.

        If `relu` is true, the ReLU replaces the GELU. In a gated block, if `silu` is true, the SiLU replaces the GELU.
        """
        super().__init__()
        self.silu = silu
        self.gated, self.relu, self.approximate = gated, relu, "none" if exact_gelu else "tanh"
        self.pre_layer_norm = pre_layer_norm
        self.input_projection = nn.Linear(hidden_size, (1 + gated) * intermediate_size, bias=bias)
        self.inner_layer_norm = inner_layer_norm
        self.output_projection = nn.Linear(intermediate_size, hidden_size, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform `hidden` [..., D] position by position."""
        if self.pre_layer_norm is not None:
            hidden = self.pre_layer_norm(hidden)
        inner = self._activation(self.input_projection(hidden))
        if self.inner_layer_norm is not None:
            inner = self.inner_layer_norm(inner)
        return self.dropout(self.output_projection(inner))

    def _activation(self, projected: Tensor) -> Tensor:
        if self.relu:
            return F.relu(projected)
        if not self.gated:
            return F.gelu(projected, approximate=self.approximate)
        value, gate = projected.chunk(2, dim=-1)
        if self.silu:
            return value * F.silu(gate)
        # Make the gate contiguous: on the CPU, a copy and the GELU of the copy together take half the time of the GELU
        # of the strided gate.
        return value * F.gelu(gate.contiguous(), approximate=self.approximate)


class MultiHeadAttention(nn.Module):
    """Attention block without residual: [norm,] projections to queries, keys and values, attention, output projection,
    dropout.

    LTG-BERT's attention with relative positions is in `ltg.attention`.
    """

    def __init__(
        self, config: EncoderSizes, pre_layer_norm: LayerNorm | None = None, *, queries_first: bool = False
    ) -> None:
        """Create the block. If `queries_first` is true, the queries are computed before the keys and values, else after
        them.

        The order of computation determines the order in which gradients are summed, and so the last bits of learned
        weights.
        """
        super().__init__()
        size, self.queries_first = config.hidden_size, queries_first
        self.n_heads = config.num_attention_heads
        self.scale = 1 / math.sqrt(config.head_size)
        self.pre_layer_norm = pre_layer_norm
        self.query_projection = nn.Linear(size, size)
        self.key_projection = nn.Linear(size, size)
        self.value_projection = nn.Linear(size, size)
        self.output_projection = nn.Linear(size, size)
        self.probability_dropout = Dropout(config.attention_probs_dropout_prob)
        self.output_dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Return the output [B, T, D] of the block for `hidden` [B, T, D]. Every token attends to the tokens that the
        mask allows.

        If a packing is given, input and result are [N, D], for the packing's N positions. If `inputs.query_rows`
        selects one query per sequence, the result is [B, D].
        """
        states, mask, rows = self.normalised(hidden), inputs.mask, inputs.query_rows
        asking = states if rows is None else states.flatten(0, 1).index_select(0, rows)[:, None]
        queries = self.queries(asking, inputs.packing) if self.queries_first else None
        keys, values = self.keys_and_values(states, inputs.packing)
        if queries is None:
            queries = self.queries(asking, inputs.packing)
        if inputs.cache is not None:
            keys, values = inputs.cache.extended(keys, values)
        if rows is not None and mask is not None and mask.dim() == 3:
            mask = mask.flatten(0, 1).index_select(0, rows)[:, None]
        output = self.attended(queries, keys, values, mask, inputs.packing, inputs.probabilities)
        return output if rows is None else output.squeeze(1)

    def normalised(self, hidden: Tensor) -> Tensor:
        """Return `hidden`, normalised if the model is pre-norm. The result is the input of the query projection and, in
        self-attention, of the key and value projections.
        """
        return hidden if self.pre_layer_norm is None else self.pre_layer_norm(hidden)

    def keys_and_values(self, states: Tensor, packing: Packing | None = None) -> tuple[Tensor, Tensor]:
        """Return keys and values [B, H, S, d] of `states` [B, S, D]."""
        key, value = self.key_projection(states), self.value_projection(states)
        return split_heads(key, self.n_heads, packing), split_heads(value, self.n_heads, packing)

    def queries(self, normalised: Tensor, packing: Packing | None = None) -> Tensor:
        """Return queries [B, H, T, d] of `normalised` [B, T, D]."""
        return split_heads(self.query_projection(normalised), self.n_heads, packing)

    def attended(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        packing: Packing | None = None,
        kept: list[Tensor] | None = None,
    ) -> Tensor:
        """Return the output [B, T, D] of the attention block for `queries` [B, H, T, d]. For `mask` and `kept`, see
        `attend`.
        """
        context = attend(queries, keys, values, self.scale, mask, self.probability_dropout, kept=kept)
        return self.output_dropout(self.output_projection(join_heads(context, packing)))


class EncoderLayer(nn.Module):
    """A transformer layer: an attention block and a feed-forward block, connected by residuals or by a layer weighting.

    With post-norm, the layer computes `x = norm(x + attention(x))`, then `x = norm(x + feed_forward(x))`, where the
    norms are `attention_norm` and `feed_forward_norm`. If these are None, the residual sums are not normalised. Options
    change the sums:

    - If `residual_scaling` is true, the second sum is `scale * x + feed_forward(x)`.
    - If the layer weighting excludes the layer's input from the layer's output (ELC-BERT), the residual of the second
      sum is `norm(attention(x))` instead of x.
    - If the layer weighting has weights between blocks, a weighted combination of all sums so far follows each of the
      two sums.
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

    def forward(self, hidden: Tensor, inputs: AttentionInputs, sums: BlockSums | None = None, index: int = 0) -> Tensor:
        """Return the output of the layer for `hidden` [B, T, D], or for [N, D] if a packing with N positions is given.
        If `inputs.query_rows` selects one query per sequence, the output is [B, D].

        If the layer weighting has weights between blocks, the layer adds its residual sums to `sums`; `index` is the
        layer's position in the stack, from 0.
        """
        attention = self.attention(hidden, inputs)
        if inputs.query_rows is not None:
            hidden = hidden.flatten(0, 1).index_select(0, inputs.query_rows)
        if sums is not None:
            hidden = sums.combined(2 * index, self._normalised(hidden + attention))
            scaled = hidden if self.residual_scale is None else hidden * self.residual_scale
            output = scaled + self.feed_forward(hidden)
            return sums.combined(
                2 * index + 1, output if self.feed_forward_norm is None else self.feed_forward_norm(output)
            )
        weighting = self.weighting
        # The layer has two residual sums, one with and one without the layer's input. Compute a sum only if it is used.
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


class VocabularyHead(nn.Module, ABC):
    """A head that computes logits over the vocabulary from hidden states. The output matrix is the word embedding, or a
    parameter of the head in untied models.
    """

    vocabulary_bias: nn.Parameter | None
    """fp32 [V]; None in a head without a bias."""
    vocabulary_weight: nn.Parameter | None
    """fp32 [V, D]; None if the output matrix is the word embedding."""

    def add_output_layer(self, config: ModelConfig) -> None:
        """Register output bias and output matrix; subclasses call this method last in their constructor."""
        rows, tied = config.vocabulary_rows, config.tie_word_embeddings
        self.vocabulary_bias = nn.Parameter(torch.zeros(rows)) if config.vocabulary_bias else None
        self.vocabulary_weight = None if tied else nn.Parameter(torch.zeros(rows, config.hidden_size))

    @abstractmethod
    def features(self, hidden: Tensor) -> Tensor:
        """Return the features that the output matrix multiplies: [..., D] from hidden states [..., D]."""

    def forward(self, hidden: Tensor, word_embedding: Tensor) -> Tensor:
        """Return logits [..., V] of `hidden` [..., D]; `word_embedding` is the output matrix [V, D] of tied models."""
        weight = word_embedding if self.vocabulary_weight is None else self.vocabulary_weight
        return F.linear(self.features(hidden), weight, self.vocabulary_bias)


class SentencePairHead(nn.Module):
    """Head for sentence pairs: norm, linear layer, exact GELU, dropout, norm, linear layer to one logit."""

    def __init__(self, hidden_size: int, layer_norm_eps: float, dropout: float) -> None:
        super().__init__()
        self.pre_layer_norm = LayerNorm(hidden_size, layer_norm_eps)
        self.linear = nn.Linear(hidden_size, hidden_size)
        self.dropout = Dropout(dropout)
        self.post_layer_norm = LayerNorm(hidden_size, layer_norm_eps)
        self.output = nn.Linear(hidden_size, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return logits [B] in full precision from the states [B, D] of the first token. A logit above 0 means that the
        two texts of the input are predicted to belong together.
        """
        hidden = F.gelu(self.linear(self.pre_layer_norm(hidden)))
        return full_precision(self.output(self.post_layer_norm(self.dropout(hidden)))).squeeze(-1)
