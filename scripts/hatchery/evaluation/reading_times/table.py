"""Read and check a table of reading times and the words of the texts that were read.

Planning also imports this module, so slow imports are inside functions.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hatchery.errors import EvaluationError
from hatchery.evaluation.evaluation import MostRows
from hatchery.evaluation.json_lines import Record, shorten
from hatchery.evaluation.reading_times.settings import LENGTH, ZIPF, ReadingTableSettings
from hatchery.evaluation.surprisal.texts import CLEANING, ROWS, is_missing
from hatchery.raw.registration import RawSource

if TYPE_CHECKING:
    import polars as pl

FREQUENCY_WORD, FREQUENCY_COUNT = "word", "count"


@dataclass(frozen=True)
class Passage:
    """One text (item) that participants read: its words in the order of their positions."""

    item: str
    positions: tuple[float, ...]
    words: tuple[str, ...]
    sentences: tuple[str | None, ...]


@dataclass
class ReadTable:
    """The rows of a table, stored as columns, and the texts of the table.

    `columns` are `item`, `position`, `participant` (if the table has one), responses and predictors. Responses and
    predictors are numbers, NaN if missing. `passages` are in the order of their first rows. `counts` are the numbers of
    omitted rows by reason.
    """

    columns: "dict[str, list[str] | array[float]]"
    passages: list[Passage] = field(default_factory=list)
    frequencies: dict[str, int] | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def frame(self) -> "pl.DataFrame":
        """Return the table's rows as a polars data frame."""
        import polars as pl

        types: dict[str, Any] = {"item": pl.String, "participant": pl.String}
        return pl.DataFrame(self.columns, schema={name: types.get(name, pl.Float64) for name in self.columns})


def table_files(source: RawSource, settings: ReadingTableSettings) -> list[str]:
    """Return the names of the files that the settings name. Raises EvaluationError for a file whose suffix belongs to
    no known table format.
    """
    patterns = (settings.files, settings.texts, settings.frequencies)
    names = [source.one_name(pattern) for pattern in patterns if pattern is not None]
    for name in names:
        _rows(source, name)
    return list(dict.fromkeys(names))


def read_table(source: RawSource, settings: ReadingTableSettings, most: MostRows = lambda name: None) -> ReadTable:
    """Return a table of reading times. `most` returns the number of rows to read from a file, None for all rows.

    Two kinds of rows are omitted and counted: rows without a word or a position, and rows whose word differs from the
    word of the text at the row's position. (The text is the table `settings.texts` or, without it, the first row of
    each position.) Raises EvaluationError naming file and line for a missing column, a missing item or participant, and
    a text in a column of numbers. If all rows are read, also raises EvaluationError naming the file for a table in
    which no row has a word and a position.
    """
    name = source.one_name(settings.files)
    numbers: dict[str, array[float]] | None = None
    computed = {LENGTH, *([ZIPF] if settings.frequencies else [])}
    items: list[str] = []
    positions = array("d")
    readers: list[str] = []
    words: list[str] = []
    # Equal texts of different rows are stored once.
    stored: dict[str, str] = {}
    texts: dict[str, dict[float, tuple[str, str | None]]] = {}
    without_word = others = 0
    for record in _chosen(source, name, settings, most):
        if numbers is None:
            own = [key for key in settings.predictors if record.has(key) or key not in computed]
            numbers = {key: array("d") for key in dict.fromkeys((*settings.responses, *own))}
        # Read all cells before the row can be skipped. A missing column then raises an error at the first row.
        values = [_number(record, key, settings) for key in numbers]
        reader = _name(record, settings.participant, settings) if settings.participant else ""
        item, position = _name(record, settings.item, settings), _number(record, settings.position, settings)
        word = _word(record, settings)
        if word is None or math.isnan(position):
            without_word += 1
            continue
        item, word, reader = (stored.setdefault(text, text) for text in (item, word, reader))
        if settings.texts is None:
            known = texts.setdefault(item, {}).setdefault(position, (word, _sentence(record, settings)))
            if known[0] != word:
                others += 1
                continue
        items.append(item)
        positions.append(position)
        words.append(word)
        if settings.participant:
            readers.append(reader)
        for column, value in zip(numbers.values(), values, strict=True):
            column.append(value)
    if not items and most(name) is not None:
        # If only the first rows are read, `only` may skip all of them, for example because they are in another
        # language. This is not an error.
        return ReadTable({"item": [], "position": array("d")})
    if not items:
        raise EvaluationError(f"{name}: the table has no row with a word{_of_these(settings)}")
    assert numbers is not None
    columns: dict[str, list[str] | array[float]] = {"item": items, "position": positions}
    if settings.participant:
        columns["participant"] = readers
    table = ReadTable({**columns, **numbers}, counts={"without_word": without_word, "other_word": others})
    if settings.texts is not None:
        texts = _texts(source, settings, most)
        _keep(
            table,
            [
                texts.get(item, {}).get(at, ("",))[0] == word
                for item, at, word in zip(items, positions, words, strict=True)
            ],
        )
    table.passages = [_passage(item, places) for item, places in texts.items()]
    if settings.frequencies is not None:
        table.frequencies = _frequencies(source, source.one_name(settings.frequencies), most)
    return table


