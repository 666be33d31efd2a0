"""One vector per span of tokens, by attention over these tokens alone.

Source: LTG-BERT Appendix B.2 (attention pooling with 4 heads; the module was not published) after Tenney et al. 2019.
A learned query against projected keys is a linear score per token and head, so that is what is learned here.
"""

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.numerics import full_precision


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
