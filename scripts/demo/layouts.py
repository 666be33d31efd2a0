"""Spellings of one sentence in the raw corpora: natural text, space-separated tokens, Penn Treebank quotes, subtitles.

The raw formats differ in how they write the same words; these functions take a sentence as words and spell it in one
way. Quoted speech is added here too, because only written texts have it.
"""

import random
import textwrap
from collections.abc import Sequence

from demo.documents import EmbeddedDocument
from demo.grammar import choose, text_of
from demo.lexicon import NAMES
from demo.scenes import Words

_NAME_WORDS = frozenset(name.word for name in NAMES)


def spoken_by(words: Words, name: str) -> Words:
    """The sentence as quoted speech: "The dog sleeps," said Tom."""
    mark = "," if words[-1] == "." else words[-1]
    return ("“", *words[:-1], mark, "”", "said", name, ".")


def with_speech(document: EmbeddedDocument, rng: random.Random, probability: float = 0.08) -> list[list[Words]]:
    """The paragraphs of a document in which some sentences are quoted speech."""
    return [
        [
            spoken_by(words, choose(rng, NAMES).word) if rng.random() < probability and words[-1] in ".?" else words
            for words in paragraph
        ]
        for paragraph in document.paragraphs
    ]


def natural(words: Sequence[str]) -> str:
    """Ordinary text with straight double quotes."""
    return text_of(words).replace("“", '"').replace("”", '"')


def lower_first(words: Sequence[str]) -> list[str]:
    """The words with the first letter in lower case, unless the first word is a name."""
    first, *rest = words
    return [first if first in _NAME_WORDS else first[0].lower() + first[1:], *rest]


def spaced(words: Sequence[str]) -> str:
    """Every token apart, first letter in lower case: the spelling of transcripts."""
    return " ".join(lower_first(words))


def treebank(words: Sequence[str]) -> str:
    """Every token apart, quotes as two back-ticks and two apostrophes: the spelling of the Penn Treebank."""
    return " ".join({"“": "``", "”": "''"}.get(word, word) for word in words)


def paragraph_text(paragraph: Sequence[Words]) -> str:
    """The sentences of a paragraph one after the other on one line."""
    return " ".join(natural(words) for words in paragraph)


def wrapped(text: str, width: int = 64) -> list[str]:
    """The text in lines of at most `width` characters, as in a printed book."""
    return textwrap.wrap(text, width)
