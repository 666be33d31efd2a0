"""Build a vocabulary (`vocabulary.csv`) from transcripts or from a word list, such as the list that the
reduced-vocabulary study published (docs/papers/reduced-vocabulary.md, "Words of child-directed speech").

As in the study's published list, words are in the order of their first occurrence. Words that the settings append
follow. `rejected.csv` lists each rejected word with its frequency and the reason. Transcripts are read line by line;
only the list of words is in memory.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hatchery.artifacts.manifests import StageRun
from hatchery.corpora.corpus_writer import write_csv
from hatchery.corpora.raw_files import matching_names
from hatchery.errors import ConfigError, SourceError
from hatchery.raw.registration import RawSource, open_source
from hatchery.settings.base import ReadingName
from hatchery.vocabulary.settings import VocabularySettings
from hatchery.vocabulary.word_lists import (
    as_spreadsheet,
    cleaned_words,
    dictionary_words,
    list_comparison,
    list_rejection,
    listed_words,
    rejection,
    restored,
    utterances,
)


@dataclass(frozen=True)
class BuiltVocabulary:
    """A vocabulary: words with frequencies, rejected words (word, frequency, reason), and the numbers of read rows and
    of dropped rows of the source.

    `comparison` is the result of `list_comparison` with the list that the reduced-vocabulary study published; None if
    this list is not given.
    """

    words: dict[str, int]
    rejected: list[tuple[str, int, str]]
    counts: Counter[str]
    comparison: dict[str, int] | None = None


def build(
    settings: VocabularySettings, source: Path, dictionary: Path | None, released: Path | None, run: StageRun
) -> None:
    """Build a vocabulary, and write it into the folder of `run`. The stage `build_vocabulary` describes the
    arguments.
    """
    raw = open_source(source)
    listed = None
    if released is not None:
        theirs = open_source(released)
        listed = _rows(theirs, theirs.names(), settings.encoding)
    if settings.kind == "transcripts":
        dictionary_set = None if dictionary is None else dictionary_words(open_source(dictionary), settings.encoding)
        built = from_transcripts(raw, settings, dictionary_set, listed)
    else:
        if dictionary is not None:
            raise ConfigError(
                "dictionary: got a value, expected none, because word lists need no dictionary; set dictionary to null"
            )
        built = from_word_list(raw, settings, listed)
    if not built.words:
        raise SourceError(f"{raw.root}: all words were rejected, expected at least one word for the vocabulary")
    write_csv(run, "vocabulary.csv", ("word", "frequency"), built.words.items())
    write_csv(run, "rejected.csv", ("word", "frequency", "reason"), built.rejected)
    if built.comparison is not None:
        write_csv(run, "comparison.csv", ("measure", "value"), built.comparison.items())
    run.measures.update(
        {
            **built.counts,
            "words": len(built.words),
            "tokens": sum(built.words.values()),
            "rejected_words": len(built.rejected),
            "rejected_tokens": sum(frequency for _, frequency, _ in built.rejected),
        }
    )


def from_transcripts(
    source: RawSource,
    settings: VocabularySettings,
    dictionary: frozenset[str] | None,
    released: list[tuple[str, int]] | None,
) -> BuiltVocabulary:
    """Return the vocabulary of the accepted utterances in CHILDES tables; hatchery/vocabulary/word_lists.py states
    which utterances and words are accepted. `released` is the list that the reduced-vocabulary study published, or
    None.
    """
    counts: Counter[str] = Counter()
    frequencies: Counter[str] = Counter()
    for file in matching_names(source, settings.files):
        for utterance in utterances(source, file, settings.encoding, counts):
            frequencies.update(cleaned_words(utterance, settings.reading))
    words: dict[str, int] = {}
    rejected: list[tuple[str, int, str]] = []
    for word, frequency in frequencies.items():
        reason = rejection(word, dictionary, settings.reading)
        if reason is None:
            words[word] = frequency
        elif word not in settings.appended_words:
            rejected.append((word, frequency, reason))
    words.update({word: frequencies[word] for word in settings.appended_words if word not in words})
    if settings.reading == "as_published":
        words = {as_spreadsheet(word): frequency for word, frequency in words.items()}
    comparison = None if released is None else list_comparison(words, released)
    usable, lost = _usable(words.items(), settings.reading)
    return BuiltVocabulary(usable, rejected + lost, counts, comparison)


def from_word_list(
    source: RawSource, settings: VocabularySettings, released: list[tuple[str, int]] | None
) -> BuiltVocabulary:
    """Return the vocabulary of the words in a word list that `list_rejection` accepts. `released` is the list that the
    reduced-vocabulary study published, or None.
    """
    files = matching_names(source, settings.files)
    rows = _rows(source, files, settings.encoding, settings.word_column, settings.frequency_column)
    words, rejected = _usable(rows, settings.reading)
    comparison = None if released is None else list_comparison(words, released)
    return BuiltVocabulary(words, rejected, Counter(rows=len(rows)), comparison)


def _usable(rows: Iterable[tuple[str, int]], reading: ReadingName) -> tuple[dict[str, int], list[tuple[str, int, str]]]:
    words: dict[str, int] = {}
    rejected = []
    for row, frequency in rows:
        reason = list_rejection(row, reading)
        word = restored(row, reading)
        if reason is not None:
            rejected.append((row, frequency, reason))
        elif word in words:
            rejected.append((row, frequency, "repeated"))
        else:
            words[word] = frequency
    return words, rejected


def _rows(
    source: RawSource, files: Iterable[str], encoding: str, word: str = "word", frequency: str | None = "frequency"
) -> list[tuple[str, int]]:
    return [row for file in files for row in listed_words(source, file, encoding, word, frequency)]
