"""Word lists: the released list of the reduced-vocabulary study, dictionaries, and the project's own vocabulary files.

The released file went through a spreadsheet and is read with pandas' defaults (docs/papers/reduced-vocabulary.md, "The
released list"). as_published takes it as the authors' code gets it: `TRUE` and `FALSE` in capitals, which no
lower-cased text reaches, `nan` (and `null`, inferred) lost as missing values, the rows with U+FFFD as they are.
corrected restores `true` and `false`, keeps `nan`, and leaves out and counts the words with U+FFFD, whose letters are
lost.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.records import read_rows
from hatchery.corpora.rows import cell
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource
from hatchery.settings.base import ReadingName
from hatchery.vocabulary.transcripts import table_rows

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


def dictionary_words(source: RawSource, encoding: str) -> frozenset[str]:
    """All words of all files of a source, one per line, except files called README.

    Raises SourceError when there is no word.
    """
    files = [file for file in source.names() if not file.rsplit("/", 1)[-1].upper().startswith("README")]
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
