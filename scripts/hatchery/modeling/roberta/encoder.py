"""The encoder of the RoBERTa-like family: summed embeddings, an optional projection, and post-norm layers.

Source: the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Families of models"). The mask is
obeyed as it is given: that the study let its models attend to padding is a setting of the objective, not of the model.
"""

from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.attention_inputs import AttentionInputs
from hatchery.modeling.encoder_layer import EncoderLayer
from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layered_encoder import LayeredEncoder
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm
from hatchery.modeling.roberta.attention import RobertaSelfAttention
from hatchery.modeling.roberta.configuration import PADDING_POSITION, RobertaConfig


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
