"""Words as running text, and where each word lies in it.

Source: LTG-BERT's preparation of pre-tokenised data (reference ltg-bert.md 6.6): words are normalised one by one,
joined by blanks, and blanks are taken out or put in. No rule behind the join touches another character than the blank,
so a word is found again by counting the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from hatchery.errors import ConfigError
from hatchery.evaluation.tasks.normalisation import detokenise, normalise
from hatchery.evaluation.tasks.settings import Normalisation


@dataclass(frozen=True)
class PlacedWords:
    """A text, and for every word its characters [start, end) in it."""

    text: str
    places: tuple[tuple[int, int], ...]


def place_words(words: Sequence[str], normalisation: Normalisation) -> PlacedWords:
    """The text of a sentence: `none` joins the words by blanks, `ltg_detokenised` writes them as running text.

    A word of which normalising leaves nothing has an empty place in front of the next one. Raises ConfigError for
    another normalisation. Words must hold no blank.
    """
    if normalisation == "none":
        ends = accumulate(len(word) + 1 for word in words)
        places = tuple((end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True))
        return PlacedWords(" ".join(words), places)
    if normalisation != "ltg_detokenised":
        raise ConfigError(f"normalisation: got {normalisation!r}, expected none or ltg_detokenised for marked words")
    text = detokenise(" ".join(words))
    return PlacedWords(text, _found_again([normalise(word) for word in words], text))


def _found_again(words: Sequence[str], text: str) -> tuple[tuple[int, int], ...]:
    visible = [index for index, character in enumerate(text) if not character.isspace()]
    counts = [sum(not character.isspace() for character in word) for word in words]
    assert sum(counts) == len(visible), "a rule changed more than blanks"
    visible.append(len(text))
    places, first = [], 0
    for count in counts:
        last = first + count
        places.append((visible[first], visible[last - 1] + 1 if count else visible[first]))
        first = last
    return tuple(places)
