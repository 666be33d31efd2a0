"""The modules of the RoBERTa-like family, their initial weights, and the number of their parameters.

Source: the code of the reduced-vocabulary study, "Honey, I Shrunk the Language" (docs/papers/reduced-vocabulary.md,
"Families of models").

The encoder sums the embeddings of words, positions and token types, optionally projects the sum, and has post-norm
layers. In tied models the output matrix is the word embedding; in untied models the output matrix is a parameter of the
head. Word embedding and output matrix have additional rows beyond the vocabulary. The model applies every attention
mask unchanged. In the reduced-vocabulary study, tokens attend to padding. With the setting `padding_attended` of the
masked objective, the attention masks allow this attention.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.attention import AttentionInputs
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.initialisation import normal_, xavier_deviation
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layers import EncoderLayer, FeedForward, MultiHeadAttention, VocabularyHead, word_vectors
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm
from hatchery.modeling.roberta.config import PADDING_POSITION, RobertaConfig


class RobertaHead(VocabularyHead):
    """Language-model head: linear layer, exact GELU, norm, and the product with the output matrix, without dropout."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.linear = nn.Linear(size, size)
        self.layer_norm = LayerNorm(size, config.layer_norm_eps, affine=True)
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """Return the features that the output matrix multiplies, [..., D] from `hidden` [..., D]."""
        normalised: Tensor = self.layer_norm(F.gelu(self.linear(hidden)))
        return normalised


def position_ids(input_ids: Tensor, pad_token_id: int, mask: Tensor | None = None) -> Tensor:
    """Return, for each position of `input_ids`, the index of its row in the position table: int64 [B, T].

    The first token has row 2, and padding has row 1. Padding is recognised by its id, as in the code of the
    reduced-vocabulary study ("Honey, I Shrunk the Language"), and not by `mask`: models that attend to padding get a
    mask that is True at padding, or no mask. If `input_ids` are word vectors [B, T, E], padding is recognised by `mask`
    bool [B, T] (None: no padding). If `mask` is [B, T, T] (several texts packed into one input), the positions of each
    text are counted separately.
    """
    is_token = input_ids != pad_token_id
    if input_ids.is_floating_point():
        is_token = mask if mask is not None and mask.dim() == 2 else is_token.new_ones(input_ids.shape[:2])
    if mask is not None and mask.dim() == 3:
        counted = (mask & is_token[:, None, :]).tril().sum(dim=2)
    else:
        counted = is_token.cumsum(dim=1)
    return counted * is_token + PADDING_POSITION


class RobertaEmbedding(nn.Module):
    """Sum of word, position and token-type embeddings, followed by norm and dropout."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        width, self.pad_token_id = config.embedding_width, config.pad_token_id
        self.most_tokens = config.max_position_embeddings
        # As in RoBERTa, the embedding of padding gets no gradient from the lookup. In tied models, this embedding still
        # gets a gradient from the output layer.
        self.word_embedding = nn.Embedding(config.vocabulary_rows, width, padding_idx=config.pad_token_id)
        self.position_embedding = nn.Embedding(config.position_rows, width, padding_idx=PADDING_POSITION)
        self.token_type_embedding = nn.Embedding(config.type_vocab_size, width)
        self.layer_norm = LayerNorm(width, config.layer_norm_eps, affine=True)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return vectors [B, T, E]; `input_ids` are ids or word vectors (`word_vectors`).

        Raises ModelError if there are more tokens than positions.
        """
        length = input_ids.shape[1]
        if length > self.most_tokens:
            raise ModelError(
                f"got a sequence of {length} tokens, expected at most {self.most_tokens}, the number of absolute "
                "positions of the model"
            )
        positions = self.position_embedding(position_ids(input_ids, self.pad_token_id, mask))
        summed = word_vectors(self.word_embedding, input_ids) + self.token_type_embedding.weight[0] + positions
        return self.dropout(self.layer_norm(summed))


