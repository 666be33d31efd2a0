"""Utterances of adults from CHILDES tables, one row each, streamed, and their words
(docs/papers/reduced-vocabulary.md, "Words of child-directed speech" and "Cleaning of words").

Dropped are utterances to children older than six years (2,190 days; rows without an age stay), those without tokens,
those of children, and those of collections other than the North American one. The text is the raw `gloss` column.

Words, as_published: the authors' character class holds an unescaped hyphen, so it deletes everything from the
apostrophe to the backtick (digits, `+ , - . / : ; = ? @ _` and more) together with `! " # $`; `%`, `&`, braces and all
characters outside ASCII stay, and compounds are glued (`bye_bye` becomes `byebye`). Words of two letters with an s
first (`su`, `sk`) enter too: the released list has ten of them that no dictionary and no suffix explains, and lacks
none that is said in the transcripts; why is not known.
Corrected: the hyphen means itself, as do `+` and `_`: they separate the words of a compound, as they do in the texts
that are compared with the list. Apostrophes vanish (the comparison knows), digits and all other ASCII signs too. What
then holds anything but a to z is no word, and neither are the codes for unintelligible speech.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set

from hatchery.corpora.rows import cell, csv_rows, has_surplus
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName

OLDEST_DAYS = 2190.0
CHILDREN = frozenset({"Target_Child", "Child"})
COLLECTION = "Eng-NA"
# How the exports write a missing value.
_MISSING = frozenset({None, "", "NA"})


def utterances(source: RawSource, file: str, encoding: str, counts: Counter[str]) -> Iterator[str]:
    """The utterances of one table that count, in order; `counts` takes what was seen and dropped.

    Raises SourceError naming file and line for a table that is not well formed, lacks a column, or has a number that
    is none.
    """
    for place, row in table_rows(source, file, encoding):
        counts["rows"] += 1
        gloss = cell(row, "gloss", place)
        reason = _dropped(row, place)
        if reason is not None:
            counts[f"dropped_{reason}"] += 1
        elif gloss is None or gloss in _MISSING:
            counts["dropped_no_text"] += 1
        else:
            counts["utterances"] += 1
            yield gloss


def table_rows(source: RawSource, file: str, encoding: str) -> Iterator[tuple[str, Mapping[str, str | None]]]:
    """Pairs of a place for messages and the row of a CSV table with a header, streamed.

    Raises SourceError for a table without header or rows that do not fit it.
    """
    lines = Lines(source, file, encoding)
    for place, row in csv_rows(lines):
        if has_surplus(row) or None in row.values():
            raise SourceError(f"{place}: the row does not have the cells of the header")
        yield place, row
    if not lines.line:
        raise SourceError(f"{lines.where}: line 1: the table is empty; expected a header")


def _dropped(row: Mapping[str, str | None], place: str) -> str | None:
    age = _number(row, "target_child_age", place)
    if age is not None and age > OLDEST_DAYS:
        return "older_child"
    tokens = _number(row, "num_tokens", place)
    if tokens is not None and tokens < 1:
        return "no_tokens"
    if cell(row, "speaker_role", place) in CHILDREN:
        return "child_speech"
    if row.get("collection_name") not in _MISSING | {COLLECTION}:
        return "other_collection"
    return None


def _number(row: Mapping[str, str | None], column: str, place: str) -> float | None:
    text = cell(row, column, place)
    if text in _MISSING or text is None:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise SourceError(f"{place}: {column}: expected a number or NA, got {text[:40]!r}") from error


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
