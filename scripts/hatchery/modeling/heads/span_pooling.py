"""One vector per span of tokens, by attention over these tokens alone.

Source: LTG-BERT Appendix B.2 (attention pooling with 4 heads; the module was not published) after Tenney et al. 2019.
A learned query against projected keys is a linear score per token and head, so that is what is learned here.
"""

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.numerics import full_precision


def gather_spans(states: Tensor, sentences: Tensor, spans: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens [N, W, D] of `spans` int64 [N, 2] as [start, end), and bool [N, W], True where a span has a token.

    `states` is [B, T, D], `sentences` int64 [N] says in which sequence a span lies; W is the longest span's length
    where that is known without waiting for a device, else T.
    """
    start, end = spans[:, 0:1], spans[:, 1:2]
    on_cpu = spans.device.type == "cpu" and not torch.compiler.is_compiling()
    widest = int((end - start).max()) if on_cpu and len(spans) else states.shape[1]
    positions = start + torch.arange(widest, device=spans.device)
    inside = positions < end
    # Positions behind a span may lie behind the sequence; they are read somewhere else, and masked.
    return states[sentences.unsqueeze(1), positions.where(inside, start)], inside


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

    def forward(self, tokens: Tensor, inside: Tensor) -> Tensor:
        """Vectors [N, D] of `tokens` [N, W, D], of which those with `inside` bool [N, W] belong to the span."""
        scores = full_precision(self.token_scores(tokens)).masked_fill(~inside.unsqueeze(-1), -torch.inf)
        values = self.values(tokens).unflatten(-1, (self.n_heads, -1))
        weights = torch.softmax(scores, dim=1).to(values.dtype)
        return torch.einsum("nwh,nwhd->nhd", weights, values).flatten(1)
