"""What all encoders are: an embedding, layers connected as a layer weighting says, and the states that heads read.

Source: ELC-BERT, Section 3 and Equations 2 and 5; LTG-BERT, Section 4 and Appendix C (post-norm). A layer is attention
and feed-forward block, with the residual paths that normalisation and layer weighting ask for; what differs between
families are the blocks and norms that are handed in. Any family composes with any layer weighting here; the plain
residual transformer is the weighting "none". Tensors are batch first, and attention masks are True at tokens.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.attention import AttentionInputs, Packing, TokenCache, none_if_all_tokens, with_causal_mask
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.layer_weighting import LayerMixture, LayerWeighting
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, full_precision


class EncoderLayer(nn.Module):
    """Attention and feed-forward block around a residual stream, or between weighted layers.

    Without the two norms, what the blocks return is added as it is. With them (post-norm) every sum is normalised:
    `x = norm(x + attention(x))`, then `x = norm(x + feed_forward(x))`. A layer weighting that leaves the input out of
    the output normalises the attention alone instead, with the same parameters. With `residual_scaling` the second sum
    is `scale * x + feed_forward(x)`.
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

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Transform `hidden` [B, T, D], or [N, D] with a packing; to [B, D] where `inputs.query_rows` says so."""
        attention = self.attention(hidden, inputs)
        if inputs.query_rows is not None:
            hidden = hidden.flatten(0, 1).index_select(0, inputs.query_rows)
        weighting = self.weighting
        # Each of the two is made, and normalised, only where it is read.
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


# Below this share of padding, laying sequences out anew in every layer costs more than the padding.
PACKING_PAYS_FROM = 0.05


class LayeredEncoder(Encoder):
    """A stack of layers over an embedding; subclasses provide both and `embed`.

    Layers are called as `layer(hidden, inputs)` (see `EncoderLayer`).
    """

    causal: bool = False
    """Whether tokens see nothing behind them in calls that do not say it: what the model was trained for."""

    def __init__(self, weighting: LayerWeighting) -> None:
        super().__init__()
        self.weighting = weighting

    def add_layers(self, layers: Iterable[nn.Module]) -> None:
        """Register the layers and the mixture between them; subclasses call this last in their constructor."""
        self.layers = nn.ModuleList(layers)
        self.mixture = LayerMixture(self.weighting, len(self.layers))

    @property
    def n_layers(self) -> int:
        """Number of layers, the embedding not counted."""
        return len(self.layers)

    @property
    def has_residual_stream(self) -> bool:
        """Whether a layer adds to its input; not with layer weighting."""
        return self.weighting.input_in_output

    @property
    def layers_add_up(self) -> bool:
        """Whether the state of a layer is the sum of what it and the layers below give: not with norms or scales."""
        is_normalised = getattr(self.config, "normalisation", "post_norm") == "post_norm"
        is_scaled = getattr(self.config, "residual_scaling", False)
        return self.has_residual_stream and not (is_normalised or is_scaled)

    @property
    @abstractmethod
    def word_embedding(self) -> nn.Embedding:
        """The word embedding, whose matrix the output layer may share."""

    @abstractmethod
    def embed(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, AttentionInputs]:
        """Embedded tokens [B, T, D] of int64 [B, T], and what the layers' attention needs to know."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, causal: bool | Tensor | None = None
    ) -> list[Tensor]:
        """All hidden states, each [B, T, D]; the last one is what heads read.

        `input_ids` is int64 [B, T]. `attention_mask` is bool [B, T] with True at tokens, or [B, T, T] with True where
        a query may attend to a key (None: all are tokens; every sequence needs at least one). In causal sequences,
        which `causal` says of all of them or bool [B] of each, a query attends to nothing behind it, whatever the mask
        says; None is what the encoder's own `causal` says. Padded positions are computed like all others, as in the
        published code. Returns the embedding output and one state per layer: the residual stream after the layer
        without layer weighting, the layer's own output with it; "weighted_output" appends the final mixture.
        """
        return self._run(*self._embedded(input_ids, none_if_all_tokens(attention_mask), causal))

    def hidden_at(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        rows: Tensor,
        *,
        causal: bool | Tensor | None = None,
        few: bool = False,
    ) -> Tensor:
        """The last hidden states [M, D] at the flat positions `rows` int64 [M] (b * T + t).

        The same numbers as `forward`, up to rounding, without the cost of the padding where there is much of it. With
        `few` the last layer computes nothing but these rows, which pays where there are few: some one per sequence.
        Training ignores `few`.
        """
        mask = none_if_all_tokens(attention_mask)
        packing = self._packing(mask, rows)
        embedded, inputs = self._embedded(input_ids, mask, causal)
        if packing is None and few and not self.training:
            return self._run_for(embedded, inputs, rows)
        if packing is None:
            return self._run(embedded, inputs)[-1].flatten(0, 1).index_select(0, rows)
        states = self._run(packing.pack(embedded), inputs._replace(packing=packing))
        return states[-1].index_select(0, torch.searchsorted(packing.rows, rows))

    def states_behind(
        self, input_ids: Tensor, attention_mask: Tensor | None, caches: Sequence[TokenCache], before: int
    ) -> list[Tensor]:
        """What `forward` returns of causal sequences, of the tokens from position `before` on alone.

        `input_ids` and `attention_mask` [B, T] are those of the whole text; `caches`, one per layer, hold its tokens
        before `before` and then all. The same numbers as `forward`, up to rounding.
        """
        embedded, inputs = self._embedded(input_ids, none_if_all_tokens(attention_mask), True)
        length, positions, mask = input_ids.shape[1], inputs.positions, inputs.mask
        assert mask is not None, "causal sequences have a mask"
        if positions is not None:
            positions = positions.of_queries_from(before, length)
        return self._run(embedded[:, before:], inputs._replace(positions=positions, mask=mask[:, before:]), caches)

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout of the encoder, as fine-tuning protocols do. Raises ModelError."""
        set_dropout(self, probability)

    def _embedded(
        self, input_ids: Tensor, mask: Tensor | None, causal: bool | Tensor | None
    ) -> tuple[Tensor, AttentionInputs]:
        """`embed`, with a mask that hides what follows in causal sequences."""
        embedded, inputs = self.embed(input_ids, mask)
        causal = self.causal if causal is None else causal
        mask = with_causal_mask(inputs.mask, causal, input_ids.shape[1], input_ids.device)
        return embedded, inputs._replace(mask=mask)

    def _run(
        self, embedded: Tensor, inputs: AttentionInputs, caches: Sequence[TokenCache] | None = None
    ) -> list[Tensor]:
        outputs = [embedded]
        for index, layer in enumerate(self.layers):
            given = inputs if caches is None else inputs._replace(cache=caches[index])
            # A tuple: activation checkpointing calls the layer again later, when the list has grown.
            outputs.append(layer(self.mixture(tuple(outputs)), given))
        if self.weighting.output_mixture:
            outputs.append(self.mixture(tuple(outputs)))
        return outputs

    def _run_for(self, embedded: Tensor, inputs: AttentionInputs, rows: Tensor) -> Tensor:
        """What `_run` ends with at `rows`; the last layer is not computed elsewhere."""
        outputs = [embedded]
        for layer in self.layers[:-1]:
            outputs.append(layer(self.mixture(tuple(outputs)), inputs))
        # One row per sequence is what the last layer knows: every row gets its sequence, once more if need be.
        length = embedded.shape[1]
        of = rows // length
        query_rows = torch.arange(len(rows), device=rows.device) * length + rows % length
        mask = inputs.mask
        if mask is not None:
            mask = mask.expand(len(embedded), *mask.shape[1:]).index_select(0, of)
        hidden = self.mixture(tuple(outputs)).index_select(0, of)
        last = self.layers[-1](hidden, inputs._replace(query_rows=query_rows, mask=mask))
        if not self.weighting.output_mixture:
            return last
        return self.mixture([*(output.flatten(0, 1).index_select(0, rows) for output in outputs), last])

    @staticmethod
    def _packing(mask: Tensor | None, rows: Tensor) -> Packing | None:
        """The tokens of a batch with padding, and the positions `rows`; None where computing it all is better.

        Counting tokens is a wait for the device on a GPU and breaks the graph of torch.compile, so both compute all.
        """
        if mask is None or mask.ndim == 3 or mask.device.type != "cpu" or torch.compiler.is_compiling():
            return None
        batch, length = mask.shape
        kept = mask.flatten().clone()
        kept[rows] = True
        if int(kept.sum()) > (1 - PACKING_PAYS_FROM) * batch * length:
            return None
        return Packing(kept.nonzero().squeeze(1), batch, length)


def set_dropout(module: nn.Module, probability: float) -> None:
    """Use `probability` at every dropout inside `module`. Raises ModelError unless 0 <= probability < 1."""
    if not 0 <= probability < 1:
        raise ModelError(f"dropout: got {probability!r}, expected 0 <= probability < 1")
    for child in module.modules():
        if isinstance(child, Dropout):
            child.probability = probability