class RobertaEncoder(LayeredEncoder):
    """Embedding and post-norm layers. If the configuration has an `embedding_size`, a projection with a norm follows
    the embedding.

    If `weighting` is given, it replaces the layer weighting that `config.layer_weighting` names, for experiments with
    layer weightings that have no name.
    """

    def __init__(self, config: RobertaConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = RobertaEmbedding(config)
        # The projection is applied even if the embedding and the hidden states have equal widths. Neither dropout nor
        # an activation follows the projection.
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
        attention = MultiHeadAttention(config, queries_first=True)
        return EncoderLayer(attention, feed_forward, self.weighting, size, eps, *norms)

    @property
    def word_embedding(self) -> nn.Embedding:
        """Return the word embedding [V, E]."""
        return self.embedding.word_embedding

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Return embedded and projected tokens [B, T, D] of `input_ids` int64 [B, T], and the mask for the layers'
        attention.
        """
        tokens: Tensor = self.embedding(input_ids, attention_mask)
        if self.projection is not None and self.projection_layer_norm is not None:
            tokens = self.projection_layer_norm(self.projection(tokens))
        return tokens, AttentionInputs(mask=attention_mask)


PUBLISHED_CONSTANT = 0.01


@torch.no_grad()
def initialise_roberta_(model: nn.Module, seed: int) -> None:
    """Set every parameter of a language model in place, except for the parameters of `LayerMixture`.

    Source: the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Initial weights"). Matrices,
    including the embeddings of padding, are drawn by Xavier's normal initialisation. Vectors are constant. The
    published code sets all linear biases to 0.01. It finds layer norms by their parameter names and misses the norm
    after the projection, so it also sets the gain and bias of this norm to 0.01. The initialisation "as_published" uses
    these values; "corrected" sets the gain to 1 and all biases to 0. The study drew all weights from one random stream,
    so its exact weights cannot be reproduced.
    """
    config = model.config
    assert isinstance(config, RobertaConfig)
    as_published = config.initialisation == "as_published"
    for module_name, module in model.named_modules():
        if isinstance(module, nn.ParameterList):
            continue  # `LayerMixture` sets its own parameters.
        misses = as_published and module_name.endswith("projection_layer_norm")
        for name, parameter in module.named_parameters(prefix=module_name, recurse=False):
            if isinstance(module, LayerNorm) and not misses:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
            elif parameter.dim() >= 2:
                normal_(parameter, xavier_deviation(parameter), seed, name)
            else:
                parameter.fill_(PUBLISHED_CONSTANT if as_published else 0.0)


def embedding_parameters(config: RobertaConfig) -> int:
    """Return the number of "embedding parameters" that the code of the reduced-vocabulary study logs
    (docs/papers/reduced-vocabulary.md, "Sizes"): (V + positions + types + 2) E, where E is the width of the embeddings.
    These are the tables of V words, positions and token types, and the gain and bias of a norm. V includes additional
    rows beyond the vocabulary.
    """
    rows = config.vocabulary_rows + config.position_rows + config.type_vocab_size + 2
    return rows * config.embedding_width


def roberta_parameters(config: RobertaConfig) -> int:
    """Return the number of parameters of a model with this configuration; a tied matrix counts once.

    Source: docs/papers/reduced-vocabulary.md, "Sizes". Tests compare the formula with built models and with every
    published size.
    """
    size, inner, rows = config.hidden_size, config.intermediate_size, config.vocabulary_rows
    # Numbers of parameters of a layer (attention, feed-forward block and two norms), and of the head without its output
    # matrix and bias (linear layer and norm).
    layer = 4 * size**2 + 2 * size * inner + 9 * size + inner
    total = embedding_parameters(config) + config.num_hidden_layers * layer + size**2 + 3 * size
    if config.embedding_size is not None:
        # Numbers of parameters of the projection (matrix and bias), and of the norm after the projection.
        total += config.embedding_size * size + 3 * size
    if not config.tie_word_embeddings:
        total += rows * size
    if config.vocabulary_bias:
        total += rows
    if config.sentence_pair_head:
        total += size**2 + 2 * size + 1
    return total + sum(LAYER_WEIGHTINGS[config.layer_weighting].sizes(config.num_hidden_layers))
