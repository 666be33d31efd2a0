"""Span classification: the probe of LTG-BERT's edge probing, which predicts labels of given spans.

Source: LTG-BERT, Section 6.2, Appendices B.2 and C, Tables 5 and 11; docs/papers/ltg-bert.md, "Edge probing" (the
authors' module was not published). A learned convex combination of all layers is projected to 256 channels. Attention
with 4 heads pools the tokens of each span, and a network with one hidden layer classifies the result. In tasks with two
spans per target, each span has its own layer weights and its own pooling. In the original probe (Tenney et al. 2019;
docs/papers/ltg-bert.md, "Records of edge probing"), each span also has its own projection, and a learned factor scales
the combination.

LTG-BERT's paper combines the contributions of the layers to the residual stream, s_k = l_k - l_(k-1). LTG-BERT's code
instead passes the layer outputs l_k to the unpublished module. The option `layer_reading` selects the vectors:
"differences" selects s_k, and "outputs" selects l_k. The default "contributions" selects s_k if every layer only adds
to the residual stream. In other encoders, for example with layer weighting (ELC-BERT) or post-norm, the difference s_k
is not the contribution of layer k, so "contributions" selects l_k. The attention pooling scores each token by one
linear function per head, which is equivalent to the product of a learned query and projected keys.
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
    """Return the flat positions int64 [N, W] (b * length + t) of the spans' tokens, and a mask bool [N, W]. The mask is
    True at the tokens of a span, and False after its end.

    `spans` int64 [N, 2] are [start, end). `sentences` int64 [N] are the indices of their sequences, and each sequence
    has `length` positions. W is `widest`, the maximum length of a span. If `widest` is None, W is the length of the
    longest span on the CPU. On other devices, W is `length`, because reading the spans would synchronise with the
    device.
    """
    start, end = spans[:, 0:1], spans[:, 1:2]
    if widest is None:
        on_cpu = spans.device.type == "cpu" and not torch.compiler.is_compiling()
        widest = int((end - start).max()) if on_cpu and len(spans) else length
    positions = start + torch.arange(widest, device=spans.device)
    inside = positions < end
    # Replace positions after the end of a span by the start of the span: these positions are masked, but may be outside
    # of the sequence.
    return sentences.unsqueeze(1) * length + positions.where(inside, start), inside


class SpanAttentionPooling(nn.Module):
    """Attention pooling over the tokens of each span. Every head scores the tokens with its own weights, and averages
    its own slice of the projected token vectors.

    Raises ModelError unless `n_heads` divides `size`, the width of the token vectors.
    """

    def __init__(self, size: int, n_heads: int) -> None:
        super().__init__()
        if n_heads < 1 or size % n_heads:
            raise ModelError(f"pooling_heads: got {n_heads!r}, expected a divisor of the width {size}")
        self.n_heads = n_heads
        self.token_scores = nn.Linear(size, n_heads, bias=False)
        self.values = nn.Linear(size, size)

    def forward(self, states: Tensor, sentences: Tensor, spans: Tensor, widest: int | None = None) -> Tensor:
        """Return one vector for each of N spans, [N, D], from the token vectors `states` [B, T, D]. For `sentences`,
        `spans` and `widest`, see `tokens_of_spans`.
        """
        rows, inside = tokens_of_spans(sentences, spans, states.shape[1], widest)
        # Compute scores and values once per token and then gather them by span, because a token may be in many spans.
        # On a CPU the gradient of index_select is several times faster than the gradient of indexing with a matrix.
        scores = select_tokens(full_precision(self.token_scores(states)), rows)
        values = select_tokens(self.values(states), rows).unflatten(-1, (self.n_heads, -1))
        weights = torch.softmax(scores.masked_fill(~inside.unsqueeze(-1), -torch.inf), dim=1).to(values.dtype)
        return torch.einsum("nwh,nwhd->nhd", weights, values).flatten(1)


def select_tokens(states: Tensor, rows: Tensor) -> Tensor:
    """Return the vectors [N, W, D] of W tokens for each of N spans, from `states` [B, T, D]. `rows` int64 [N, W] are
    the flat positions b * T + t of the tokens.
    """
    return states.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, rows.shape)


LayerReading = Literal["contributions", "differences", "outputs"]


def layer_vectors(encoder: Encoder, states: Sequence[Tensor], reading: LayerReading) -> Tensor:
    """Return the vectors [L, B, T, D] of the layers 1 to L that the probe combines, given all `states` of `encoder`.
    The vectors are states of layers or differences of successive states, selected by `reading` (see the module).

    Raises ModelError for an unknown value of `reading`, and for "differences" if the encoder has no residual stream.
    """
    # Leave out the combination of all states that the layer weighting "weighted_output" appends, because it is not a
    # layer.
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
    """Learned softmax weights over layers, initially equal. If `scaled` is true, a learned factor, initially 1,
    multiplies the weights.
    """

    def __init__(self, n_layers: int, scaled: bool = False) -> None:
        super().__init__()
        self.layer_weights = nn.Parameter(torch.zeros(n_layers))
        self.scale = nn.Parameter(torch.ones(())) if scaled else None

    @property
    def shares(self) -> Tensor:
        """Return the weights [L], summing to 1."""
        return torch.softmax(self.layer_weights, dim=0)

    def forward(self, layers: Tensor) -> Tensor:
        """Return the weighted sum [...] of `layers` [L, ...]."""
        weights = self.shares if self.scale is None else self.scale * self.shares
        return torch.einsum("l,l...->...", weights.to(layers.dtype), layers)


@dataclass(frozen=True)
class ProbeOptions(EncoderOptions):
    """Options of the head `span_classification`."""

    encoder_mode: EncoderMode = "frozen"
    # Number of spans per target: 1 for POS and NER; 2 for SRL, coreference and dependencies.
    n_spans: int = 1
    # True: each label has a sigmoid. False: the labels share a softmax.
    multi_label: bool = True
    # Vector that the probe reads from a layer: the layer's contribution to the residual stream (LTG-BERT's paper), the
    # difference between the outputs of this layer and the previous layer, or the layer's output (LTG-BERT's code).
    layer_reading: LayerReading = "contributions"
    probe_size: int = 256
    pooling_heads: int = 4
    # As in Tenney et al. 2019: `separate_projections` projects the two spans separately, and `scaled_mix` multiplies
    # the layer weights by a learned factor.
    separate_projections: bool = False
    scaled_mix: bool = False


class SpanHead(nn.Module):
    """The trained part of the probe, which computes one score per label from the layers' vectors.

    All spans of a target share one projection, unless `separate_projections` is set. The layers are combined first, and
    only the combination is projected, so the cost of the projection does not grow with the number of layers. Without
    `scaled_mix`, projecting each layer before the combination would give the same result, because the projection is
    linear and the layer weights sum to 1.
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
        """Return scores [N, labels] of N targets with `spans` int64 [N, spans, 2] in the sequences `sentences` int64
        [N].

        `layers` is [L, B, T, D]; `widest` is the length of the longest span, if known.
        """
        projections = [self.down_projection, *self.other_projections]
        pooled = []
        for i, span in enumerate(spans.unbind(dim=1)):
            states = projections[min(i, len(projections) - 1)](self.mixes[i](layers))
            pooled.append(self.poolings[i](states, sentences, span, widest))
        return self.classifier(torch.cat(pooled, dim=-1))


