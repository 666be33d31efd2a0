"""What heads make of the encoder's states: one vector per sequence, one per span, one mixture of all layers.

A pooling of sequences asks the encoder for the states it needs, so that one that looks at a single position does not
pay for the others.

Spans have attention over their own tokens. Source: LTG-BERT, Appendix B.2 (attention pooling with 4 heads; the module
was not published) after Tenney et al. 2019. A learned query against projected keys is a linear score per token and
head, so that is what is learned here.

Probes read a learned convex combination of all layers. Source: LTG-BERT, Section 6.2 and Appendix C. Since sub-layers
add to an un-normalised residual stream, the paper mixes what each layer adds, s_k = l_k - l_(k-1); the published code
hands the plain layer outputs l_k to a module that is missing. Both readings are here; the weights are the paper's
Table 5. "contributions" is the paper's where layers add up, and the output elsewhere: with layer weighting (ELC-BERT)
and after norms a state already is what its layer gives.
"""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.targets import can_look, token_mask
from hatchery.modeling.norm_and_dropout import full_precision

PoolingName = Literal["first_token", "last_token", "mean", "position_linear"]

POOLINGS: dict[PoolingName, str] = {
    "first_token": "The last state of the first token, [CLS] (LTG-BERT, Appendix B.1; RoBERTa's stock).",
    "last_token": "The last state of the last token, [SEP]: of causal models, whose first token has seen nothing.",
    "mean": "The mean of the last states of all tokens, special tokens included.",
    "position_linear": "One linear layer over 128 positions for all channels, padding included and attended to: the "
    'custom family of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Heads").',
}


class FirstToken(nn.Module):
    """The last state at position 0."""

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]. Raises EvaluationError for padding in front."""
        if can_look(mask := token_mask(input_ids, attention_mask)) and not bool(mask[:, 0].all()):
            raise EvaluationError("input_ids: a sequence begins with padding, expected [CLS] at its first position")
        batch, length = input_ids.shape
        rows = torch.arange(batch, device=input_ids.device) * length
        return encoder.hidden_at(input_ids, attention_mask, rows)


class LastToken(nn.Module):
    """The last state at the last token that is not padding."""

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]; a sequence without tokens gives its first."""
        batch, length = input_ids.shape
        positions = torch.arange(length, device=input_ids.device)
        last = positions.where(token_mask(input_ids, attention_mask), 0).amax(dim=1)
        rows = torch.arange(batch, device=input_ids.device) * length + last
        return encoder.hidden_at(input_ids, attention_mask, rows)


class MeanOverTokens(nn.Module):
    """The mean of the last states over everything that is not padding."""

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]."""
        states = encoder(input_ids, attention_mask)[-1]
        weights = token_mask(input_ids, attention_mask).to(states.dtype).unsqueeze(-1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)


class PositionLinear(nn.Module):
    """A learned weight per position and one bias, the same for all channels.

    Every input is padded to `n_positions` with `pad_id`, so the result does not depend on the batch. As published, no
    mask is passed to the encoder: tokens attend to padding. With `attend_padding` False they do not; padding is still
    weighted.
    """

    def __init__(self, n_positions: int, pad_id: int, attend_padding: bool = True) -> None:
        super().__init__()
        if n_positions < 1:
            raise ModelError(f"n_positions: got {n_positions!r}, expected 1 or more")
        self.n_positions, self.pad_id, self.attend_padding = n_positions, pad_id, attend_padding
        self.position_weights = nn.Linear(n_positions, 1)

    def forward(self, encoder: Encoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]. Raises EvaluationError for T > n_positions."""
        missing = self.n_positions - input_ids.shape[1]
        if missing < 0:
            length, most = input_ids.shape[1], self.n_positions
            raise EvaluationError(
                f"input_ids: got {length} positions, expected at most the {most} that the head weighs"
            )
        mask = F.pad(token_mask(input_ids, attention_mask), (0, missing))
        ids = F.pad(input_ids, (0, missing), value=self.pad_id).where(mask, self.pad_id)
        states = encoder(ids, None if self.attend_padding else mask)[-1]
        return self.position_weights(states.transpose(1, 2)).squeeze(-1)


def make_pooling(name: PoolingName, n_positions: int, pad_id: int, attend_padding: bool) -> nn.Module:
    """The pooling of that name; all but the name are for "position_linear"."""
    if name == "position_linear":
        return PositionLinear(n_positions, pad_id, attend_padding)
    return {"first_token": FirstToken, "last_token": LastToken, "mean": MeanOverTokens}[name]()


