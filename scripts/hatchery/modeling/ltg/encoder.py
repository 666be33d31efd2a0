"""The encoder and the language-model head of the LTG-BERT family, and their initial weights.

The encoder has an embedding, relative positions shared by all layers, disentangled attention and gated feed-forward
blocks. The same class implements LTG-BERT, all its ablations, and every ELC-BERT variant.

Source: LTG-BERT, Section 4, Table 2 and Appendix C, ELC-BERT, Section 3, after the published code of the two papers
(docs/papers/ltg-bert.md, "Model").
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.attention import AttentionInputs
from hatchery.modeling.encoder import LayeredEncoder
from hatchery.modeling.initialisation import initial_standard_deviation, initialise_linear_layers_, truncated_normal_
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layers import EncoderLayer, FeedForward, VocabularyHead, word_vectors
from hatchery.modeling.ltg.attention import DisentangledSelfAttention
from hatchery.modeling.ltg.config import LtgBertConfig
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm
from hatchery.modeling.relative_positions import RelativePositions


def ltg_feed_forward(config: LtgBertConfig) -> FeedForward:
    """Return the feed-forward block of a configuration of the LTG-BERT family."""
    before = LayerNorm(config.hidden_size, config.layer_norm_eps, affine=config.affine_block_norms)
    return FeedForward(
        config.hidden_size,
        config.intermediate_size,
        config.hidden_dropout_prob,
        gated=config.feed_forward_activation == "geglu",
        bias=config.feed_forward_bias,
        pre_layer_norm=None if config.normalisation == "post_norm" else before,
        inner_layer_norm=LayerNorm(config.intermediate_size, config.layer_norm_eps)
        if config.normalisation == "normformer"
        else None,
    )


class Embedding(nn.Module):
    """Word embedding with layer norm and dropout, and the position embedding.

    Relative positions are a table; the table is normalised once per forward pass, and all layers share it. Absolute
    positions are vectors that are added to the word embeddings.
    """

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embedding = nn.Embedding(config.vocab_size, size)
        self.word_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        if config.position_embedding == "relative":
            self.relative_embedding = nn.Parameter(torch.empty(2 * config.position_bucket_size - 1, size))
            self.relative_layer_norm = LayerNorm(size, config.layer_norm_eps, affine=True)
        else:
            self.position_embedding = nn.Embedding(config.max_position_embeddings, size)
        self.is_relative = config.position_embedding == "relative"

    def forward(self, input_ids: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return embedded tokens [B, T, D] and the table of relative positions [2 * buckets - 1, D].

        `input_ids` are ids or word vectors (`word_vectors`). With absolute positions, the returned table is None. If
        `mask` is bool [B, T], the absolute position of a token is the number of tokens before this token, so padding on
        either side has no effect. With any other mask, padding also counts. Raises ModelError if a sequence is longer
        than the position table.
        """
        words = word_vectors(self.word_embedding, input_ids)
        if self.is_relative:
            return self.dropout(self.word_layer_norm(words)), self.relative_layer_norm(self.relative_embedding)
        length, most = input_ids.shape[1], self.position_embedding.num_embeddings
        if length > most:
            raise ModelError(
                f"got a sequence of {length} tokens, expected at most {most}, the number of absolute positions of the "
                "model"
            )
        positions = self.position_embedding.weight[:length]
        if mask is not None and mask.dim() == 2:
            places = torch.arange(length, device=mask.device).where(~mask, mask.cumsum(dim=1) - 1)
            # Select rows with `take_along_dim` instead of an embedding lookup, whose backward pass sums the gradients
            # of the sequences in an order that depends on padding.
            positions = positions.expand(len(mask), -1, -1).take_along_dim(places[:, :, None], dim=1)
        return self.dropout(self.word_layer_norm(words + positions)), None


