"""Beam search over a translation model, for a batch of sentences at once, each token computed once.

Source: "A Natural Bias for Language Generation Models", Section 4.1 (beam 5, normalised by length), in the reading of
docs/papers/natural-bias.md, "Decoding and metrics": the score of a translation is its log-probability divided by the
number of its tokens, the end counted. A sentence is searched by itself: neither its neighbours in the batch nor their
lengths decide anything.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.translation.settings import SearchSettings


class Hypothesis(NamedTuple):
    """A finished translation: its ids without start and end, and its log-probability per token, the end counted."""

    ids: list[int]
    score: float


@dataclass
class _Search:
    """One sentence: where its beam stands, and what is finished."""

    index: int
    longest: int
    prefixes: list[list[int]] = field(default_factory=lambda: [[]])
    sums: list[float] = field(default_factory=lambda: [0.0])
    finished: list[Hypothesis] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether no open translation can become the best one: at best it goes on to the greatest length for free."""
        if not self.prefixes:
            return True
        return bool(self.finished) and self.finished[0].score >= max(self.sums) / self.longest


@torch.no_grad()
def beam_search(
    model: TranslationModel,
    input_ids: Tensor,
    attention_mask: Tensor,
    limits: SearchSettings,
    never: tuple[int, ...] = (),
) -> list[list[Hypothesis]]:
    """The best finished translations of each source, best first, at most `limits.beam` of them.

    In every step each open translation is also tried as a finished one, and the best `beam` others go on. The first one
    is what a search to the greatest length would give; the search ends when that is certain.

    `input_ids` int64 [B, S] end with the id of the end, `attention_mask` bool [B, S] is True at tokens; `never` are ids
    that are not written besides padding and start. The model must be in evaluation mode.
    """
    config = model.config
    end, beam = config.sep_token_id, limits.beam
    forbidden = sorted({config.pad_token_id, config.cls_token_id, *never})
    lengths = attention_mask.sum(dim=1).tolist()
    # The source's own end is no token to translate.
    searches = [_Search(index, limits.longest(length - 1)) for index, length in enumerate(lengths)]
    results = list(searches)
    state = model.begin(input_ids, attention_mask)
    device = input_ids.device
    tokens = torch.full((len(searches), 1), config.cls_token_id, dtype=torch.int64, device=device)
    while searches:
        hidden = model.decode(tokens, state)[:, -1]
        log_probabilities = full_precision(model.logits_at(hidden)).log_softmax(dim=-1)
        log_probabilities[:, forbidden] = -torch.inf
        kept_rows: list[int] = []
        kept_tokens: list[int] = []
        first_row, still = 0, []
        # One of them may be the end.
        width = min(beam + 1, log_probabilities.shape[1])
        best, ids = (part.tolist() for part in log_probabilities.topk(width, dim=1))
        ends = log_probabilities[:, end].tolist()
        for search in searches:
            rows = range(first_row, first_row + len(search.prefixes))
            first_row += len(search.prefixes)
            chosen = _advance(search, rows, best, ids, ends, end, beam)
            if not search.is_over:
                still.append(search)
                kept_rows += [row for row, _ in chosen]
                kept_tokens += [token for _, token in chosen]
        searches = still
        if searches:
            state = state.rows(torch.tensor(kept_rows, device=device))
            tokens = torch.tensor(kept_tokens, device=device)[:, None]
    return [search.finished for search in results]


def _advance(
    search: _Search, rows: range, best: list[list[float]], ids: list[list[int]], ends: list[float], end: int, beam: int
) -> list[tuple[int, int]]:
    """Take one more token; returns row and token of every translation that stays open, best first."""
    length = len(search.prefixes[0]) + 1
    candidates: list[tuple[float, int, int]] = []
    for number, row in enumerate(rows):
        total, prefix = search.sums[number], search.prefixes[number]
        if ends[row] > -torch.inf:
            search.finished.append(Hypothesis(prefix, (total + ends[row]) / length))
        if length < search.longest:
            candidates += [
                (-(total + value), number, token)
                for value, token in zip(best[row], ids[row], strict=True)
                if token != end and value > -torch.inf
            ]
    # Equal scores go to the better hypothesis and the smaller id, on every device.
    chosen = sorted(candidates)[:beam]
    search.finished.sort(key=lambda found: -found.score)
    del search.finished[beam:]
    search.prefixes, search.sums = (
        [[*search.prefixes[number], token] for _, number, token in chosen],
        [-cost for cost, _, _ in chosen],
    )
    return [(rows[number], token) for _, number, token in chosen]