def tokens_of_spans(sentences: Tensor, spans: Tensor, length: int, widest: int | None = None) -> tuple[Tensor, Tensor]:
    """The flat positions int64 [N, W] (b * length + t) of the tokens of spans, and bool [N, W], True at tokens.

    `spans` int64 [N, 2] are [start, end), `sentences` int64 [N] says in which sequence of `length` positions a span
    lies. W is `widest` where it is given, which no span may exceed; else the longest span's length where that is known
    without waiting for a device, else `length`.
    """
    start, end = spans[:, 0:1], spans[:, 1:2]
    if widest is None:
        on_cpu = spans.device.type == "cpu" and not torch.compiler.is_compiling()
        widest = int((end - start).max()) if on_cpu and len(spans) else length
    positions = start + torch.arange(widest, device=spans.device)
    inside = positions < end
    # Positions behind a span may lie behind the sequence; they are read somewhere else, and masked.
    return sentences.unsqueeze(1) * length + positions.where(inside, start), inside


class SpanAttentionPooling(nn.Module):
    """Every head weighs the tokens of a span with a softmax of its own, and pools its share of the values.

    Raises ModelError unless `n_heads` divides `size`.
    """

    def __init__(self, size: int, n_heads: int) -> None:
        super().__init__()
        if n_heads < 1 or size % n_heads:
            raise ModelError(f"pooling_heads: got {n_heads!r}, expected a divisor of the width {size}")
        self.n_heads = n_heads
        self.token_scores = nn.Linear(size, n_heads, bias=False)
        self.values = nn.Linear(size, size)

    def forward(self, states: Tensor, sentences: Tensor, spans: Tensor, widest: int | None = None) -> Tensor:
        """Vectors [N, D] of `spans` int64 [N, 2] in `states` [B, T, D]; see `tokens_of_spans`."""
        rows, inside = tokens_of_spans(sentences, spans, states.shape[1], widest)
        # Scores and values come before the tokens are laid out by span: a token may lie in many spans, and the gradient
        # of index_select is several times faster on a CPU than that of indexing with a matrix.
        scores = select_tokens(full_precision(self.token_scores(states)), rows)
        values = select_tokens(self.values(states), rows).unflatten(-1, (self.n_heads, -1))
        weights = torch.softmax(scores.masked_fill(~inside.unsqueeze(-1), -torch.inf), dim=1).to(values.dtype)
        return torch.einsum("nwh,nwhd->nhd", weights, values).flatten(1)


def select_tokens(states: Tensor, rows: Tensor) -> Tensor:
    """The vectors [N, W, D] at the flat positions `rows` int64 [N, W] of `states` [B, T, D]."""
    return states.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, rows.shape)


LayerReading = Literal["contributions", "differences", "outputs"]


def layer_vectors(encoder: Encoder, states: Sequence[Tensor], reading: LayerReading) -> Tensor:
    """What the layers 1 to L give, [L, B, T, D], from all states of `encoder`; the embedding itself is left out.

    Raises ModelError for "differences" of an encoder with layer weighting, whose layers do not add to their inputs, and
    for an unknown reading.
    """
    # A weighted output appends its mixture to the states; that is no layer.
    stacked = torch.stack(tuple(states[: encoder.n_layers + 1]))
    if reading == "contributions":
        reading = "differences" if encoder.layers_add_up else "outputs"
    if reading == "outputs":
        return stacked[1:]
    if reading != "differences":
        raise ModelError(f"layer_reading: got {reading!r}, expected contributions, differences or outputs")
    if not encoder.has_residual_stream:
        raise ModelError("layer_reading: got 'differences', expected 'outputs' for an encoder without residual stream")
    return stacked[1:] - stacked[:-1]


class LayerMix(nn.Module):
    """Softmax weights over layers, equal at the start; if `scaled`, times a learned number that starts at 1."""

    def __init__(self, n_layers: int, scaled: bool = False) -> None:
        super().__init__()
        self.layer_weights = nn.Parameter(torch.zeros(n_layers))
        self.scale = nn.Parameter(torch.ones(())) if scaled else None

    @property
    def shares(self) -> Tensor:
        """The weights [L], summing to 1."""
        return torch.softmax(self.layer_weights, dim=0)

    def forward(self, layers: Tensor) -> Tensor:
        """The combination [...] of `layers` [L, ...]; convex unless it is scaled."""
        weights = self.shares if self.scale is None else self.scale * self.shares
        return torch.einsum("l,l...->...", weights.to(layers.dtype), layers)
