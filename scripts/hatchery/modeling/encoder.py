"""The interface of all encoders, which return the hidden states that heads, probes and fine-tuning read.

Hatchery's encoders are `LayeredEncoder`s: an embedding, and layers that are connected by a layer weighting (ELC-BERT,
Section 3). Every family except `encoder_decoder` works with every layer weighting; "none" is the plain residual
transformer. External models of the library `transformers` are wrapped in `evaluation.baselines.encoder`. Tensors are
batch first, and attention masks are True at tokens.
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
    """Maximum number of tokens of an input, including special tokens. None if there is no limit, or if the settings
    already contain the limit.
    """
    first_token_is_blind: bool = False
    """True if heads that classify a whole text must read the last token, as in a causal model, whose first token
    attends only to itself.
    """

    @property
    @abstractmethod
    def n_layers(self) -> int:
        """Return the number of layers, without the embedding."""

    @property
    @abstractmethod
    def has_residual_stream(self) -> bool:
        """Return whether each layer adds its output to its input, so that the difference of two successive states is
        the layer's contribution.
        """

    @property
    @abstractmethod
    def layers_add_up(self) -> bool:
        """Return whether the state after a layer is the sum of the contributions of all layers so far, without a norm
        in between.
        """

    @abstractmethod
    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> list[Tensor]:
        """Return the hidden states, each [B, T, D]: the embedding output and one state per layer. Some encoders append
        a final state, such as a combination of all states.

        Heads read the last state of the list. `input_ids` is int64 [B, T], and `attention_mask` is bool [B, T] (None:
        all positions are tokens).
        """

    @abstractmethod
    def hidden_at(self, input_ids: Tensor, attention_mask: Tensor | None, rows: Tensor, *, few: bool = False) -> Tensor:
        """Return the last hidden states [M, D] at the positions `rows`, int64 [M]; a position is the flat index b * T +
        t.

        If `few` is true, the caller requests few positions. An encoder may then compute only these positions in its
        last layer.
        """

    @abstractmethod
    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout, as fine-tuning protocols do. Raises ModelError for an invalid
        probability.
        """


# If padding is less than this fraction of a batch's positions, the padding is computed. Removing the padding would take
# more time, because every layer would have to rearrange the sequences.
PACKING_PAYS_FROM = 0.05


