"""Texts as token ids, every distinct one once, in one flat array: the cache that all epochs, seeds and rates share.

ReCoRD repeats a passage for each of a dozen candidates and trains on more than a million inputs; as lists of numbers
per input they would not fit into memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from hatchery.tokenization.tokenizer_file import Tokenizer

TEXTS_PER_CALL = 8192


@dataclass(frozen=True)
class SegmentPool:
    """Text i has the ids `tokens[starts[i] : starts[i + 1]]`; `tokens` is int32 [total], `starts` int64 [n + 1]."""

    tokens: np.ndarray
    starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, int64 [n]."""
        return np.diff(self.starts)


def encode_pool(texts: Sequence[str], tokenizer: Tokenizer) -> SegmentPool:
    """Encode texts without framing, in calls of bounded size because the tokenizer answers in Python lists."""
    parts, lengths = [np.empty(0, dtype=np.int32)], [0]
    for start in range(0, len(texts), TEXTS_PER_CALL):
        encoded = tokenizer.encode_sentences(texts[start : start + TEXTS_PER_CALL])
        lengths += map(len, encoded)
        parts.append(np.fromiter(chain.from_iterable(encoded), dtype=np.int32))
    return SegmentPool(np.concatenate(parts), np.cumsum(lengths, dtype=np.int64))


class TextNumbers:
    """Numbers texts in the order in which they first appear."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """The distinct texts in the order of their numbers."""
        return list(self._numbers)

    def of(self, texts: Iterable[str]) -> list[int]:
        """The number of each text, a new one for a text that is not known yet."""
        numbers = self._numbers
        return [numbers.setdefault(text, len(numbers)) for text in texts]
