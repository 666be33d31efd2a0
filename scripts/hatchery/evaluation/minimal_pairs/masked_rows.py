"""Sentences expanded into rows with masked tokens: what is masked in each row, and which rows are worth computing.

Source: Salazar et al. (2020) mask one token per row; Kauf & Ivanova (2023) mask with it the later pieces of the same
word, so that a word's end does not give its beginning away. A sentence of N tokens asks for N rows; rows that are the
same input (a pair often differs in the masked token alone) are computed once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, Frame

# Rows are compared in blocks, so that memory stays bounded whatever the size of a suite.
TOKENS_PER_BLOCK = 1 << 22


@dataclass(frozen=True)
class MaskedRows:
    """The distinct rows of some sentences of equal length, and what is asked of each.

    `ids` int64 [R, T] and `positions` int64 [R] (the masked token that is scored) are the rows, in an order that is
    a function of their content. Sentence s asks for the token i at row `of[s, i]`; `of` is int64 [S, N].
    """

    ids: np.ndarray
    positions: np.ndarray
    of: np.ndarray


def masked_tokens(sentences: Sequence[EncodedSentence], within_word: bool) -> np.ndarray:
    """Bool [S, N, N]: which tokens (last axis) are masked when token i (second axis) is scored.

    All sentences have N tokens; `within_word` needs their word numbers.
    """
    length = len(sentences[0].ids)
    alone = np.broadcast_to(np.eye(length, dtype=bool), (len(sentences), length, length))
    if not within_word:
        return alone
    words = np.array([sentence.words for sentence in sentences])
    later = np.triu(np.ones((length, length), dtype=bool))
    return (words[:, :, None] == words[:, None, :]) & later


def expand(sentences: Sequence[EncodedSentence], frame: Frame, mask_id: int, within_word: bool) -> MaskedRows:
    """The rows [before] t_1 … [MASK] … t_N [after] of sentences of N tokens each, without repetitions."""
    ids = np.array([sentence.ids for sentence in sentences], dtype=np.int64)
    n_sentences, length = ids.shape
    first = len(frame.before)
    rows = np.empty((n_sentences, length, first + length + len(frame.after)), dtype=np.int64)
    rows[:, :, :first] = frame.before
    rows[:, :, first + length :] = frame.after
    rows[:, :, first : first + length] = np.where(masked_tokens(sentences, within_word), mask_id, ids[:, None, :])
    positions = np.broadcast_to(np.arange(first, first + length), (n_sentences, length))
    keyed = np.concatenate([positions[:, :, None], rows], axis=2).reshape(n_sentences * length, -1)
    distinct, of = np.unique(keyed, axis=0, return_inverse=True)
    return MaskedRows(distinct[:, 1:], distinct[:, 0], of.reshape(n_sentences, length))


def blocks(bucket: Sequence[EncodedSentence], frame: Frame) -> Iterator[Sequence[EncodedSentence]]:
    """Sentences of equal length in portions whose rows have some TOKENS_PER_BLOCK tokens, but always one sentence."""
    length = len(bucket[0].ids)
    tokens = length * (length + len(frame.before) + len(frame.after))
    size = max(1, TOKENS_PER_BLOCK // tokens)
    for start in range(0, len(bucket), size):
        yield bucket[start : start + size]
