"""Word lists: the words of child-directed speech, released lists, dictionaries, and the project's own vocabulary files.

Transcripts (docs/papers/reduced-vocabulary.md, "Words of child-directed speech" and "Cleaning of words") are CHILDES
tables, one utterance in each row, streamed. Dropped are utterances to children older than six years (2,190 days; rows
without an age stay), those without tokens, those of children, and those of collections other than the North American
one. The text is the raw `gloss` column.

Words, as_published: the authors' character class holds an unescaped hyphen, so it deletes everything from the
apostrophe to the backtick (digits, `+ , - . / : ; = ? @ _` and more) together with `! " # $`; `%`, `&`, braces and all
characters outside ASCII stay, and compounds are glued (`bye_bye` becomes `byebye`). Words of two letters with an s
first (`su`, `sk`) enter too: the released list has ten of them that no dictionary and no suffix explains, and lacks
none that is said in the transcripts; why is not known.
Corrected: the hyphen means itself, as do `+` and `_`: they separate the words of a compound, as they do in the texts
that are compared with the list. Apostrophes vanish (the comparison knows), digits and all other ASCII signs too. What
then holds anything but a to z is no word, and neither are the codes for unintelligible speech.

The released file went through a spreadsheet and is read with pandas' defaults (docs/papers/reduced-vocabulary.md, "The
released list"). as_published takes it as the authors' code gets it: `TRUE` and `FALSE` in capitals, which no
lower-cased text reaches, `nan` (and `null`, inferred) lost as missing values, the rows with U+FFFD as they are.
corrected restores `true` and `false`, keeps `nan`, and leaves out and counts the words with U+FFFD, whose letters are
lost.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.records import read_rows
from hatchery.corpora.csv_tables import csv_rows, has_surplus
from hatchery.corpora.rows import cell
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


# What pandas takes for a missing value and the word cleaning can yield.
LOST_BY_PANDAS = frozenset({"nan", "null"})
_SPREADSHEET = {"true": "TRUE", "false": "FALSE"}
_REPLACEMENT = "\ufffd"


def listed_words(
    source: RawSource, file: str, encoding: str, word_column: str, frequency_column: str | None
) -> Iterator[tuple[str, int]]:
    """Pairs of word and frequency of a CSV list as they stand in the file; frequency 0 where there is no column.

    Raises SourceError naming file and line for a row without word or with a frequency that is no whole number.
    """
    for place, row in table_rows(source, file, encoding):
        word = cell(row, word_column, place)
        if not word:
            raise SourceError(f"{place}: {word_column}: expected a word, got nothing")
        count = "0" if frequency_column is None else cell(row, frequency_column, place) or ""
        if not (count.isascii() and count.isdigit()):
            raise SourceError(f"{place}: {frequency_column}: expected a whole number, got {count[:40]!r}")
        yield word, int(count)


def as_spreadsheet(word: str) -> str:
    """The word as a spreadsheet writes it."""
    return _SPREADSHEET.get(word, word)


def list_rejection(word: str, reading: ReadingName) -> str | None:
    """Why a row of a released list yields no word, or None."""
    if reading == "as_published":
        return "missing_value_for_pandas" if word in LOST_BY_PANDAS else None
    return "replacement_character" if _REPLACEMENT in word else None


def restored(word: str, reading: ReadingName) -> str:
    """The word of a released row: `corrected` undoes the capitals of the spreadsheet."""
    return word.lower() if reading == "corrected" and word in _SPREADSHEET.values() else word


def dictionary_files(source: RawSource) -> list[str]:
    """The files of a dictionary: all but those called README."""
    return [file for file in source.names() if not file.rsplit("/", 1)[-1].upper().startswith("README")]


def dictionary_words(source: RawSource, encoding: str) -> frozenset[str]:
    """All words of all files of a source, one per line, except files called README.

    Raises SourceError when there is no word.
    """
    files = dictionary_files(source)
    words = frozenset(word for file in files for line in Lines(source, file, encoding) if (word := line.strip()))
    if not words:
        raise SourceError(f"{source.root}: the dictionary holds no word; expected files with one word per line")
    return words


def list_comparison(ours: Mapping[str, int], released: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How a built list agrees with the released one: words found, missing, extra; frequencies equal, lower, higher."""
    theirs = dict(released)
    common = ours.keys() & theirs.keys()
    return {
        "released_words": len(theirs),
        "built_words": len(ours),
        "found": len(common),
        "missing": len(theirs) - len(common),
        "extra": len(ours) - len(common),
        "equal_frequency": sum(ours[word] == theirs[word] for word in common),
        "lower_frequency": sum(ours[word] < theirs[word] for word in common),
        "higher_frequency": sum(ours[word] > theirs[word] for word in common),
        "released_tokens": sum(theirs.values()),
        "built_tokens": sum(ours.values()),
        "released_tokens_of_found_words": sum(theirs[word] for word in common),
    }


def read_vocabulary(manifest: str | Path) -> frozenset[str]:
    """The words of a built vocabulary. Raises ManifestError or EvaluationError when its file is missing or damaged."""
    path = read_manifest(manifest).file("vocabulary.csv")
    return frozenset(texts["word"] for _, texts in read_rows(path, ("word", "frequency")))
