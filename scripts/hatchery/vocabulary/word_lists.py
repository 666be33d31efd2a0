"""Word lists: words of child-directed speech, the list that the reduced-vocabulary study published, dictionaries, and
vocabulary files of this project.

Transcripts (docs/papers/reduced-vocabulary.md, "Words of child-directed speech" and "Cleaning of words") are CHILDES
tables with one utterance per row. The text is the raw `gloss` column. An utterance is dropped if it is addressed to a
child older than six years (2,190 days; rows without age are kept), if it has no tokens or no text, if a child says it,
or if it is not from the North American collection.

Cleaning of words in the version `as_published`: the study's regular expression contains an unescaped hyphen. It
therefore deletes all ASCII characters from the apostrophe to the backtick (digits, `+ , - . / : ; = ? @ _` and more),
and also `! " # $`. The characters `%`, `&`, braces and all non-ASCII characters remain, and compounds are joined
(`bye_bye` becomes `byebye`). Words of two letters that begin with s (`su`, `sk`) are accepted, because the study's
published list contains all such words of the transcripts. For ten of these words the reason is unknown: neither the
dictionary nor the suffixes explain them.

Cleaning of words in the version `corrected`: `-`, `+` and `_` separate the words of a compound, as in the texts that
are compared with the list. Digits and all other ASCII symbols are deleted. Apostrophes are also deleted, because texts
are compared with words without apostrophes. Words with characters other than a to z, and codes for unintelligible
speech, are rejected.

The study's published list was saved by a spreadsheet program, and the study's code reads it with the defaults of pandas
(docs/papers/reduced-vocabulary.md, "The released list"). The version `as_published` uses the words that this code
reads. `TRUE` and `FALSE` are in capitals, so they match no lower-cased text. `nan` (and, as we infer, `null`) is
absent, because pandas reads it as a missing value. Words with U+FFFD are unchanged. The version `corrected` restores
`true` and `false`, keeps `nan`, and rejects words with U+FFFD, whose letters are lost.
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
# Cells of CHILDES tables with a missing value.
_MISSING = frozenset({None, "", "NA"})


def utterances(source: RawSource, file: str, encoding: str, counts: Counter[str]) -> Iterator[str]:
    """Yield the accepted utterances of a table in the order of its rows.

    Adds the numbers of read and dropped rows to `counts`. Raises SourceError, which names file and line, for a
    malformed table, a missing column, or an age or number of tokens that is not a number.
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
    """Yield the rows of a CSV table with a header, each as (file and line for messages, cells by name of the column).

    Raises SourceError for an empty table, and for a row with more or fewer cells than the header.
    """
    lines = Lines(source, file, encoding)
    for place, row in csv_rows(lines):
        if has_surplus(row) or None in row.values():
            raise SourceError(
                f"{place}: the number of cells in this row differs from the number of columns in the header"
            )
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
"""Suffixes: a word that ends in one of them is accepted even if the dictionary lacks the word."""

UNINTELLIGIBLE = frozenset({"xxx", "yyy", "www"})
"""Codes in transcripts for speech that is unintelligible or was not transcribed."""

_AS_PUBLISHED = re.compile("[!\"#$'-`]")
_JOINERS = re.compile(r"[-+_]")
_NOT_LETTERS = re.compile(r"[\x00-`{-\x7f]")
_PLAIN = re.compile("[a-z]+")


def cleaned_words(utterance: str, reading: ReadingName) -> Iterator[str]:
    """Yield the cleaned, lower-cased words of an utterance in their order. Words that cleaning makes empty are left
    out.
    """
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
    """Return the reason why a cleaned word of a transcript is rejected, or None if it is accepted.

    If `dictionary` is None, a word need neither be in a dictionary nor end in one of SUFFIXES.
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


# pandas would read these words as missing values.
LOST_BY_PANDAS = frozenset({"nan", "null"})
_SPREADSHEET = {"true": "TRUE", "false": "FALSE"}
_REPLACEMENT = "\ufffd"


def listed_words(
    source: RawSource, file: str, encoding: str, word_column: str, frequency_column: str | None
) -> Iterator[tuple[str, int]]:
    """Yield (word, frequency) for each row of a word list in CSV. Words are unchanged.

    If `frequency_column` is None, the frequency is 0. Raises SourceError, which names file and line, for a row without
    a word, and for a frequency that is not a whole number.
    """
    for place, row in table_rows(source, file, encoding):
        word = cell(row, word_column, place)
        if not word:
            raise SourceError(f"{place}: {word_column}: expected a word, got an empty cell")
        count = "0" if frequency_column is None else cell(row, frequency_column, place) or ""
        if not (count.isascii() and count.isdigit()):
            raise SourceError(f"{place}: {frequency_column}: expected a whole number, got {count[:40]!r}")
        yield word, int(count)


def as_spreadsheet(word: str) -> str:
    """Return a word in the form in which a spreadsheet saves it: `true` and `false` become `TRUE` and `FALSE`."""
    return _SPREADSHEET.get(word, word)


def list_rejection(word: str, reading: ReadingName) -> str | None:
    """Return the reason why a word cannot be in the vocabulary, or None if the word is accepted. In the version
    `as_published`, the reason is that pandas reads the word as a missing value; in the version `corrected`, the reason
    is that the word contains U+FFFD.
    """
    if reading == "as_published":
        return "missing_value_for_pandas" if word in LOST_BY_PANDAS else None
    return "replacement_character" if _REPLACEMENT in word else None


def restored(word: str, reading: ReadingName) -> str:
    """Return the original form of a word of a vocabulary. In the version `corrected`, TRUE and FALSE, two words that a
    spreadsheet has changed, are lower-cased. In the version `as_published`, all words are unchanged.
    """
    return word.lower() if reading == "corrected" and word in _SPREADSHEET.values() else word


def dictionary_files(source: RawSource) -> list[str]:
    """Return the files of a dictionary, which are all files of the raw input whose name does not begin with README."""
    return [file for file in source.names() if not file.rsplit("/", 1)[-1].upper().startswith("README")]


def dictionary_words(source: RawSource, encoding: str) -> frozenset[str]:
    """Return the words in all files of a dictionary, which have one word per line (see `dictionary_files`).

    Raises SourceError if the dictionary contains no word.
    """
    files = dictionary_files(source)
    words = frozenset(word for file in files for line in Lines(source, file, encoding) if (word := line.strip()))
    if not words:
        raise SourceError(f"{source.root}: the dictionary contains no word; expected files with one word per line")
    return words


def list_comparison(ours: Mapping[str, int], released: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return counts that compare the word list that Hatchery has built (`ours`) with the list that the
    reduced-vocabulary study published (`released`).

    Words and tokens of each list are counted. Words are also counted by list: `found` are in both lists, `missing` only
    in the published list, and `extra` only in `ours`. Three counts divide the words in both lists: their frequency in
    `ours` is equal to, lower or higher than their frequency in `released`. The last count is the number of tokens that
    the words in both lists have in the published list.
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
    """Return the words of the vocabulary with the manifest `manifest`.

    Raises ManifestError or EvaluationError if the vocabulary's file of words is missing or damaged.
    """
    path = read_manifest(manifest).file("vocabulary.csv")
    return frozenset(texts["word"] for _, texts in read_rows(path, ("word", "frequency")))
