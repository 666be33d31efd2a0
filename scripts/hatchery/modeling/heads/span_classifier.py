"""Span classification, the probe of LTG-BERT's edge probing, which classifies the vectors of given spans.

Source: LTG-BERT, Section 6.2, Appendix B.2 and Table 11; docs/papers/ltg-bert.md, "Edge probing" (the module was not
published). All layers are mixed, projected to 256 channels, pooled over each span's tokens with 4 attention heads, and
classified by a network with one hidden layer. Tasks with two spans have a pooler and layer weights for each span. The
original probe (Tenney et al. 2019; docs/papers/ltg-bert.md, "Records of edge probing") also has a projection for each
span, and scales its mix.

Mixes are learned convex combinations of all layers (LTG-BERT, Section 6.2 and Appendix C). Since sub-layers add to an
un-normalised residual stream, the paper mixes the contributions of the layers, s_k = l_k - l_(k-1); the published code
passes the layer outputs l_k to a module that is missing. `layer_reading` chooses between these readings; the weights
are those of the paper's Table 5. "contributions" is the paper's reading if layers add up, and otherwise the output:
with layer weighting (ELC-BERT) and after norms a state already is the contribution of its layer. In the attention over
a span's tokens, a learned query against projected keys equals a linear score per token and head, which is learned here
instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.targets import IndependentLabels, OneClass, check_spans, token_mask
from hatchery.modeling.heads.task_model import EncoderMode, EncoderOptions, HeadContext, ScoreHead, TaskModel
from hatchery.modeling.norm_and_dropout import full_precision


def tokens_of_spans(sentences: Tensor, spans: Tensor, length: int, widest: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the flat positions int64 [N, W] (b * length + t) of the tokens of spans, and bool [N, W], True at tokens.

    `spans` int64 [N, 2] are [start, end), `sentences` int64 [N] are the indices of the spans' sequences, which have
    `length` positions. W is `widest` if given, which no span may exceed; else the longest span's length if it is known
    without synchronising with a device, else `length`.
    """
    start, end = spans[:, 0:1], spans[:, 1:2]
    if widest is None:
        on_cpu = spans.device.type == "cpu" and not torch.compiler.is_compiling()
        widest = int((end - start).max()) if on_cpu and len(spans) else length
    positions = start + torch.arange(widest, device=spans.device)
    inside = positions < end
    # Positions after a span may exceed the sequence; clamp them, because they are masked.
    return sentences.unsqueeze(1) * length + positions.where(inside, start), inside


