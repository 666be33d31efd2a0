"""Word-split ratio: tokens per word when each word is tokenised alone, and fertility in running text beside it.

Source: reduced-vocabulary study §3.2. Words stand between single spaces and are tokenised without a leading-space
marker; an empty string, left by a doubled space, counts as a word of 0 tokens. As words in running text carry the
marker that most entries of a byte-level vocabulary have, the ratio overstates it: `fertility` is the corrected figure,
text tokens per word between white space, over the same sample.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hatchery.errors import CorpusError
from hatchery.tokenization.selection.backends import isolated, open_backend, tokens_of, unknown_token


@dataclass(frozen=True)
class RunningText:
    """What a tokenizer makes of running text."""

    fertility: float
    """Tokens per word between white space."""
    unknown_rate: float
    """Share of the tokens that are the unknown token."""


def count_words(sequences: Iterable[str]) -> Counter[str]:
    """How often each space-separated word occurs; the empty string is a word where two spaces meet.

    The lines of a sequence are joined by one space and blank lines left out: the layout of documents makes no words.
    """
    words: Counter[str] = Counter()
    for sequence in sequences:
        words.update(" ".join(line for line in sequence.split("\n") if line).split(" "))
    return words


def word_split_ratio(definition: dict[str, Any], words: Counter[str], where: str) -> float:
    """Mean tokens per word in isolation. Raises CorpusError naming `where` when there is no word."""
    total = words.total()
    if not any(words):
        raise CorpusError(f"{where}: the sample has no words to measure a word-split ratio on")
    backend = open_backend(isolated(definition), where)
    distinct = sorted(words)
    tokens = sum(words[word] * len(found) for word, found in zip(distinct, tokens_of(backend, distinct), strict=True))
    return tokens / total


def running_text(definition: dict[str, Any], sequences: Sequence[str], where: str) -> RunningText:
    """Fertility and unknown rate over the lines of the sequences. Raises CorpusError when there is no word."""
    backend = open_backend(definition, where)
    unknown = unknown_token(definition)
    lines = [line.strip() for sequence in sequences for line in sequence.split("\n") if line.strip()]
    words = sum(len(line.split()) for line in lines)
    if not words:
        raise CorpusError(f"{where}: the sample has no words to measure fertility on")
    tokens = unknown_tokens = 0
    for found in tokens_of(backend, lines):
        tokens += len(found)
        unknown_tokens += sum(token == unknown for token in found)
    return RunningText(tokens / words, unknown_tokens / tokens if tokens else 0.0)