def _rows(source: RawSource, name: str) -> Iterator[Record]:
    ending = PurePosixPath(name).suffix.lower()
    if ending not in ROWS:
        raise EvaluationError(f"{name}: the ending {ending!r} is unknown, expected {', '.join(ROWS)}")
    return ROWS[ending](source, name)


def _chosen(source: RawSource, name: str, settings: ReadingTableSettings, most: MostRows) -> Iterator[Record]:
    """Yield the rows of a file that have the values that the setting `only` requires."""
    limit = most(name)
    for number, record in enumerate(_rows(source, name)):
        if limit is not None and number >= limit:
            return
        if all(_text(record.value(column)) == value for column, value in settings.only.items()):
            yield record


def _texts(
    source: RawSource, settings: ReadingTableSettings, most: MostRows
) -> dict[str, dict[float, tuple[str, str | None]]]:
    """Return the words of the table `texts`, each with the name of its sentence (None if unknown). The keys of the
    result are the text (item) and the word's position in the text. If several rows of a text have the same position,
    the word of the first row is returned.
    """
    assert settings.texts is not None
    words_by_item: dict[str, dict[float, tuple[str, str | None]]] = {}
    for record in _chosen(source, source.one_name(settings.texts), settings, most):
        word, position = _word(record, settings), _number(record, settings.position, settings)
        if word is not None and not math.isnan(position):
            places = words_by_item.setdefault(_name(record, settings.item, settings), {})
            places.setdefault(position, (word, _sentence(record, settings)))
    return words_by_item


def _keep(table: ReadTable, kept: list[bool]) -> None:
    table.counts["other_word"] = kept.count(False)
    for name, values in table.columns.items():
        if isinstance(values, array):
            table.columns[name] = array("d", compress(values, kept))
        else:
            table.columns[name] = list(compress(values, kept))


def _passage(item: str, places: dict[float, tuple[str, str | None]]) -> Passage:
    order = sorted(places)
    return Passage(item, tuple(order), tuple(places[at][0] for at in order), tuple(places[at][1] for at in order))


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        # Parquet stores a column of integers with a missing cell as floats, so convert whole floats to integers.
        return str(int(value))
    return str(value).strip()


def _name(record: Record, column: str, settings: ReadingTableSettings) -> str:
    value = record.value(column)
    if is_missing(value, settings.missing) or isinstance(value, list | dict):
        raise EvaluationError(f"{record.where}: {column}: got {shorten(value)}, expected a name")
    return _text(value)


def _word(record: Record, settings: ReadingTableSettings) -> str | None:
    value = record.value(settings.word)
    # In the column of words, only an empty cell is missing: "NA" and "null" may be words of a text.
    if is_missing(value, ()):
        return None
    return CLEANING[settings.cleaning](record.text(settings.word)).strip() or None


def _sentence(record: Record, settings: ReadingTableSettings) -> str | None:
    if settings.sentence is None:
        return None
    value = record.value(settings.sentence)
    return None if is_missing(value, settings.missing) else _text(value)


def _number(record: Record, column: str, settings: ReadingTableSettings) -> float:
    """Return the number in a row's cell; NaN for a missing value. Raises EvaluationError naming file, line and column
    if the cell is infinite or not a number.
    """
    value = record.value(column)
    if is_missing(value, settings.missing):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise EvaluationError(f"{record.where}: {column}: got {shorten(value)}, expected a number or a missing value")
    return number


def _frequencies(source: RawSource, name: str, most: MostRows) -> dict[str, int]:
    counts: dict[str, int] = {}
    limit = most(name)
    for number, record in enumerate(_rows(source, name)):
        if limit is not None and number >= limit:
            break
        word = frequency_key(record.string(FREQUENCY_WORD))
        try:
            count = int(record.value(FREQUENCY_COUNT))
        except (TypeError, ValueError):
            count = -1
        if count < 0:
            got = shorten(record.value(FREQUENCY_COUNT))
            raise EvaluationError(f"{record.where}: {FREQUENCY_COUNT}: got {got}, expected a number of occurrences")
        counts[word] = counts.get(word, 0) + count
    return counts


def frequency_key(word: str) -> str:
    """Return the form in which a word is looked up in the frequency table: lower case, without surrounding
    punctuation."""
    inner = word.strip().casefold()
    start, end = 0, len(inner)
    while start < end and not inner[start].isalnum():
        start += 1
    while end > start and not inner[end - 1].isalnum():
        end -= 1
    return inner[start:end] or inner


def zipf(words: Iterable[str], counts: Mapping[str, int]) -> list[float]:
    """Return for each word log10 of its occurrences per billion words, with one added to each count.

    `counts` is the number of occurrences of each word in a corpus (van Heuven et al., 2014).
    """
    total = sum(counts.values()) + len(counts)
    return [math.log10((counts.get(frequency_key(word), 0) + 1) / total) + 9 for word in words]


def _of_these(settings: ReadingTableSettings) -> str:
    chosen = ", ".join(f"{column} = {value}" for column, value in settings.only.items())
    return f" and {chosen}" if chosen else ""