class LayeredEncoder(Encoder):
    """An embedding and a stack of layers. Subclasses define `embed` and register their layers with `add_layers`.

    A layer is called as `layer(hidden, inputs)` (see `EncoderLayer`).
    """

    causal: bool = False
    """True if the model was pretrained as a causal model, so that tokens attend to no later token. This is the default
    of calls without the argument `causal`.
    """

    def __init__(self, weighting: LayerWeighting) -> None:
        super().__init__()
        self.weighting = weighting

    def add_layers(self, layers: Iterable[nn.Module]) -> None:
        """Register the layers, and the `LayerMixture` that connects them. Subclasses call this method last in their
        constructor.
        """
        self.layers = nn.ModuleList(layers)
        self.mixture = LayerMixture(self.weighting, len(self.layers))

    @property
    def n_layers(self) -> int:
        """Return the number of layers, without the embedding."""
        return len(self.layers)

    @property
    def has_residual_stream(self) -> bool:
        """Return whether each layer adds its output to its input. False for models with layer weighting."""
        return self.weighting.input_in_output

    @property
    def layers_add_up(self) -> bool:
        """Return whether the state after a layer is the sum of the contributions of all layers so far.

        False with layer weighting, and if the residual sums are normalised (post-norm) or scaled.
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

        `input_ids` are token ids int64 [B, T], or word vectors [B, T, E] that replace the lookup (`word_vectors`).
        """

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        causal: bool | Tensor | None = None,
        probabilities: list[Tensor] | None = None,
    ) -> list[Tensor]:
        """Return the hidden states, each [B, T, D]: the embedding output, then one state per layer. Heads read the last
        state.

        `input_ids` are token ids int64 [B, T], or word vectors (`word_vectors`). `attention_mask` is bool [B, T], True
        at tokens, or bool [B, T, T], True where a query may attend to a key. None: all positions are tokens. Every
        sequence needs at least one token. `causal` is a flag for all sequences, or bool [B] with a flag for each
        sequence; if None, the attribute `causal` is used. Tokens of causal sequences attend to no later token, under
        any mask. Padding is computed like tokens.

        With layer weighting, a state is the output of a layer; otherwise, it is the residual stream after a layer. The
        weighting "weighted_output" appends the combination of all states. If a list `probabilities` is given, each
        layer appends its attention probabilities [B, H, T, T], which is slower.
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
        """Return the last hidden states [M, D] at the positions `rows`, int64 [M]; a position is the flat index b * T +
        t.

        The result equals the states of `forward` up to rounding, but batches with much padding are computed faster. If
        `few` is true, the last layer computes only the positions `rows`, which is faster for about one position per
        sequence. `few` has no effect in three cases: in training, for batches whose padding is removed (`_packing`),
        and if gradients are enabled for a model with the layer weighting "unrestricted".
        """
        mask = none_if_all_tokens(attention_mask)
        packing = self._packing(mask, rows)
        embedded, inputs = self._embedded(input_ids, mask, causal)
        # Compute the last layer at all positions if the weights between blocks need gradients, because the computation
        # at single positions gives these weights no gradient.
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
        """Return the states of `forward` for causal sequences, but only of the tokens from position `before` on.

        `input_ids` and `attention_mask` [B, T] describe the whole texts. `caches` contains a cache for each layer, with
        the tokens before position `before`; the call appends the tokens from this position on. The result equals the
        states of `forward` up to rounding.
        """
        embedded, inputs = self._embedded(input_ids, none_if_all_tokens(attention_mask), True)
        length, positions, mask = input_ids.shape[1], inputs.positions, inputs.mask
        assert mask is not None, "causal sequences have a mask"
        if positions is not None:
            positions = positions.of_queries_from(before, length)
        new_inputs = inputs._replace(positions=positions, mask=mask[:, before:], probabilities=probabilities)
        return self._run(embedded[:, before:], new_inputs, caches)

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout of the encoder, as fine-tuning protocols do. Raises ModelError unless 0 <=
        probability < 1.
        """
        set_dropout(self, probability)

    def _embedded(
        self, input_ids: Tensor, mask: Tensor | None, causal: bool | Tensor | None
    ) -> tuple[Tensor, AttentionInputs]:
        """Return the result of `embed`, with an attention mask that also hides later tokens in causal sequences."""
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
        """Return the states of the embedding and of `layers`, the first layers of the encoder.

        With the layer weighting "unrestricted", also return the residual sum after each attention block and each
        feed-forward block. With other layer weightings, the second value is None.
        """
        outputs, sums = [embedded], None
        if self.weighting.between_blocks:
            sums = BlockSums(embedded, tuple(self.mixture.layer_weights))
        for index, layer in enumerate(layers):
            given = inputs if caches is None else inputs._replace(cache=caches[index])
            if sums is not None:
                outputs.append(layer(outputs[-1], given, sums, index))
            else:
                # Pass a tuple, because activation checkpointing calls the layer again after `outputs` has grown.
                outputs.append(layer(self.mixture(tuple(outputs)), given))
        return outputs, sums

    def _run_for(self, embedded: Tensor, inputs: AttentionInputs, rows: Tensor) -> Tensor:
        """Return the last hidden state of the encoder at the flat positions `rows`; the last layer computes only these
        positions.
        """
        *layers, last = self.layers
        outputs, sums = self._run_layers(layers, embedded, inputs)
        # Repeat each sequence for each of its requested positions, because the last layer computes one query per
        # sequence.
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
        """Return a packing that contains the tokens of a batch and the positions `rows`. Return None if computing all
        positions is faster, or if the mask is [B, T, T].

        On a GPU and under torch.compile, the result is None, because counting the tokens would synchronise with the GPU
        or break the graph.
        """
        if mask is None or mask.ndim == 3 or mask.device.type != "cpu" or torch.compiler.is_compiling():
            return None
        batch, length = mask.shape
        kept = mask.flatten().clone()
        kept[rows] = True
        if int(kept.sum()) > (1 - PACKING_PAYS_FROM) * batch * length:
            return None
        return Packing(kept.nonzero().squeeze(1), batch, length)