class SpanAttentionPooling(nn.Module):
    """Attention pooling: every head weights the tokens of a span with its own softmax, and pools its part of the
    values.

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
        """Return vectors [N, D] of `spans` int64 [N, 2] in `states` [B, T, D]; see `tokens_of_spans`."""
        rows, inside = tokens_of_spans(sentences, spans, states.shape[1], widest)
        # Compute scores and values before the tokens are gathered by span: a token may be in many spans, and on a CPU
        # the gradient of index_select is several times faster than that of indexing with a matrix.
        scores = select_tokens(full_precision(self.token_scores(states)), rows)
        values = select_tokens(self.values(states), rows).unflatten(-1, (self.n_heads, -1))
        weights = torch.softmax(scores.masked_fill(~inside.unsqueeze(-1), -torch.inf), dim=1).to(values.dtype)
        return torch.einsum("nwh,nwhd->nhd", weights, values).flatten(1)


def select_tokens(states: Tensor, rows: Tensor) -> Tensor:
    """Return the vectors [N, W, D] at the flat positions `rows` int64 [N, W] of `states` [B, T, D]."""
    return states.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, rows.shape)


LayerReading = Literal["contributions", "differences", "outputs"]


def layer_vectors(encoder: Encoder, states: Sequence[Tensor], reading: LayerReading) -> Tensor:
    """Return the vectors of the layers 1 to L, [L, B, T, D], from all states of `encoder`, without the embedding.

    Raises ModelError for "differences" of an encoder with layer weighting, whose layers do not add to their inputs, and
    for an unknown reading.
    """
    # With a weighted output, the last state is its mixture, which is not a layer.
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
    """Softmax weights over layers, initially equal; if `scaled`, times a learned factor that starts at 1."""

    def __init__(self, n_layers: int, scaled: bool = False) -> None:
        super().__init__()
        self.layer_weights = nn.Parameter(torch.zeros(n_layers))
        self.scale = nn.Parameter(torch.ones(())) if scaled else None

    @property
    def shares(self) -> Tensor:
        """Return the weights [L], summing to 1."""
        return torch.softmax(self.layer_weights, dim=0)

    def forward(self, layers: Tensor) -> Tensor:
        """Return the combination [...] of `layers` [L, ...]; convex unless it is scaled."""
        weights = self.shares if self.scale is None else self.scale * self.shares
        return torch.einsum("l,l...->...", weights.to(layers.dtype), layers)


@dataclass(frozen=True)
class ProbeOptions(EncoderOptions):
    """Options of `span_classification`."""

    encoder_mode: EncoderMode = "frozen"
    # Spans per target: 1 for POS and NER; 2 for SRL, coreference and dependencies.
    n_spans: int = 1
    # A sigmoid per label, or one softmax.
    multi_label: bool = True
    # Vectors that are mixed: each layer's contribution, its difference to the previous layer (the paper), or its output
    # (the code).
    layer_reading: LayerReading = "contributions"
    probe_size: int = 256
    pooling_heads: int = 4
    # A projection for each span, and a learned factor on the mix (Tenney et al. 2019).
    separate_projections: bool = False
    scaled_mix: bool = False


class SpanHead(nn.Module):
    """The trained part of the probe: from the layers' vectors to one score per label.

    The spans of a target share the projection unless the projections are separate. Because it is linear and the layer
    weights sum to 1, it can be applied after the mix, at the cost of one layer instead of all layers, with the result
    of the paper's projection before the mix.
    """

    def __init__(self, hidden_size: int, n_layers: int, n_labels: int, options: ProbeOptions) -> None:
        super().__init__()
        n_spans, size = options.n_spans, options.probe_size
        self.down_projection = nn.Linear(hidden_size, size)
        n_others = n_spans - 1 if options.separate_projections else 0
        self.other_projections = nn.ModuleList(nn.Linear(hidden_size, size) for _ in range(n_others))
        self.mixes = nn.ModuleList(LayerMix(n_layers, options.scaled_mix) for _ in range(n_spans))
        self.poolings = nn.ModuleList(SpanAttentionPooling(size, options.pooling_heads) for _ in range(n_spans))
        self.classifier = ScoreHead(n_spans * size, n_labels, 0.0, "probe", size)

    def forward(self, layers: Tensor, sentences: Tensor, spans: Tensor, widest: int | None = None) -> Tensor:
        """Return scores [N, labels] of `spans` int64 [N, spans, 2] in `sentences` int64 [N]; `layers` is [L, B, T, D].

        `widest` is the length of the longest span, if known.
        """
        projections = [self.down_projection, *self.other_projections]
        pooled = []
        for i, span in enumerate(spans.unbind(dim=1)):
            states = projections[min(i, len(projections) - 1)](self.mixes[i](layers))
            pooled.append(self.poolings[i](states, sentences, span, widest))
        return self.classifier(torch.cat(pooled, dim=-1))


class SpanClassifier(TaskModel):
    """A probe on an encoder that is frozen by default; targets are one or two spans.

    With `multi_label` labels are 0/1 [N, n_labels] and predictions bool, one sigmoid each; otherwise class ids int64
    [N]. Raises ModelError for impossible sizes, and for a reading of the layers that the encoder does not support.
    """

    def __init__(self, encoder: Encoder, context: HeadContext, options: ProbeOptions) -> None:
        for name, value in {"n_spans": options.n_spans, "probe_size": options.probe_size}.items():
            if value < 1:
                raise ModelError(f"{name}: got {value!r}, expected 1 or more")
        head = SpanHead(encoder.config.hidden_size, encoder.n_layers, context.n_outputs, options)
        target = IndependentLabels() if options.multi_label else OneClass()
        super().__init__(encoder, head, target, context, options.encoder_mode)
        self.n_spans, self.layer_reading = options.n_spans, options.layer_reading

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        spans: Tensor,
        sentences: Tensor,
        layers: Tensor | None = None,
        widest: int | None = None,
    ) -> Tensor:
        """Return scores [N, n_labels] of N targets in the sequences `input_ids` int64 [B, T], mask bool [B, T].

        `spans` int64 [N, n_spans, 2] are token positions [start, end), [CLS] being position 0; `sentences` int64 [N]
        are the indices of the targets' sequences. `layers` [L, B, T, D], the result of `layer_vectors`, replace the ids
        if the encoder is frozen and its states are known; `spans` are then positions among the tokens of `layers`.
        `widest`, the length of the longest span, saves a GPU from using the maximum length. Raises EvaluationError for
        another number of spans, and for spans that are empty or extend outside of the tokens; ModelError unless exactly
        one of ids and layers is given.
        """
        if (input_ids is None) == (layers is None):
            raise ModelError("inputs: expected exactly one of input_ids and layers")
        if spans.ndim == 3 and spans.shape[1] != self.n_spans:
            raise EvaluationError(f"spans: got {spans.shape[1]} per target, expected {self.n_spans}")
        if input_ids is not None:
            check_spans(spans, sentences, token_mask(input_ids, attention_mask))
            states = self.encoder(input_ids, attention_mask)
            layers = layer_vectors(self.encoder, states, self.layer_reading)
        else:
            layers = self._checked(layers, attention_mask, spans, sentences)
        return self.head(layers, sentences, spans, widest)

    def _checked(self, layers: Tensor | None, mask: Tensor | None, spans: Tensor, sentences: Tensor) -> Tensor:
        assert layers is not None
        if self.encoder_mode == "trained" or (self.encoder_mode == "frozen_with_dropout" and self.training):
            raise ModelError(f"layers: an encoder that is {self.encoder_mode} has no precomputed states")
        expected = (self.encoder.n_layers, self.encoder.config.hidden_size)
        if layers.ndim != 4 or (layers.shape[0], layers.shape[3]) != expected:
            raise ModelError(f"layers: got shape {tuple(layers.shape)}, expected [{expected[0]}, B, T, {expected[1]}]")
        check_spans(spans, sentences, token_mask(layers[0, :, :, 0], mask))
        return layers.to(next(self.head.parameters()).dtype)

    @torch.no_grad()
    def layer_weights(self) -> Tensor:
        """Return the softmax weights [n_spans, L] of the layers 1 to L."""
        return torch.stack([module.shares for module in self.head.modules() if isinstance(module, LayerMix)])

    def layer_contribution(self) -> Tensor:
        """Return the share of every layer [L], averaged over two spans, as in LTG-BERT's Table 5 (there in percent)."""
        return self.layer_weights().mean(dim=0)
