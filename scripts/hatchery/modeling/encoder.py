"""The interface of all encoders: states of layers, which heads, probes and the training of tasks read.

Ours are `LayeredEncoder`s: an embedding, layers connected as a layer weighting says, and the states that heads read
(ELC-BERT, Section 3). Every family can be combined with every layer weighting; the plain residual transformer is the
weighting "none". `evaluation.baselines.encoder` wraps models of the library `transformers`. Tensors are batch first,
and attention masks are True at tokens.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, Packing, TokenCache, none_if_all_tokens, with_causal_mask
from hatchery.modeling.block_sums import BlockSums
from hatchery.modeling.layer_weighting import LayerMixture, LayerWeighting
from hatchery.modeling.norm_and_dropout import set_dropout


class Encoder(nn.Module, ABC):
    """A pretrained model without the head that predicts words."""

    config: Any
    """Configuration with at least `hidden_size`, the width of all states, and `layer_norm_eps`."""
    longest_input: int | None = None
    """Maximum number of tokens of an input, including special tokens; None: no limit, or a limit known from the
    settings.
    """
    first_token_is_blind: bool = False
    """True if heads of whole texts read the last token instead of the first, because the first has seen no
    other token.
    """

    @property
    @abstractmethod
    def n_layers(self) -> int:
        """Return the number of layers, without the embedding."""

    @property
    @abstractmethod
    def has_residual_stream(self) -> bool:
        """Return whether a layer adds to its input, so that the difference of two states is the layer's
        contribution.
        """

    @property
    @abstractmethod
    def layers_add_up(self) -> bool:
        """Return whether the state of a layer is the sum of the contributions of the layers up to it, without a norm
        between.
        """

    @abstractmethod
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """Return the states, each [B, T, D]: the embedding, one state per layer, and possibly one more; heads read the
        last.

        `input_ids` is int64 [B, T], `attention_mask` bool [B, T] (None: all positions are tokens).
        """

    @abstractmethod
    def hidden_at(self, input_ids: Tensor, attention_mask: Tensor | None, rows: Tensor, *, few: bool = False) -> Tensor:
        """Return the last states [M, D] at the flat positions `rows` int64 [M] (b * T + t); `few` marks a small number
        of rows.
        """

    @abstractmethod
    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout, as fine-tuning protocols do. Raises ModelError."""


# Below this share of padding, rearranging sequences in every layer costs more than the padding.
PACKING_PAYS_FROM = 0.05


