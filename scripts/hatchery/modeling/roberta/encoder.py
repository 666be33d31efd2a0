"""The modules of the RoBERTa-like family: summed embeddings, an optional projection, post-norm layers, and the head.

Source: the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Families of models"). The mask is
obeyed as it is given: that the study let its models attend to padding is a setting of the objective, not of the model.
The output matrix is the word embedding in the tied models and a parameter of the head in the others; it covers the
spare rows of the vocabulary, too.
"""

import math

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.attention import AttentionInputs, attend, join_heads, split_heads
from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layered_encoder import EncoderLayer, LayeredEncoder
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm
from hatchery.modeling.pretraining_heads import VocabularyHead
from hatchery.modeling.roberta.configuration import PADDING_POSITION, RobertaConfig


class RobertaSelfAttention(nn.Module):
    """The attention block: attention, output projection, dropout. Neither norm nor residual inside."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.n_heads = config.num_attention_heads
        self.scale = 1 / math.sqrt(config.head_size)
        self.query_projection = nn.Linear(size, size)
        self.key_projection = nn.Linear(size, size)
        self.value_projection = nn.Linear(size, size)
        self.output_projection = nn.Linear(size, size)
        self.probability_dropout = Dropout(config.attention_probs_dropout_prob)
        self.output_dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Attend from every token of `hidden` [B, T, D] to those that the mask allows; returns [B, T, D].

        With a packing both are [N, D]; with `inputs.query_rows` the result is [B, D].
        """
        projections, mask = (self.query_projection, self.key_projection, self.value_projection), inputs.mask
        if inputs.query_rows is None:
            asking = hidden
        else:
            asking = hidden.flatten(0, 1).index_select(0, inputs.query_rows)[:, None]
            if mask is not None and mask.dim() == 3:
                mask = mask.flatten(0, 1).index_select(0, inputs.query_rows)[:, None]
        states = (asking, hidden, hidden)
        query, key, value = (
            split_heads(project(state), self.n_heads, inputs.packing)
            for project, state in zip(projections, states, strict=True)
        )
        if inputs.cache is not None:
            key, value = inputs.cache.extended(key, value)
        context = attend(query, key, value, self.scale, mask, self.probability_dropout)
        output = self.output_dropout(self.output_projection(join_heads(context, inputs.packing)))
        return output if inputs.query_rows is None else output.squeeze(1)


class RobertaHead(VocabularyHead):
    """Linear layer, exact GELU, norm, and the product with the output matrix. No dropout."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.linear = nn.Linear(size, size)
        self.layer_norm = LayerNorm(size, config.layer_norm_eps, affine=True)
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with, [..., D] from `hidden` [..., D]."""
        normalised: Tensor = self.layer_norm(F.gelu(self.linear(hidden)))
        return normalised


def position_ids(input_ids: Tensor, pad_token_id: int, mask: Tensor | None = None) -> Tensor:
    """Rows int64 [B, T] of the position table for `input_ids` int64 [B, T].

    Tokens count from 2 and padding, told by its id as in the published code, gets 1: where padding is attended to,
    there is no mask that could tell it. With a `mask` [B, T, T] (several texts packed into one input) a token counts
    those before it that it may attend to, so every text has the positions that it has alone.
    """
    is_token = input_ids != pad_token_id
    if mask is not None and mask.dim() == 3:
        counted = (mask & is_token[:, None, :]).tril().sum(dim=2)
    else:
        counted = is_token.cumsum(dim=1)
    return counted * is_token + PADDING_POSITION


class RobertaEmbedding(nn.Module):
    """Sum of word, position and token-type embedding, norm, dropout."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        width, self.pad_token_id = config.embedding_width, config.pad_token_id
        self.most_tokens = config.max_position_embeddings
        # As in RoBERTa, a lookup of padding gives its row no gradient; a tied output layer still does.
        self.word_embedding = nn.Embedding(config.vocabulary_rows, width, padding_idx=config.pad_token_id)
        self.position_embedding = nn.Embedding(config.position_rows, width, padding_idx=PADDING_POSITION)
        self.token_type_embedding = nn.Embedding(config.type_vocab_size, width)
        self.layer_norm = LayerNorm(width, config.layer_norm_eps, affine=True)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, mask: Tensor | None) -> Tensor:
        """Embed `input_ids` int64 [B, T] as [B, T, E]. Raises ModelError when there are more tokens than positions."""
        length = input_ids.shape[1]
        if length > self.most_tokens:
            raise ModelError(f"a sequence of {length} tokens: the model has absolute positions for {self.most_tokens}")
        positions = self.position_embedding(position_ids(input_ids, self.pad_token_id, mask))
        summed = self.word_embedding(input_ids) + self.token_type_embedding.weight[0] + positions
        return self.dropout(self.layer_norm(summed))


class RobertaEncoder(LayeredEncoder):
    """Embedding, projection and norm where the configuration has an `embedding_size`, and post-norm layers.

    `weighting` is the record that `config.layer_weighting` names; another record can be handed in to study a
    connection of layers that has no name.
    """

    def __init__(self, config: RobertaConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = RobertaEmbedding(config)
        # The projection is applied also where both widths are equal; no dropout and no activation follow it.
        self.projection: nn.Linear | None = None
        self.projection_layer_norm: LayerNorm | None = None
        if config.embedding_size is not None:
            self.projection = nn.Linear(config.embedding_size, config.hidden_size)
            self.projection_layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps, affine=True)
        self.add_layers(self._layer(config) for _ in range(config.num_hidden_layers))

    def _layer(self, config: RobertaConfig) -> EncoderLayer:
        size, inner, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
        feed_forward = FeedForward(size, inner, config.hidden_dropout_prob, gated=False, bias=True, exact_gelu=True)
        norms = [LayerNorm(size, eps, affine=True) for _ in range(2)]
        return EncoderLayer(RobertaSelfAttention(config), feed_forward, self.weighting, size, eps, *norms)

    @property
    def word_embedding(self) -> nn.Embedding:
        """The word embedding [V, E]."""
        return self.embedding.word_embedding

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Embedded and projected tokens [B, T, D] of int64 [B, T], and the mask for the layers."""
        tokens: Tensor = self.embedding(input_ids, attention_mask)
        if self.projection is not None and self.projection_layer_norm is not None:
            tokens = self.projection_layer_norm(self.projection(tokens))
        return tokens, AttentionInputs(mask=attention_mask)
