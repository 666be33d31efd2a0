"""ESMS: how well a tokenizer cuts words into their morphemes, as the paper defines it and as its code does.

Source: reduced-vocabulary study §3.3. `definition` is the share of words whose tokens are exactly the reference
morphemes. `published_code` is partial credit: every token that occurs among the word's morphemes counts 1, words of
one token or of as many tokens as letters count 0, and the sum is divided by the number of all morphemes; the printed
values are all of this kind. It deletes `#` and underscores but not U+2581, so the first piece of a SentencePiece word
never counts; `published_code_corrected` takes the letters that tokens stand for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hatchery.tokenization.selection.backends import isolated, open_backend, surfaces, tokens_of
from hatchery.tokenization.selection.morphemes import Word


@dataclass(frozen=True)
class EsmsScores:
    """ESMS in all readings, each from 0 to 1."""

    definition: float
    published_code: float
    published_code_corrected: float


def equals_morphemes(pieces: Sequence[str], word: Word) -> bool:
    """The paper's definition for one word; `pieces` are the letters of its tokens."""
    return tuple(pieces) == word.morphemes


def partial_credit(tokens: Sequence[str], word: Word) -> int:
    """The published code's credit for one word: the number of its tokens that occur among its morphemes."""
    if len(tokens) in (1, len(word.text)):
        return 0
    return sum(token.replace("#", "").replace("_", "") in word.morphemes for token in tokens)


def esms(definition: dict[str, Any], words: Sequence[Word], where: str) -> EsmsScores:
    """ESMS of a tokenizer over words in isolation. `words` must not be empty (reading a list makes sure of it)."""
    backend = open_backend(isolated(definition), where)
    tokenised = list(tokens_of(backend, [word.text for word in words]))
    pieces = [surfaces(definition, tokens) for tokens in tokenised]
    morphemes = sum(len(word.morphemes) for word in words)
    equal = sum(equals_morphemes(found, word) for found, word in zip(pieces, words, strict=True))
    published = sum(partial_credit(found, word) for found, word in zip(tokenised, words, strict=True))
    corrected = sum(partial_credit(found, word) for found, word in zip(pieces, words, strict=True))
    return EsmsScores(equal / len(words), published / morphemes, corrected / morphemes)
