"""Word lists: the words of child-directed speech, released lists, dictionaries, and the project's own vocabulary files.

Transcripts (docs/papers/reduced-vocabulary.md, "Words of child-directed speech" and "Cleaning of words") are CHILDES
tables, one utterance in each row, streamed. The reader drops utterances to children older than six years (2,190 days;
rows without an age stay), utterances without tokens, utterances of children, and utterances of collections other than
the North American one. The text is the raw `gloss` column.

Words, as_published: the authors' character class contains an unescaped hyphen, so it deletes everything from the
apostrophe to the backtick (digits, `+ , - . / : ; = ? @ _` and more) together with `! " # $`; `%`, `&`, braces and all
characters outside ASCII stay, and compounds are joined (`bye_bye` becomes `byebye`). Words of two letters with an s
first (`su`, `sk`) are accepted too: the released list contains all of these words that occur in the transcripts, ten of
which no dictionary and no suffix explains; the reason is unknown. Corrected: the hyphen means itself, as do `+` and
`_`: they separate the words of a compound, as they do in the texts that are compared with the list. Apostrophes are
deleted, as the comparison expects, and so are digits and all other ASCII signs. Words with characters other than a to
z, and codes for unintelligible speech, are rejected.

The released file went through a spreadsheet and is read with pandas' defaults (docs/papers/reduced-vocabulary.md, "The
released list"). as_published uses the words that the authors' code reads: `TRUE` and `FALSE` in capitals, which match
no lower-cased text, `nan` (and `null`, inferred) lost as missing values, the rows with U+FFFD unchanged. corrected
restores `true` and `false`, keeps `nan`, and leaves out and counts the words with U+FFFD, whose letters are lost.
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
# Missing values in the exports.
_MISSING = frozenset({None, "", "NA"})


def utterances(source: RawSource, file: str, encoding: str, counts: Counter[str]) -> Iterator[str]:
    """Yield the accepted utterances of one table, in order; `counts` collects numbers of read and dropped rows.

    Raises SourceError naming file and line for a table that is not well formed, lacks a column, or has an invalid
    number.
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
    """Yield pairs of a position for messages and the row of a CSV table with a header, streamed.

    Raises SourceError for a table without header or rows of another length.
    """
    lines = Lines(source, file, encoding)
    for place, row in csv_rows(lines):
        if has_surplus(row) or None in row.values():
            raise SourceError(f"{place}: the row has another number of cells than the header")
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
"""A word with one of these endings is accepted without the dictionary."""

UNINTELLIGIBLE = frozenset({"xxx", "yyy", "www"})
"""Codes of the transcription for speech that was unintelligible or is not transcribed."""

_AS_PUBLISHED = re.compile("[!\"#$'-`]")
_JOINERS = re.compile(r"[-+_]")
_NOT_LETTERS = re.compile(r"[\x00-`{-\x7f]")
_PLAIN = re.compile("[a-z]+")


def cleaned_words(utterance: str, reading: ReadingName) -> Iterator[str]:
    """Yield the words of one utterance, lower-cased, in order; words without a remaining character are skipped."""
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
    """Return why a cleaned word is rejected, or None if it enters the vocabulary.

    Without a dictionary every word is accepted, and the suffixes have no effect.
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


# Results of the word cleaning that pandas takes for missing values.
LOST_BY_PANDAS = frozenset({"nan", "null"})
_SPREADSHEET = {"true": "TRUE", "false": "FALSE"}
_REPLACEMENT = "\ufffd"


def listed_words(
    source: RawSource, file: str, encoding: str, word_column: str, frequency_column: str | None
) -> Iterator[tuple[str, int]]:
    """Yield pairs of word and frequency of a CSV list as written in the file; frequency 0 without that column.

    Raises SourceError naming file and line for a row without a word or with a frequency that is not a whole number.
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
    """Return the word as a spreadsheet writes it."""
    return _SPREADSHEET.get(word, word)


def list_rejection(word: str, reading: ReadingName) -> str | None:
    """Return why a row of a released list yields no word, or None."""
    if reading == "as_published":
        return "missing_value_for_pandas" if word in LOST_BY_PANDAS else None
    return "replacement_character" if _REPLACEMENT in word else None


def restored(word: str, reading: ReadingName) -> str:
    """Return the word of a released row: `corrected` undoes the capitals of the spreadsheet."""
    return word.lower() if reading == "corrected" and word in _SPREADSHEET.values() else word


def dictionary_files(source: RawSource) -> list[str]:
    """Return the files of a dictionary: all except those named README."""
    return [file for file in source.names() if not file.rsplit("/", 1)[-1].upper().startswith("README")]


def dictionary_words(source: RawSource, encoding: str) -> frozenset[str]:
    """Return all words of all files of a source, one per line, except files named README.

    Raises SourceError if there is no word.
    """
    files = dictionary_files(source)
    words = frozenset(word for file in files for line in Lines(source, file, encoding) if (word := line.strip()))
    if not words:
        raise SourceError(f"{source.root}: the dictionary contains no word; expected files with one word per line")
    return words


def list_comparison(ours: Mapping[str, int], released: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Compare a built list with the released list; return numbers of words found, missing, extra, and of equal, lower,
    higher frequencies.
    """
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
    """Return the words of a built vocabulary. Raises ManifestError or EvaluationError if its file is missing or
    damaged.
    """
    path = read_manifest(manifest).file("vocabulary.csv")
    return frozenset(texts["word"] for _, texts in read_rows(path, ("word", "frequency")))
