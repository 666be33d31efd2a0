"""The model that translates: it gives every next token of the target a probability, from the source and those before.

Source: "Attention Is All You Need"; "A Natural Bias for Language Generation Models", section 2, whose output layer is
softmax(W phi + b). One embedding serves source and target, which share a vocabulary; it is scaled by sqrt(D) and gets
sines and cosines of the positions. Losses are sums, as in `language_model`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.attention_inputs import AttentionInputs, with_all_tokens
from hatchery.modeling.encoder_decoder.configuration import EncoderDecoderConfig
from hatchery.modeling.encoder_decoder.layers import (
    Attention,
    DecoderLayer,
    LayerCache,
    feed_forward,
    norm,
    norm_before,
    norm_behind,
    positions,
)
from hatchery.modeling.encoder_layer import EncoderLayer
from hatchery.modeling.language_model import LanguageModel, LanguageModelOutput, labelled_positions
from hatchery.modeling.layer_weighting import LAYER_WEIGHTINGS, LayerWeighting
from hatchery.modeling.layered_encoder import LayeredEncoder
from hatchery.modeling.numerics import Dropout, full_precision


class SourceEncoder(LayeredEncoder):
    """The encoder, with the embedding that the decoder shares."""

    def __init__(self, config: EncoderDecoderConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(weighting or LAYER_WEIGHTINGS[config.layer_weighting])
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary_rows, config.hidden_size)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.final_norm = norm_before(config)
        self.add_layers(self._layer(config) for _ in range(config.num_hidden_layers))

    def _layer(self, config: EncoderDecoderConfig) -> EncoderLayer:
        size, eps = config.hidden_size, config.layer_norm_eps
        norms = (norm_behind(config), norm_behind(config))
        return EncoderLayer(Attention(config), feed_forward(config), self.weighting, size, eps, *norms)

    @property
    def word_embedding(self) -> nn.Embedding:
        """The word embedding [V, D]."""
        return self.embedding

    def embedded(self, ids: Tensor, first: int = 0) -> Tensor:
        """Tokens [B, T, D] of int64 [B, T] that stand at the positions from `first` on."""
        size = self.config.hidden_size
        words = self.embedding(ids) * math.sqrt(size)
        return self.dropout(words + positions(first, ids.shape[1], size, ids.device))

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Embedded tokens [B, T, D] of int64 [B, T], and the mask for the layers."""
        return self.embedded(input_ids), AttentionInputs(mask=attention_mask)


class OutputLayer(nn.Module):
    """softmax(W phi + b) without the softmax; phi is the last hidden state itself."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        rows = config.vocabulary_rows
        self.vocabulary_bias = nn.Parameter(torch.zeros(rows)) if config.vocabulary_bias else None
        tied = config.tie_word_embeddings
        self.vocabulary_weight = None if tied else nn.Parameter(torch.zeros(rows, config.hidden_size))

    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with: `hidden` [..., D] as it is."""
        return hidden

    def forward(self, hidden: Tensor, word_embedding: Tensor) -> Tensor:
        """Logits [..., V] of `hidden` [..., D]; `word_embedding` [V, D] is the output matrix where they are tied."""
        weight = word_embedding if self.vocabulary_weight is None else self.vocabulary_weight
        return F.linear(hidden, weight, self.vocabulary_bias)


@dataclass
class DecoderState:
    """Where the decoding of a batch of sentences stands: what every layer keeps, and how many tokens were read."""

    layers: list[LayerCache]
    source_mask: Tensor | None
    """bool [B, S], True at tokens."""
    length: int = 0

    def rows(self, chosen: Tensor) -> "DecoderState":
        """The rows `chosen` int64 [B'] of the batch, which may repeat and leave out."""
        mask = None if self.source_mask is None else self.source_mask.index_select(0, chosen)
        return DecoderState([layer.rows(chosen) for layer in self.layers], mask, self.length)


class TranslationModel(LanguageModel):
    """Encoder, decoder and output layer; call `hatchery.modeling.initialisation.initialise_` before training it."""

    config: EncoderDecoderConfig
    encoder: SourceEncoder
    head: OutputLayer

    def __init__(self, config: EncoderDecoderConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__(config, weighting)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.decoder_norm = norm(config) if config.normalisation == "pre_norm" else None

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        target_ids: Tensor,
        labels: Tensor,
        labelled: Tensor | None = None,
    ) -> LanguageModelOutput:
        """Loss and accuracy of predicting `labels` int64 [B, T] (-100: nothing to predict), with the sums of all types.

        `input_ids` int64 [B, S] and `attention_mask` bool [B, S] are the source, `target_ids` int64 [B, T] what the
        decoder reads: the start, and the labels but for the last one. `labelled` are the `labelled_positions`.
        """
        labelled = labelled_positions(labels) if labelled is None else labelled
        targets = labels.flatten()[labelled]
        hidden = self.decode(target_ids, self.begin(input_ids, attention_mask))
        logits = full_precision(self.logits_at(hidden.flatten(0, 1).index_select(0, labelled)))
        log_mass = logits.logsumexp(dim=-1)
        loss_sum = (log_mass - logits.gather(1, targets[:, None]).squeeze(1)).sum()
        n_correct = (logits.detach().argmax(dim=-1) == targets).sum()
        sums = logits.sum(dim=0) - log_mass.sum()
        return LanguageModelOutput(
            loss_sum, torch.full_like(n_correct, len(targets)), n_correct, log_probability_sums=sums
        )

    @property
    def _decoder_layers(self) -> list[DecoderLayer]:
        return cast("list[DecoderLayer]", list(self.decoder))

    def begin(self, input_ids: Tensor, attention_mask: Tensor | None) -> DecoderState:
        """Read the source: int64 [B, S], and bool [B, S] with True at tokens (None: all are)."""
        mask = with_all_tokens(attention_mask)
        memory = self.encoder(input_ids, mask)[-1]
        if self.encoder.final_norm is not None:
            memory = self.encoder.final_norm(memory)
        layers = [LayerCache(layer.source_attention.keys_and_values(memory)) for layer in self._decoder_layers]
        return DecoderState(layers, mask)

    def decode(self, target_ids: Tensor, state: DecoderState) -> Tensor:
        """Hidden states [B, T, D] of the next tokens int64 [B, T] of the targets; `state` goes on behind them."""
        length = target_ids.shape[1]
        hidden = self.encoder.embedded(target_ids, state.length)
        mask = None
        if length > 1:
            # Token i sees what was there before, itself, and the tokens before it.
            mask = torch.ones(1, length, state.length + length, dtype=torch.bool, device=target_ids.device)
            mask = mask.tril(diagonal=state.length)
        for layer, cache in zip(self._decoder_layers, state.layers, strict=True):
            hidden = layer(hidden, cache, mask, state.source_mask)
        state.length += length
        return hidden if self.decoder_norm is None else self.decoder_norm(hidden)

    def labelled_hidden(self, batch: Mapping[str, Tensor], device: torch.device | None = None) -> tuple[Tensor, Tensor]:
        """Hidden states [N, D] where `batch`, on the CPU, has labels, and these labels int64 [N], on `device`."""
        rows = labelled_positions(batch["labels"])
        there = {name: tensor.to(device) for name, tensor in batch.items()}
        hidden = self.decode(there["target_ids"], self.begin(there["input_ids"], there.get("attention_mask")))
        labelled = rows.to(device)
        return hidden.flatten(0, 1).index_select(0, labelled), there["labels"].flatten()[labelled]
