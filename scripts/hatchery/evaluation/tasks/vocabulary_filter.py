"""Which rows of a task lie within a vocabulary (docs/papers/reduced-vocabulary.md, "Comparison of words" and "Filtered
GLUE").

as_published: the texts joined by a blank are split at single blanks. A token with an upper-case letter is skipped as a
name unless it is the very first. Digits and the listed symbols are deleted from the others, wherever they stand; what
is left must be in the vocabulary in lower case, unless it is empty or a leftover of a contraction. Other symbols stay,
so a token with `%` or `/` fails, and there is no rule for links.

corrected mends what makes that comparison another than the one that chose the pretraining text: words, contractions,
numerals, hyphens and links are those of the corpora's corrected comparison. Names are skipped as published, but only
where the capital tells something: the first word of every text and of every sentence is looked up.
"""

import re
from collections.abc import Callable, Sequence, Set

from hatchery.corpora.sentences import split_sentences
from hatchery.evaluation.tasks.settings import VocabularyFilter
from hatchery.vocabulary.comparison import COMPARISONS, HYPERLINK, KnownWords

Within = Callable[[Sequence[str]], bool]

DELETED_SYMBOLS = "!:&“”—-_,@#$?;’.'()\""
"""Symbols that the published filter deletes, besides the digits."""

LEFTOVERS = frozenset({"", "nt", "s", "re", "t", "d", "ll"})
"""What the published filter skips when nothing else is left of a token."""

_DELETED = str.maketrans("", "", DELETED_SYMBOLS + "0123456789")
_WORD = re.compile(r"[^\W_]+(?:['’ʼ][^\W_]+)*")


def make_filter(settings: VocabularyFilter, vocabulary: Set[str]) -> Within:
    """A function that tells whether the texts of a row, in their order, lie within `vocabulary`."""
    if settings.reading == "as_published":
        return lambda texts: _as_published(" ".join(texts), vocabulary)
    known = KnownWords(vocabulary, COMPARISONS["corrected"])
    return lambda texts: all(_corrected(text, known) for text in texts)


def _as_published(text: str, vocabulary: Set[str]) -> bool:
    for index, token in enumerate(text.split(" ")):
        lower = token.lower()
        if index and lower != token:
            continue
        word = lower.translate(_DELETED)
        if word not in vocabulary and word not in LEFTOVERS:
            return False
    return True


def _corrected(text: str, known: KnownWords) -> bool:
    if HYPERLINK in text.lower():
        return False
    return all(known.contains(_without_names(sentence)) for sentence in split_sentences(text))


def _without_names(sentence: str) -> str:
    """The sentence without the words that hold an upper-case letter and do not stand first."""
    if sentence[1:].islower():
        return sentence
    first = _WORD.search(sentence)
    if first is None:
        return sentence
    rest = _WORD.sub(lambda word: "" if any(map(str.isupper, word.group())) else word.group(), sentence[first.end() :])
    return sentence[: first.end()] + rest
