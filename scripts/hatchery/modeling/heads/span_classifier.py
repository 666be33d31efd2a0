"""Span classification, the probe of LTG-BERT's edge probing: what do the vectors of given spans know?

Source: LTG-BERT, Section 6.2, Appendix B.2 and Table 11; docs/papers/ltg-bert.md, "Edge probing" (the module was not
published). All layers are mixed, projected to 256 channels, pooled over each span's tokens with 4 attention heads, and
classified by a network with one hidden layer. Tasks with two spans have a pooler and layer weights for each. The
original probe (Tenney et al. 2019; docs/papers/ltg-bert.md, "Records of edge probing") also has a projection for each,
and scales its mix.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.pooling import LayerMix, LayerReading, SpanAttentionPooling, layer_vectors
from hatchery.modeling.heads.score_head import ScoreHead
from hatchery.modeling.heads.targets import IndependentLabels, OneClass, check_spans, token_mask
from hatchery.modeling.heads.task_model import EncoderMode, EncoderOptions, HeadContext, TaskModel


@dataclass(frozen=True)
class ProbeOptions(EncoderOptions):
    """Options of `span_classification`."""

    encoder_mode: EncoderMode = "frozen"
    # Spans per target: 1 for POS and NER; 2 for SRL, coreference and dependencies.
    n_spans: int = 1
    # A sigmoid per label, or one softmax.
    multi_label: bool = True
    # What is mixed: what each layer contributes, its difference to the one below (the paper), its output (the code).
    layer_reading: LayerReading = "contributions"
    probe_size: int = 256
    pooling_heads: int = 4
    # A projection for each span, and a learned factor on the mix (Tenney et al. 2019).
    separate_projections: bool = False
    scaled_mix: bool = False


class SpanHead(nn.Module):
    """The trained part of the probe: from the layers' vectors to one score per label.

    The projection is shared by the spans of a target unless they are separate. Since it is linear and the layer weights
    sum to 1, it gives the same before the mix, as the paper writes it, and after, where it costs one layer instead of
    all.
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
        """Scores [N, labels] of `spans` int64 [N, spans, 2] in `sentences` int64 [N]; `layers` is [L, B, T, D].

        `widest` is the length of the longest span, where it is known.
        """
        projections = [self.down_projection, *self.other_projections]
        pooled = []
        for i, span in enumerate(spans.unbind(dim=1)):
            states = projections[min(i, len(projections) - 1)](self.mixes[i](layers))
            pooled.append(self.poolings[i](states, sentences, span, widest))
        return self.classifier(torch.cat(pooled, dim=-1))


class SpanClassifier(TaskModel):
    """A probe on an encoder that is frozen unless told otherwise; targets are one span, or two.

    With `multi_label` labels are 0/1 [N, n_labels] and predictions bool, one sigmoid each; otherwise class ids int64
    [N]. Raises ModelError for impossible sizes, and for a reading of the layers that does not fit the encoder.
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
        """Scores [N, n_labels] of N targets in the sequences `input_ids` int64 [B, T], mask bool [B, T].

        `spans` int64 [N, n_spans, 2] are token positions [start, end), [CLS] being position 0; `sentences` int64 [N]
        the sequences they lie in. `layers` [L, B, T, D], as `layer_vectors` gives them, stand in for the ids where
        the encoder is frozen and its states are known; positions then count among their tokens. `widest`, the length
        of the longest span, spares a GPU the widest thinkable. Raises EvaluationError for another number of spans, and
        for spans that are empty or reach outside of the tokens; ModelError for ids and layers both or neither.
        """
        if (input_ids is None) == (layers is None):
            raise ModelError("inputs: expected input_ids or layers, one of them")
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
            raise ModelError(f"layers: an encoder that is {self.encoder_mode} has no states to be known beforehand")
        expected = (self.encoder.n_layers, self.encoder.config.hidden_size)
        if layers.ndim != 4 or (layers.shape[0], layers.shape[3]) != expected:
            raise ModelError(f"layers: got shape {tuple(layers.shape)}, expected [{expected[0]}, B, T, {expected[1]}]")
        check_spans(spans, sentences, token_mask(layers[0, :, :, 0], mask))
        return layers.to(next(self.head.parameters()).dtype)

    @torch.no_grad()
    def layer_weights(self) -> Tensor:
        """Softmax weights [n_spans, L] of the layers 1 to L."""
        return torch.stack([module.shares for module in self.head.modules() if isinstance(module, LayerMix)])

    def layer_contribution(self) -> Tensor:
        """The share of every layer [L], of two spans the mean, as in LTG-BERT's Table 5 (there in percent)."""
        return self.layer_weights().mean(dim=0)