class LtgEncoder(LayeredEncoder):
    """The layers of LTG-BERT and ELC-BERT.

    If `weighting` is given, it replaces the layer weighting that `config.layer_weighting` names, for experiments with
    layer weightings that have no name.
    """

    attention: type[DisentangledSelfAttention] = DisentangledSelfAttention

    def __init__(self, config: LtgBertConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = Embedding(config)
        if config.position_embedding == "relative":
            self.relative_positions = RelativePositions(config.position_bucket_size, config.max_position_embeddings)
        self.add_layers(self._layer(config) for _ in range(config.num_hidden_layers))

    def _layer(self, config: LtgBertConfig) -> EncoderLayer:
        size, eps, affine = config.hidden_size, config.layer_norm_eps, config.affine_block_norms
        norms = [LayerNorm(size, eps, affine) if config.normalisation == "post_norm" else None for _ in range(2)]
        attention, feed_forward = self.attention(config), ltg_feed_forward(config)
        return EncoderLayer(
            attention, feed_forward, self.weighting, size, eps, *norms, residual_scaling=config.residual_scaling
        )

    @property
    def word_embedding(self) -> nn.Embedding:
        """Return the word embedding [V, D]."""
        return self.embedding.word_embedding

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Return embedded tokens [B, T, D] of `input_ids` int64 [B, T], and the inputs of the layers' attention
        (relative positions and mask).
        """
        tokens, relative_embedding = self.embedding(input_ids, attention_mask)
        positions = None if relative_embedding is None else self.relative_positions(input_ids.shape[1])
        return tokens, AttentionInputs(relative_embedding, positions, attention_mask)


class LtgHead(VocabularyHead):
    """Language-model head: norm, linear layer, exact GELU, norm, dropout, and the product with the output matrix.

    Dropout follows the second norm in LTG-BERT's BabyLM code and in ELC-BERT. It precedes the second norm in LTG-BERT's
    BNC training code (`head_dropout`).
    """

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.pre_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.linear = nn.Linear(size, size)
        self.post_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.dropout_first = config.head_dropout == "before_norm"
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """Return the features [..., D] that the output matrix multiplies. Their mean square is 1, unless dropout
        follows the norm.
        """
        hidden = F.gelu(self.linear(self.pre_layer_norm(hidden)))
        if self.dropout_first:
            return self.post_layer_norm(self.dropout(hidden))
        return self.dropout(self.post_layer_norm(hidden))


@torch.no_grad()
def initialise_ltg_(model: nn.Module, seed: int) -> None:
    """Set every parameter of a language model in place, except for the parameters of `LayerMixture`.

    Weights are drawn from a truncated normal. If `feed_forward_initial_scaling` is true, the weights of feed-forward
    blocks are scaled down, more strongly in later layers. Source: LTG-BERT, Section 4. Where the paper and its
    published code differ, the function follows the code (docs/papers/ltg-bert.md, "Initial weights" and "Differences").
    """
    encoder, head = model.encoder, model.head
    assert isinstance(encoder, LtgEncoder) and isinstance(head, LtgHead)
    config, embedding = encoder.config, encoder.embedding
    deviation = initial_standard_deviation(config.hidden_size)
    initialise_linear_layers_(model, deviation, seed)
    truncated_normal_(embedding.word_embedding.weight, deviation, seed, "word_embedding")
    if config.position_embedding == "relative":
        truncated_normal_(embedding.relative_embedding, deviation, seed, "relative_embedding")
    else:
        truncated_normal_(embedding.position_embedding.weight, deviation, seed, "position_embedding")
    if head.vocabulary_weight is not None:
        truncated_normal_(head.vocabulary_weight, deviation, seed, "vocabulary_weight")
    if head.vocabulary_bias is not None:
        head.vocabulary_bias.zero_()
    for module in model.modules():
        if isinstance(module, LayerNorm) and module.weight is not None and module.bias is not None:
            module.weight.fill_(1.0)
            module.bias.zero_()
    for name, parameter in encoder.layers.named_parameters():
        if name.endswith(("head_scale", "residual_scale")):
            parameter.fill_(1.0)
    if config.feed_forward_initial_scaling:
        blocks = [module for module in encoder.layers.modules() if isinstance(module, FeedForward)]
        for depth, block in enumerate(blocks):
            scale_feed_forward_(block, depth)


@torch.no_grad()
def scale_feed_forward_(feed_forward: FeedForward, depth: int) -> None:
    """Multiply both matrices of the feed-forward block in layer `depth` (from 0) by 1 / sqrt(2 * (depth + 1))."""
    for projection in (feed_forward.input_projection, feed_forward.output_projection):
        projection.weight.mul_(1 / math.sqrt(2 * (depth + 1)))
