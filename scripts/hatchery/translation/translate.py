"""Beam search for batches of sentences, and translation from text to text. The search caches the keys and values of
earlier tokens.

Source: "A Natural Bias for Language Generation Models", Section 4.1 (beam 5, normalised by length), as interpreted in
docs/papers/natural-bias.md, "Decoding and metrics". A translation's score is its log-probability, divided by its number
of tokens, end token included. The search for a sentence does not depend on the other sentences of the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hatchery.modeling.encoder_decoder.model import TranslationModel
from hatchery.modeling.norm_and_dropout import full_precision
from hatchery.translation.settings import SearchSettings

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer


class Hypothesis(NamedTuple):
    """A finished translation: its ids without start and end token, and its log-probability per token, end token
    included.
    """

    ids: list[int]
    score: float


@dataclass
class _Search:
    """State of the search for one sentence: unfinished translations (the beam), and finished translations.

    `index` is the row of the sentence in the batch. `longest` is the maximum number of tokens. `sums` contains the
    log-probability of each unfinished translation in `prefixes`.
    """

    index: int
    longest: int
    prefixes: list[list[int]] = field(default_factory=lambda: [[]])
    sums: list[float] = field(default_factory=lambda: [0.0])
    finished: list[Hypothesis] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """True if no unfinished translation can become the best translation, even if all its further tokens have
        probability 1.
        """
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
    """Return the finished translations of each source, best first, at most `limits.beam` translations.

    In each step, a copy of every unfinished translation is finished with the end token, and the best `beam`
    continuations with other tokens stay unfinished. The search ends at the maximum length, or when a longer search
    cannot change the best translation.

    `input_ids` int64 [B, S] end with the end token, and `attention_mask` bool [B, S] is True at tokens. Padding, the
    start token and the ids in `never` are not generated. The model must be in evaluation mode.
    """
    config = model.config
    end, beam = config.sep_token_id, limits.beam
    forbidden = sorted({config.pad_token_id, config.cls_token_id, *never})
    lengths = attention_mask.sum(dim=1).tolist()
    # The maximum length of a translation depends on the length of its source, not counting the end token.
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
        # One candidate may be the end token, so the number of candidates is the beam size plus 1.
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
    """Extend the unfinished translations of one sentence by one token.

    Return (row, token) of each translation that remains unfinished, best first. `rows` are the rows of the sentence's
    translations in the batch. For each row of the batch, `ids` contains candidate tokens, `best` contains the
    log-probabilities of these candidates, and `ends` contains the log-probability of the end token.
    """
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
    # Sort candidates with equal scores by the rank of the translation that they continue, and then by token id. All
    # devices then give the same result.
    chosen = sorted(candidates)[:beam]
    search.finished.sort(key=lambda found: -found.score)
    del search.finished[beam:]
    search.prefixes, search.sums = (
        [[*search.prefixes[number], token] for _, number, token in chosen],
        [-cost for cost, _, _ in chosen],
    )
    return [(rows[number], token) for _, number, token in chosen]


TOKENS_PER_BATCH = 2048


def translate(
    model: TranslationModel,
    tokenizer: "Tokenizer",
    sentences: Sequence[str],
    limits: SearchSettings,
    longest_source: int,
    device: torch.device,
    tokens_per_batch: int | None = None,
    done: Callable[[int], None] = lambda sentences: None,
) -> list[str]:
    """Return the best translation of each sentence, in the order of the sentences; see `translate_ids`.

    Sources are truncated to `longest_source` tokens, including the end token.
    """
    ids = [ids[: longest_source - 1] for ids in tokenizer.encode_sentences(sentences)]
    return translate_ids(model, tokenizer, ids, limits, device, tokens_per_batch, done)


def translate_ids(
    model: TranslationModel,
    tokenizer: "Tokenizer",
    ids_of_sentences: Sequence[Sequence[int]],
    limits: SearchSettings,
    device: torch.device,
    tokens_per_batch: int | None = None,
    done: Callable[[int], None] = lambda sentences: None,
) -> list[str]:
    """Return the text of the best translation of each sentence, in the order of the sentences.

    `ids_of_sentences` are ids without end token. The model is on `device`, in evaluation mode. `tokens_per_batch`
    affects the speed; it changes the results only by rounding errors. `done` is called after each batch with the number
    of its sentences.
    """
    sources = [[*ids, tokenizer.sep_id] for ids in ids_of_sentences]
    special = never_written(tokenizer)
    translations: list[str] = [""] * len(sources)
    for rows in batches_by_length([len(source) for source in sources], tokens_per_batch or TOKENS_PER_BATCH):
        width = max(len(sources[row]) for row in rows)
        ids = torch.full((len(rows), width), tokenizer.pad_id, dtype=torch.int64)
        for position, row in enumerate(rows):
            ids[position, : len(sources[row])] = torch.tensor(sources[row])
        mask = torch.arange(width)[None] < torch.tensor([len(sources[row]) for row in rows])[:, None]
        hypotheses = beam_search(model, ids.to(device), mask.to(device), limits, special)
        for row, best in zip(rows, hypotheses, strict=True):
            translations[row] = tokenizer.decode(best[0].ids, skip_special_tokens=True).strip()
        done(len(rows))
    return translations


def never_written(tokenizer: "Tokenizer") -> tuple[int, ...]:
    """Return the ids that are not generated: all special tokens except the end token and the unknown token."""
    written = (tokenizer.sep_id, tokenizer.unknown_id)
    return tuple(index for index in tokenizer.special.ids.values() if index not in written)


def batches_by_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Group sequences of similar lengths into batches; return each batch as a list of indices in `lengths`, the lengths
    of the sequences in tokens.

    A batch has at most `budget` tokens, padding included. A sequence that is longer than `budget` is a batch of its
    own.
    """
    batches: list[list[int]] = []
    for row in np.argsort(np.asarray(lengths), kind="stable").tolist():
        if batches and lengths[row] * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches
