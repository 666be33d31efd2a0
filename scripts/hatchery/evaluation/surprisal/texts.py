"""Read a user's texts: lines of text files, a column of tables, or tables with one word per row.

Planning also imports this module, so it has no slow imports. Texts are yielded one by one. In tables with one word per
row, a text stays in memory until this text and all texts that begin before it are complete.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import PurePosixPath
from typing import Any

from hatchery.corpora.cleaning import BABYLM_RULES, clean, clean_minimal
from hatchery.corpora.typography import repair_mojibake
from hatchery.errors import EvaluationError
from hatchery.evaluation.evaluation import MostRows
from hatchery.evaluation.json_lines import Record, checked_text, decode_lines, read_json_lines, shorten, some
from hatchery.evaluation.surprisal.settings import SurprisalSettings
from hatchery.evaluation.surprisal.splitting import Words, joined_words, split_words
from hatchery.evaluation.tasks.formats import read_csv, read_parquet
from hatchery.raw.registration import RawSource

LINES = (".txt", ".md")
ROWS: dict[str, Callable[[RawSource, str], Iterator[Record]]] = {
    ".csv": lambda source, name: some(read_csv(source, name), name),
    ".tsv": lambda source, name: some(read_csv(source, name), name),
    ".json": read_json_lines,
    ".jsonl": read_json_lines,
    ".parquet": lambda source, name: some(read_parquet(source, name, None), name),
}
SPREADSHEETS = (".xlsx", ".xls", ".ods")
NO_TEXTS = ("README*", "LICENSE*", "LICENCE*", "~$*", ".*")
"""Patterns of files that may be in a folder of texts but contain no texts: descriptions, lock files of spreadsheets,
and hidden files.
"""
CLEANING: Mapping[str, Callable[[str], str]] = {
    "none": lambda text: text,
    "encoding": repair_mojibake,
    "minimal": clean_minimal,
    "full": lambda text: clean(text, BABYLM_RULES),
}
LOOKS_LIKE_WORDS_FROM, LOOKS_LIKE_WORDS = 5, 0.9
"""Thresholds for a note: minimum number of texts in a column, and minimum share of texts that are single words. A
column that reaches both thresholds seems to have one word per row.
"""


@dataclass(frozen=True, slots=True)
class Text:
    """The words of a text, the name of the file that contains the text, and the text's rows in this file: one row for
    the whole text, or one row per word.

    `lines` are the numbers of these rows, counted from 1: lines of a text file or table, rows of a Parquet file, or
    items of a JSON list. `rows` are the contents of these rows if the file is a table.
    """

    words: Words
    file: str
    lines: tuple[int, ...]
    rows: tuple[Mapping[str, Any], ...] = ()

    @property
    def where(self) -> str:
        """File and first line of the text, for messages."""
        return f"{self.file}:{self.lines[0]}"


@dataclass
class Survey:
    """Result of a first pass over all texts: the numbers of texts, of one-word texts and of missing cells in the column
    of the texts, and the names of the columns in the user's files, in the order of their first occurrence.
    """

    texts: int = 0
    one_word: int = 0
    missing: int = 0
    first_missing: str = ""
    columns: dict[str, None] = field(default_factory=dict)

    def notes(self, settings: SurprisalSettings) -> Iterator[str]:
        """Yield a note if cells are missing, and a note if most texts of a table are single words."""
        if self.missing:
            yield (
                f"{self.missing:,} {'cells are' if self.missing > 1 else 'cell is'} missing (empty, "
                f"{', '.join(settings.missing[:3])}...) and not scored, the first in {self.first_missing}; "
                "`missing` sets the cells that count as missing"
            )
        looks_like_words = self.texts >= LOOKS_LIKE_WORDS_FROM and self.one_word >= LOOKS_LIKE_WORDS * self.texts
        if looks_like_words and settings.column is not None and not settings.text_columns:
            yield (
                f"{self.one_word:,} of {self.texts:,} texts in the column {settings.column!r} are one word, and each "
                "is scored without the words before it; if each row is one word of a longer text, set `text` to the "
                "column that identifies the texts, such as `text: item`"
            )


def text_files(source: RawSource, settings: SurprisalSettings) -> list[str]:
    """Return the sorted names of the files with texts. Raises EvaluationError if no file matches, for a file whose
    suffix is not supported, for a text file if `column` is set, and for a table if `column` is not set.
    """
    names = source.names(settings.files)
    if settings.files == SurprisalSettings.files:
        names = [name for name in names if not _has_no_texts(name)] or names
        # If `column` is set, read only the tables of the source, if there are any. Skip other files, such as notes or
        # the spreadsheet from which a table was made.
        tables = [name for name in names if _ending(name) in ROWS]
        names = tables if tables and settings.column is not None else names
    if not names:
        raise EvaluationError(f"{source.root}: no file matches {settings.files!r}")
    for name in names:
        ending = _ending(name)
        if ending in SPREADSHEETS:
            raise EvaluationError(
                f"{name}: spreadsheets of this format are not read; save the spreadsheet as .csv (UTF-8)"
            )
        if ending not in (*LINES, *ROWS):
            raise EvaluationError(f"{name}: the ending {ending!r} is unknown, expected {', '.join((*LINES, *ROWS))}")
        if (settings.column is None) != (ending in LINES):
            if ending in LINES:
                raise EvaluationError(f"{name}: got a `column`, expected none: every line of the file is a text")
            raise EvaluationError(f"{name}: got no `column`, expected the name of the column with the texts")
    return names


def _ending(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _has_no_texts(name: str) -> bool:
    return any(fnmatchcase(PurePosixPath(name).name, pattern) for pattern in NO_TEXTS)


def texts_of(
    source: RawSource,
    settings: SurprisalSettings,
    name: str,
    survey: Survey | None = None,
    most_rows: int | None = None,
) -> Iterator[Text]:
    """Yield the texts of one file in the order of their first rows; blank lines and missing cells are skipped.

    `survey` counts the texts and the missing cells. `most_rows` limits the number of rows to read from the file.

    Raises EvaluationError naming file and line for a table row without the column `column` of the settings, and for a
    text without a word. Raises EvaluationError naming the file if all rows are read and contain no text. Raises
    SourceError for bytes that are not UTF-8.
    """
    survey = Survey() if survey is None else survey
    if settings.column is None:
        lines = islice(decode_lines(source, name), most_rows)
        found: Iterable[Text] = (
            _whole(text, settings, Text(Words("", ()), name, (line,)), f"{name}:{line}") for line, text in lines
        )
    else:
        read = ROWS[_ending(name)]
        make = _grouped_words if settings.text_columns else _whole_texts
        found = make(lambda: islice(read(source, name), most_rows), settings, name, survey)
    before = survey.texts
    for text in found:
        survey.texts += 1
        survey.one_word += len(text.words.spans) == 1
        yield text
    # If only the first `most_rows` rows are read, texts may follow in later rows.
    if survey.texts == before and most_rows is None:
        raise EvaluationError(f"{name}: the file contains no text")


def _whole(text: str, settings: SurprisalSettings, of: Text, where: str) -> Text:
    words = split_words(CLEANING[settings.cleaning](text), settings.separator)
    if not words.spans:
        raise EvaluationError(f"{where}: there is no word in {text[:60]!r}")
    return Text(words, of.file, of.lines, of.rows)


def _whole_texts(
    rows: Callable[[], Iterable[Record]], settings: SurprisalSettings, name: str, survey: Survey
) -> Iterator[Text]:
    for record in rows():
        text = _cell(record, settings, survey)
        if text is not None:
            place = Text(Words("", ()), name, (record.line,), (record.values,))
            yield _whole(text, settings, place, record.where)


def _grouped_words(
    rows: Callable[[], Iterable[Record]], settings: SurprisalSettings, name: str, survey: Survey
) -> Iterator[Text]:
    """Yield the texts of a table in which each row is a single word, in the order of the texts' first rows.

    A table may be sorted by words or participants, so the rows of a text need not be adjacent. The table is read twice;
    the first pass counts the rows of each text.
    """
    left = Counter(_key(record, settings) for record in rows())
    waiting: dict[tuple[str, ...], list[tuple[float, str, Record]]] = {}
    for record in rows():
        key = _key(record, settings)
        words, word = waiting.setdefault(key, []), _cell(record, settings, survey)
        if word is not None and (cleaned := CLEANING[settings.cleaning](word).strip()):
            words.append((_place(record, settings, len(words)), cleaned, record))
        left[key] -= 1
        while waiting and not left[first := next(iter(waiting))]:
            if words := waiting.pop(first):
                yield _joined(words, settings, name, first)


def _joined(
    words: list[tuple[float, str, Record]], settings: SurprisalSettings, name: str, key: tuple[str, ...]
) -> Text:
    words.sort(key=lambda word: word[0])
    for (place, _, first), (following, _, second) in pairwise(words):
        if place == following:
            named = ", ".join(f"{column} {value}" for column, value in zip(settings.text_columns, key, strict=True))
            raise EvaluationError(
                f"{second.where}: {settings.order} {place:g} occurs twice in the text of {named}, also in "
                f"{first.where}; does `text` lack a column, such as the column of participants?"
            )
    records = [record for _, _, record in words]
    joined = joined_words([word for _, word, _ in words], settings.joined_by)
    return Text(joined, name, tuple(one.line for one in records), tuple(one.values for one in records))


def _cell(record: Record, settings: SurprisalSettings, survey: Survey) -> str | None:
    """Return the text in the column `column` of a row. If the text is missing, count it in `survey` and return None.
    The names of the row's columns are added to `survey`.
    """
    assert settings.column is not None
    survey.columns.update(dict.fromkeys(record.values))
    value = record.value(settings.column)
    if is_missing(value, settings.missing):
        survey.missing += 1
        survey.first_missing = survey.first_missing or record.where
        return None
    return record.text(settings.column)


def is_missing(value: Any, spellings: Iterable[str]) -> bool:
    """Return True if a cell is null, NaN, empty, white space, or one of `spellings`."""
    return value is None or value != value or (isinstance(value, str) and value.strip() in ("", *spellings))


def _key(record: Record, settings: SurprisalSettings) -> tuple[str, ...]:
    """Return the cells that identify the text to which a row belongs, from the columns in the setting `text`. Raises
    EvaluationError for a missing cell.
    """
    values = [record.value(column) for column in settings.text_columns]
    for column, value in zip(settings.text_columns, values, strict=True):
        if is_missing(value, settings.missing) or isinstance(value, list | dict):
            raise EvaluationError(f"{record.where}: {column}: got {shorten(value)}, expected the name of a text")
    return tuple(str(value) for value in values)


def _place(record: Record, settings: SurprisalSettings, default: int) -> float:
    if settings.order is None:
        return default
    value = record.value(settings.order)
    try:
        place = float(value)
    except (TypeError, ValueError):
        place = float("nan")
    if place != place or place in (float("inf"), float("-inf")):
        raise EvaluationError(f"{record.where}: {settings.order}: got {shorten(value)}, expected a number")
    return place


def read_texts(source: RawSource, settings: SurprisalSettings, most: MostRows = lambda name: None) -> Survey:
    """Read all files, and return counts of their texts. `most` returns the number of rows to read from a file, None for
    all rows.

    Raises the errors of `texts_of`. If all rows were read, also raises EvaluationError if the setting `drawn` exceeds
    the number of texts.
    """
    survey, whole = Survey(), True
    for name in text_files(source, settings):
        rows = most(name)
        whole = whole and rows is None
        for _ in texts_of(source, settings, name, survey, rows):
            pass
    if whole and settings.drawn > survey.texts:
        raise EvaluationError(
            f"{source.root}: drawn: got {settings.drawn:,}, expected at most {survey.texts:,}, the number of texts"
        )
    return survey


def all_texts(source: RawSource, settings: SurprisalSettings) -> Iterator[Text]:
    """Yield the texts of all files. Raises the errors of `texts_of`."""
    for name in text_files(source, settings):
        yield from texts_of(source, settings, name)


def plain_texts(sentences: Iterable[Any], name: str = "sentence") -> list[str]:
    """Return the sentences as a list. A single text counts as one sentence, not as a sequence of characters.

    Raises EvaluationError for an element that is not a text or contains half a surrogate pair. The error names the
    element's number, counted from 1.
    """
    listed = [sentences] if isinstance(sentences, str) else list(sentences)
    for number, sentence in enumerate(listed, 1):
        if not isinstance(sentence, str):
            raise EvaluationError(f"{name} {number:,}: got {shorten(sentence)}, expected a text")
        checked_text(sentence, f"{name} {number:,}")
    return listed
