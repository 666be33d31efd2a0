"""Span classification, the probe of LTG-BERT's edge probing: what do the vectors of given spans know?

Source: LTG-BERT section 5.2, Appendix B.2 and Table 11; reference section 6.5 (the module was not published). All
layers are mixed, projected to 256 channels, pooled over each span's tokens with 4 attention heads, and classified by
a network with one hidden layer. Tasks with two spans have a pooler and layer weights for each.
"""

import torch
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.heads.checks import check_spans, token_mask
from hatchery.modeling.heads.layer_mix import LayerMix, LayerReading, layer_vectors
from hatchery.modeling.heads.score_head import ScoreHead
from hatchery.modeling.heads.span_pooling import SpanAttentionPooling, gather_spans
from hatchery.modeling.heads.targets import IndependentLabels, OneClass
from hatchery.modeling.heads.task_model import EncoderMode, TaskModel
from hatchery.modeling.layered_encoder import LayeredEncoder


class SpanHead(nn.Module):
    """The trained part of the probe: from the layers' vectors to one score per label.

    The projection is shared by the spans of a target; since it is linear and the layer weights sum to 1, it gives the
    same before the mix, as the paper writes it, and after, where it costs one layer instead of all.
    """

    def __init__(
        self, hidden_size: int, n_layers: int, n_labels: int, n_spans: int, probe_size: int, pooling_heads: int
    ) -> None:
        super().__init__()
        self.down_projection = nn.Linear(hidden_size, probe_size)
        self.mixes = nn.ModuleList(LayerMix(n_layers) for _ in range(n_spans))
        self.poolings = nn.ModuleList(SpanAttentionPooling(probe_size, pooling_heads) for _ in range(n_spans))
        self.classifier = ScoreHead(n_spans * probe_size, n_labels, 0.0, "probe", probe_size)

    def forward(self, layers: Tensor, sentences: Tensor, spans: Tensor) -> Tensor:
        """Scores [N, labels] of `spans` int64 [N, spans, 2] in `sentences` int64 [N]; `layers` is [L, B, T, D]."""
        pooled = []
        for mix, pooling, span in zip(self.mixes, self.poolings, spans.unbind(dim=1), strict=True):
            tokens, inside = gather_spans(self.down_projection(mix(layers)), sentences, span)
            pooled.append(pooling(tokens, inside))
        return self.classifier(torch.cat(pooled, dim=-1))


class SpanClassifier(TaskModel):
    """A probe on an encoder that is frozen unless told otherwise; targets are one span, or two.

    With `multi_label` labels are 0/1 [N, n_labels] and predictions bool, one sigmoid each; otherwise class ids int64
    [N]. `layer_reading` is what is mixed, see `layer_mix`. Raises ModelError for impossible sizes, and for a reading
    that does not fit the encoder.
    """

    def __init__(
        self,
        encoder: LayeredEncoder,
        n_labels: int,
        dropout: float,
        seed: int,
        *,
        n_spans: int = 1,
        multi_label: bool = True,
        layer_reading: LayerReading = "differences",
        probe_size: int = 256,
        pooling_heads: int = 4,
        encoder_mode: EncoderMode = "frozen",
    ) -> None:
        for name, value in {"n_spans": n_spans, "probe_size": probe_size}.items():
            if value < 1:
                raise ModelError(f"{name}: got {value!r}, expected 1 or more")
        config = encoder.config
        head = SpanHead(config.hidden_size, len(encoder.layers), n_labels, n_spans, probe_size, pooling_heads)
        super().__init__(encoder, head, IndependentLabels() if multi_label else OneClass(), dropout, seed, encoder_mode)
        self.n_spans, self.layer_reading = n_spans, layer_reading

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *, spans: Tensor, sentences: Tensor
    ) -> Tensor:
        """Scores [N, n_labels] of N targets in the sequences `input_ids` int64 [B, T], mask bool [B, T].

        `spans` int64 [N, n_spans, 2] are token positions [start, end), [CLS] being position 0; `sentences` int64 [N]
        the sequences they lie in. Raises EvaluationError for another number of spans, and for spans that are empty or
        reach outside of the tokens.
        """
        check_spans(spans, sentences, token_mask(input_ids, attention_mask))
        if spans.shape[1] != self.n_spans:
            raise EvaluationError(f"spans: got {spans.shape[1]} per target, expected {self.n_spans}")
        states = self.encoder(input_ids, attention_mask)
        return self.head(layer_vectors(self.encoder, states, self.layer_reading), sentences, spans)

    @torch.no_grad()
    def layer_weights(self) -> Tensor:
        """Softmax weights [n_spans, L] of the layers 1 to L."""
        return torch.stack([module.shares for module in self.head.modules() if isinstance(module, LayerMix)])

    def layer_contribution(self) -> Tensor:
        """The share of every layer [L], of two spans the mean, as in LTG-BERT's Table 5 (there in percent)."""
        return self.layer_weights().mean(dim=0)