class LayeredEncoder(Encoder):
    """A stack of layers over an embedding; subclasses provide both and `embed`.

    Layers are called as `layer(hidden, inputs)` (see `EncoderLayer`).
    """

    causal: bool = False
    """True if tokens see no later token in calls without `causal`: the attention of the model's training."""

    def __init__(self, weighting: LayerWeighting) -> None:
        super().__init__()
        self.weighting = weighting

    def add_layers(self, layers: Iterable[nn.Module]) -> None:
        """Register the layers and the mixture between them; subclasses call this last in their constructor."""
        self.layers = nn.ModuleList(layers)
        self.mixture = LayerMixture(self.weighting, len(self.layers))

    @property
    def n_layers(self) -> int:
        """Return the number of layers, without the embedding."""
        return len(self.layers)

    @property
    def has_residual_stream(self) -> bool:
        """Return whether a layer adds to its input; false with layer weighting."""
        return self.weighting.input_in_output

    @property
    def layers_add_up(self) -> bool:
        """Return whether the state of a layer is the sum of the layers' contributions up to it; false with norms or
        scales.
        """
        is_normalised = getattr(self.config, "normalisation", "post_norm") == "post_norm"
        is_scaled = getattr(self.config, "residual_scaling", False)
        return self.has_residual_stream and not (is_normalised or is_scaled)

    @property
    @abstractmethod
    def word_embedding(self) -> nn.Embedding:
        """Return the word embedding, whose matrix the output layer may share."""

    @abstractmethod
    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Return embedded tokens [B, T, D] and the inputs of the layers' attention.

        `input_ids` are int64 [B, T], or the rows of the word embedding (`word_vectors`).
        """

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        causal: bool | Tensor | None = None,
        probabilities: list[Tensor] | None = None,
    ) -> list[Tensor]:
        """Return all hidden states, each [B, T, D]; heads read the last one.

        `input_ids` is int64 [B, T], or their rows of the word embedding. `attention_mask` is bool [B, T] with True at
        tokens, or [B, T, T] with True where a query may attend to a key (None: all positions are tokens; every sequence
        needs at least one token). `causal` is a flag for all sequences or bool [B] for each; None is the encoder's own
        `causal`. In causal sequences a query attends to no later token, with any mask. Padded positions are computed
        like all others, as in the published code. The result has the embedding output and one state per layer: the
        residual stream after the layer without layer weighting, the layer's own output with it; "weighted_output"
        appends the final mixture. If a list `probabilities` is given, each layer appends its attention probabilities
        [B, H, T, T]; this is slower.
        """
        embedded, inputs = self._embedded(input_ids, none_if_all_tokens(attention_mask), causal)
        return self._run(embedded, inputs._replace(probabilities=probabilities))

    def hidden_at(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        rows: Tensor,
        *,
        causal: bool | Tensor | None = None,
        few: bool = False,
    ) -> Tensor:
        """Return the last hidden states [M, D] at the flat positions `rows` int64 [M] (b * T + t).

        The numbers equal those of `forward`, up to rounding, without the cost of much padding. With `few` the last
        layer computes only these rows, which is faster for about one row per sequence. Training ignores `few`.
        """
        mask = none_if_all_tokens(attention_mask)
        packing = self._packing(mask, rows)
        embedded, inputs = self._embedded(input_ids, mask, causal)
        # Weights between blocks get no gradient if single rows are computed.
        wants_gradient = self.weighting.between_blocks and torch.is_grad_enabled()
        if packing is None and few and not self.training and not wants_gradient:
            return self._run_for(embedded, inputs, rows)
        if packing is None:
            return self._run(embedded, inputs)[-1].flatten(0, 1).index_select(0, rows)
        states = self._run(packing.pack(embedded), inputs._replace(packing=packing))
        return states[-1].index_select(0, torch.searchsorted(packing.rows, rows))

    def states_behind(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        caches: Sequence[TokenCache],
        before: int,
        probabilities: list[Tensor] | None = None,
    ) -> list[Tensor]:
        """Return the states of `forward` for causal sequences, only of the tokens from position `before` on.

        `input_ids` and `attention_mask` [B, T] are those of the whole text; `caches`, one per layer, contain its tokens
        before `before`, and afterwards all tokens. The numbers equal those of `forward`, up to rounding.
        """
        embedded, inputs = self._embedded(input_ids, none_if_all_tokens(attention_mask), True)
        length, positions, mask = input_ids.shape[1], inputs.positions, inputs.mask
        assert mask is not None, "causal sequences have a mask"
        if positions is not None:
            positions = positions.of_queries_from(before, length)
        new_inputs = inputs._replace(positions=positions, mask=mask[:, before:], probabilities=probabilities)
        return self._run(embedded[:, before:], new_inputs, caches)

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout of the encoder, as fine-tuning protocols do. Raises ModelError."""
        set_dropout(self, probability)

    def _embedded(
        self, input_ids: Tensor, mask: Tensor | None, causal: bool | Tensor | None
    ) -> tuple[Tensor, AttentionInputs]:
        """Return `embed` with a mask that hides later tokens in causal sequences."""
        embedded, inputs = self.embed(input_ids, mask)
        causal = self.causal if causal is None else causal
        mask = with_causal_mask(inputs.mask, causal, input_ids.shape[1], input_ids.device)
        return embedded, inputs._replace(mask=mask)

    def _run(
        self, embedded: Tensor, inputs: AttentionInputs, caches: Sequence[TokenCache] | None = None
    ) -> list[Tensor]:
        outputs, _ = self._run_layers(self.layers, embedded, inputs, caches)
        if self.weighting.output_mixture:
            outputs.append(self.mixture(tuple(outputs)))
        return outputs

    def _run_layers(
        self,
        layers: Iterable[nn.Module],
        embedded: Tensor,
        inputs: AttentionInputs,
        caches: Sequence[TokenCache] | None = None,
    ) -> tuple[list[Tensor], BlockSums | None]:
        """Return the outputs of the embedding and of `layers`, the first layers, and, with weights between blocks, all
        sums.
        """
        outputs, sums = [embedded], None
        if self.weighting.between_blocks:
            sums = BlockSums(embedded, tuple(self.mixture.layer_weights))
        for index, layer in enumerate(layers):
            given = inputs if caches is None else inputs._replace(cache=caches[index])
            if sums is not None:
                outputs.append(layer(outputs[-1], given, sums, index))
            else:
                # A tuple, because activation checkpointing calls the layer again later, when the list has grown.
                outputs.append(layer(self.mixture(tuple(outputs)), given))
        return outputs, sums

    def _run_for(self, embedded: Tensor, inputs: AttentionInputs, rows: Tensor) -> Tensor:
        """Return the last state of `_run` at `rows`; the last layer computes only these."""
        *layers, last = self.layers
        outputs, sums = self._run_layers(layers, embedded, inputs)
        # The last layer computes one row per sequence: repeat a sequence for each of its rows.
        length = embedded.shape[1]
        of = rows // length
        query_rows = torch.arange(len(rows), device=rows.device) * length + rows % length
        mask = inputs.mask
        if mask is not None:
            mask = mask.expand(len(embedded), *mask.shape[1:]).index_select(0, of)
        row_inputs = inputs._replace(query_rows=query_rows, mask=mask)
        if sums is not None:
            return last(outputs[-1].index_select(0, of), row_inputs, sums.at(rows), len(layers))
        output = last(self.mixture(tuple(outputs)).index_select(0, of), row_inputs)
        if not self.weighting.output_mixture:
            return output
        return self.mixture([*(one.flatten(0, 1).index_select(0, rows) for one in outputs), output])

    @staticmethod
    def _packing(mask: Tensor | None, rows: Tensor) -> Packing | None:
        """Return a packing of the tokens of a batch and of the positions `rows`; None if computing all positions is
        better.

        Counting tokens synchronises with a GPU and breaks the graph of torch.compile, so both compute all positions.
        """
        if mask is None or mask.ndim == 3 or mask.device.type != "cpu" or torch.compiler.is_compiling():
            return None
        batch, length = mask.shape
        kept = mask.flatten().clone()
        kept[rows] = True
        if int(kept.sum()) > (1 - PACKING_PAYS_FROM) * batch * length:
            return None
        return Packing(kept.nonzero().squeeze(1), batch, length)