class SpanClassifier(TaskModel):
    """A probe on an encoder, which is frozen by default. Each target consists of `n_spans` spans.

    If `multi_label` is true, each label has a sigmoid; labels are 0 or 1, predictions are bool, and both have the shape
    [N, n_labels]. If `multi_label` is false, labels and predictions are class ids, int64 [N]. Raises ModelError for
    invalid sizes. `forward` raises ModelError for a `layer_reading` that does not fit the encoder.
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
        """Return scores [N, n_labels] of N targets in the sequences `input_ids` int64 [B, T]; `attention_mask` is bool
        [B, T].

        `spans` int64 [N, n_spans, 2] are token positions [start, end), where [CLS] is position 0. `sentences` int64 [N]
        are the indices of the targets' sequences. Instead of `input_ids`, a frozen encoder may get its precomputed
        `layers` [L, B, T, D], the result of `layer_vectors`. `widest`, the length of the longest span, saves
        computation on a GPU (`tokens_of_spans`). Raises EvaluationError for a wrong number of spans. On the CPU, also
        raises EvaluationError for a span that is empty or not within the tokens. Raises ModelError unless exactly one
        of `input_ids` and `layers` is given, and for `layers` of another shape. Also raises ModelError for `layers` if
        the option `encoder_mode` is "trained", or if it is "frozen_with_dropout" and the model is in training mode.
        """
        if (input_ids is None) == (layers is None):
            raise ModelError("inputs: expected exactly one of input_ids and layers")
        if spans.ndim == 3 and spans.shape[1] != self.n_spans:
            raise EvaluationError(f"spans: got {spans.shape[1]} spans per target, expected {self.n_spans}")
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
            raise ModelError(
                f"layers: got precomputed states, expected none, because the encoder is {self.encoder_mode}"
            )
        expected = (self.encoder.n_layers, self.encoder.config.hidden_size)
        if layers.ndim != 4 or (layers.shape[0], layers.shape[3]) != expected:
            raise ModelError(
                f"layers: got shape {tuple(layers.shape)}, expected [{expected[0]}, sentences, tokens, {expected[1]}]"
            )
        check_spans(spans, sentences, token_mask(layers[0, :, :, 0], mask))
        return layers.to(next(self.head.parameters()).dtype)

    @torch.no_grad()
    def layer_weights(self) -> Tensor:
        """Return the softmax weights [n_spans, L] of the layers 1 to L."""
        return torch.stack([module.shares for module in self.head.modules() if isinstance(module, LayerMix)])

    def layer_contribution(self) -> Tensor:
        """Return the mean [L] of the layer weights over the `n_spans` spans that a target consists of, because each
        span has its own weights. LTG-BERT's Table 5 shows these means in percent.
        """
        return self.layer_weights().mean(dim=0)
