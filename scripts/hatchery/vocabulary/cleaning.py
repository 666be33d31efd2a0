"""From pieces of transcribed speech to words, and which of them enter the vocabulary
(docs/papers/reduced-vocabulary.md, "Cleaning of words").

as_published: the authors' character class holds an unescaped hyphen, so it deletes everything from the apostrophe to
the backtick (digits, `+ , - . / : ; = ? @ _` and more) together with `! " # $`; `%`, `&`, braces and all characters
outside ASCII stay, and compounds are glued (`bye_bye` becomes `byebye`). Words of two letters with an s first (`su`,
`sk`) enter too: the released list has ten of them that no dictionary and no suffix explains, and lacks none that is
said in the transcripts; why is not known.
corrected: the hyphen means itself, as do `+` and `_`: they separate the words of a compound, as they do in the texts
that are compared with the list. Apostrophes vanish (the comparison knows), digits and all other ASCII signs too. What
then holds anything but a to z is no word, and neither are the codes for unintelligible speech.
"""

import re
from collections.abc import Iterator, Set

from hatchery.settings.base import ReadingName

SUFFIXES = ("ion", "ing", "est", "er", "ed", "s")
"""A word that ends in one of these is kept without a look into the dictionary."""

UNINTELLIGIBLE = frozenset({"xxx", "yyy", "www"})
"""Codes of the transcription for speech that could not be understood or is not transcribed."""

_AS_PUBLISHED = re.compile("[!\"#$'-`]")
_JOINERS = re.compile(r"[-+_]")
_NOT_LETTERS = re.compile(r"[\x00-`{-\x7f]")
_PLAIN = re.compile("[a-z]+")


def cleaned_words(utterance: str, reading: ReadingName) -> Iterator[str]:
    """The words of one utterance, lower-cased, in order; pieces of which nothing is left are skipped."""
    for piece in utterance.split(" "):
        lower = piece.lower()
        if reading == "as_published":
            word = _AS_PUBLISHED.sub("", lower)
            if word:
                yield word
        else:
            for part in _JOINERS.split(lower):
                word = _NOT_LETTERS.sub("", part.replace("’", ""))
                if word:
                    yield word


def rejection(word: str, dictionary: Set[str] | None, reading: ReadingName) -> str | None:
    """Why a cleaned word stays out of the vocabulary, or None when it enters.

    Without a dictionary there is nothing to hold a word against: every word enters, and the suffixes are of no use.
    """
    if reading == "corrected":
        if word in UNINTELLIGIBLE:
            return "unintelligible"
        if not _PLAIN.fullmatch(word):
            return "other_characters"
    if dictionary is None or word in dictionary or word.endswith(SUFFIXES):
        return None
    if reading == "as_published" and len(word) == 2 and word[0] == "s":
        return None
    return "neither_in_dictionary_nor_suffix"
