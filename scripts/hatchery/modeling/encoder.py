"""The encoder: embedding, shared relative positions, and layers connected as the layer weighting says.

Source: LTG-BERT section 3.1 and ELC-BERT section 3, after the published code of both. The same class is LTG-BERT and
every ELC-BERT variant; tensors are batch first, and attention masks are True at tokens.
"""

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.attention import DisentangledSelfAttention
from hatchery.modeling.configuration import EncoderConfig
from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerMixture, LayerWeighting
from hatchery.modeling.numerics import Dropout, LayerNorm
from hatchery.modeling.relative_positions import PositionIndices, RelativePositions


class Embedding(nn.Module):
    """Word embeddings with layer norm and dropout, and the normalised relative embedding that all layers share."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embedding = nn.Embedding(config.vocab_size, size)
        self.word_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.relative_embedding = nn.Parameter(torch.empty(2 * config.position_bucket_size - 1, size))
        self.relative_layer_norm = LayerNorm(size, config.layer_norm_eps, affine=True)

    def forward(self, input_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Embed `input_ids` int64 [B, T]; returns tokens [B, T, D] and relative positions [2 * bucket_size - 1, D]."""
        tokens = self.dropout(self.word_layer_norm(self.word_embedding(input_ids)))
        return tokens, self.relative_layer_norm(self.relative_embedding)


class EncoderLayer(nn.Module):
    """Attention and feed-forward block, with the residual paths that the layer weighting asks for."""

    def __init__(self, config: EncoderConfig, weighting: LayerWeighting) -> None:
        super().__init__()
        self.weighting = weighting
        self.attention = DisentangledSelfAttention(config)
        self.feed_forward = FeedForward(config)
        self.output_layer_norm = LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(
        self, hidden: Tensor, relative_embedding: Tensor, positions: PositionIndices, padding: Tensor | None
    ) -> Tensor:
        """Transform `hidden` [B, T, D]; the other arguments are those of the attention."""
        attention = self.attention(hidden, relative_embedding, positions, padding)
        with_input = hidden + attention
        feed_forward = self.feed_forward(with_input if self.weighting.input_in_feed_forward else attention)
        output = (with_input if self.weighting.input_in_output else attention) + feed_forward
        return self.output_layer_norm(output) if self.weighting.normalised_output else output


class Encoder(nn.Module):
    """A stack of layers over an embedding.

    `weighting` is the record that `config.layer_weighting` names; another record can be handed in to study a
    connection of layers that has no name.
    """

    def __init__(self, config: EncoderConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__()
        self.config = config
        self.weighting = weighting or LAYER_WEIGHTINGS[config.layer_weighting]
        self.embedding = Embedding(config)
        self.relative_positions = RelativePositions(config.position_bucket_size, config.max_position_embeddings)
        self.layers = nn.ModuleList(EncoderLayer(config, self.weighting) for _ in range(config.num_hidden_layers))
        self.mixture = LayerMixture(self.weighting, config.num_hidden_layers)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """All hidden states, each [B, T, D]; the last one is what heads read.

        `input_ids` is int64 [B, T], `attention_mask` bool [B, T] with True at tokens (None: all are tokens; every
        sequence needs at least one). Returns the embedding output and one state per layer: the residual stream after
        the layer for LTG-BERT, the layer's own output for ELC-BERT; "weighted_output" appends the final mixture.
        """
        padding = _padding(attention_mask)
        tokens, relative_embedding = self.embedding(input_ids)
        positions = self.relative_positions(input_ids.shape[1])
        outputs = [tokens]
        for layer in self.layers:
            # A tuple: activation checkpointing calls the layer again later, when the list has grown.
            outputs.append(layer(self.mixture(tuple(outputs)), relative_embedding, positions, padding))
        if self.weighting.output_mixture:
            outputs.append(self.mixture(tuple(outputs)))
        return outputs

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout of the encoder, as fine-tuning protocols do. Raises ModelError."""
        set_dropout(self, probability)


def set_dropout(module: nn.Module, probability: float) -> None:
    """Use `probability` at every dropout inside `module`. Raises ModelError unless 0 <= probability < 1."""
    if not 0 <= probability < 1:
        raise ModelError(f"dropout: got {probability!r}, expected 0 <= probability < 1")
    for child in module.modules():
        if isinstance(child, Dropout):
            child.probability = probability


def _padding(attention_mask: Tensor | None) -> Tensor | None:
    """True at padding, or None where it is known that there is none.

    On the CPU looking at the mask is cheaper than applying it to all scores; on a GPU the look would be a wait for
    the device, and under torch.compile a break of the graph.
    """
    if attention_mask is None:
        return None
    on_cpu = attention_mask.device.type == "cpu" and not torch.compiler.is_compiling()
    return None if on_cpu and bool(attention_mask.all()) else ~attention_mask
