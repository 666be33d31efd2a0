"""Parallel text: the generated English, and its translation into an artificial language.

In the artificial language, the place is at the beginning of the sentence and the verb at the end, and adjectives follow
their noun. Endings mark definiteness, number, case and tense. Therefore a model must learn more than a dictionary.
Every sentence has exactly one translation in either direction. Training, development and test set have different
sentences of one domain. The set `other` is from another domain, in which rare words are as frequent as other words and
sentences have two clauses.
"""

import random
from collections.abc import Iterator

from demo.grammar import Item, choose
from demo.lexicon import ANIMALS, INTRANSITIVE, PERSONS, PLACES, TRANSITIVE, Noun, Verb

LANGUAGES = ("en", "tv")
"""Suffixes of the files by language: English (en), and the artificial language (tv)."""
SPLITS = {"train": 1.0, "other": 0.05, "dev": 0.1, "test": 0.1}
"""Splits, each with the ratio of its number of sentence pairs to the number of training pairs."""

_BEINGS = (*ANIMALS[:8], *PERSONS[:3], *PERSONS[7:10])
_PLACES = PLACES[:8]
_SEEING = tuple(verb for verb in TRANSITIVE if verb.base in {"see", "like", "find", "watch", "know", "draw"})
_MOVING = INTRANSITIVE[:6]
_SIZES = ("big", "small", "old", "young", "ugly")
_PREPOSITIONS = ("near", "behind", "in")
_ONSETS = ("b", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "sh", "tr", "kl")
_NUCLEI = ("a", "e", "i", "o", "u", "ai")

Sides = tuple[list[str], list[str]]


def parallel_files(pairs: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) of all files, with one sentence per line; `pairs` is the number of training pairs.

    Equal arguments yield equal bytes. No sentence occurs in two files, and only the training file repeats sentences.
    """
    words = _Words(seed)
    seen: set[str] = set()
    # Draw the held-out sentences before the training sentences. A sentence that was drawn for an earlier file is left
    # out of later files, and no held-out sentence should be left out.
    for split in reversed(SPLITS):
        rng = random.Random(f"{seed}/parallel/{split}")
        sides: list[tuple[str, str]] = []
        wanted = max(20, round(pairs * SPLITS[split]))
        new: set[str] = set()
        for _ in range(100 * wanted):
            english, other = _sentence(rng, words, other_domain=split == "other")
            if english not in seen and (split == "train" or english not in new):
                new.add(english)
                sides.append((english, other))
            if len(sides) == wanted:
                break
        seen |= new
        for language, lines in zip(LANGUAGES, zip(*sides, strict=True), strict=True):
            yield f"{split}.{language}", "".join(f"{line}\n" for line in lines).encode()


class _Words:
    """Random stems of the artificial language by English word. All stems are different."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"{seed}/parallel/words")
        self._stems: dict[str, str] = {}
        taken: set[str] = set()
        nouns = [noun.singular for noun in (*_BEINGS, *_PLACES)]
        verbs = [verb.base for verb in (*_SEEING, *_MOVING)]
        for word in [*nouns, *verbs, *_SIZES, *_PREPOSITIONS, "and"]:
            stem = ""
            while not stem or stem in taken:
                # Stems end in a consonant, so no stem is equal to another stem with an ending.
                stem = "".join(choose(rng, _ONSETS) + choose(rng, _NUCLEI) for _ in range(2)) + choose(rng, "nrlsk")
            taken.add(stem)
            self._stems[word] = stem

    def __getitem__(self, word: str) -> str:
        return self._stems[word]


def _sentence(rng: random.Random, words: _Words, other_domain: bool) -> tuple[str, str]:
    english, other = _clause(rng, words, other_domain)
    if other_domain:
        more_english, more_other = _clause(rng, words, other_domain)
        english, other = [*english, "and", *more_english], [*other, words["and"], *more_other]
    return _written(english), _written(other)


def _written(words: list[str]) -> str:
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}."


def _clause(rng: random.Random, words: _Words, even: bool) -> Sides:
    plural, past = rng.random() < 0.3, rng.random() < 0.5
    subject_english, subject = _phrase(rng, words, _drawn(rng, _BEINGS, even), plural, "")
    transitive = rng.random() < 0.6
    verb = _drawn(rng, _SEEING if transitive else _MOVING, even)
    english, other = [*subject_english, _form(verb, plural, past)], [*subject]
    if transitive:
        object_english, objects = _phrase(rng, words, _drawn(rng, _BEINGS, even), rng.random() < 0.3, "u")
        english += object_english
        other += objects
    other.append(words[verb.base] + ("ed" if past else "i"))
    if rng.random() < 0.4:
        place, preposition = _drawn(rng, _PLACES, even), choose(rng, _PREPOSITIONS)
        english += [preposition, "the", place.singular]
        other = [words[place.singular] + "a", words[preposition], *other]
    return english, other


def _phrase(rng: random.Random, words: _Words, noun: Noun, plural: bool, case: str) -> Sides:
    definite = plural or rng.random() < 0.5
    adjective = [choose(rng, _SIZES)] if rng.random() < 0.4 else []
    article = "the" if definite else "an" if (adjective or [noun.singular])[0][0] in "aeou" else "a"
    english = [article, *adjective, noun.form("plural" if plural else "singular")]
    ending = ("im" if plural else "a" if definite else "") + case
    return english, [words[noun.singular] + ending, *(words[word] for word in adjective)]


def _form(verb: Verb, plural: bool, past: bool) -> str:
    if past:
        return verb.past
    return verb.base if plural else verb.third


def _drawn(rng: random.Random, items: tuple[Item, ...], even: bool) -> Item:
    """Return a random item. If `even` is false, items at the beginning of `items` are more frequent."""
    point = rng.random()
    return items[int((point if even else point * point) * len(items))]
