"""What people did with words, in the files of BabyLM: how long they read them, and when children say them.

Planning reads them, too, so nothing here is slow to import.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, some
from hatchery.evaluation.tasks.formats import read_csv
from hatchery.raw.registration import RawSource

EYE_TRACKING = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")
SELF_PACED = "self_paced_reading_time"
OF_THE_WORD = ("Subtlex_log10", "length", "context_length")
OF_THE_ONE_BEFORE = ("prev_length", "prev_surprisal")
NUMBERS = (*OF_THE_WORD, "prev_length", *EYE_TRACKING, SELF_PACED)
Contexts = dict[str, list[str]]
Children = dict[str, dict[float, float]]
"""By word, the share of children that say it at an age in months; NaN where nobody knows."""


@dataclass(frozen=True)
class ReadWord:
    """A word that people read: the text before it, the word before it with the text before that, and numbers (NUMBERS).

    A number that is missing is NaN.
    """

    context: str
    word: str
    before: tuple[str, str] | None
    numbers: Mapping[str, float]


def read_word(record: Record) -> ReadWord:
    """A row of `reading_data.csv`. Raises EvaluationError naming file, line and column."""
    numbers = {name: number_in(record, name) for name in NUMBERS}
    previous = record.string("prev_word")
    return ReadWord(
        record.text("item"), record.text("word"), (record.text("prev_item"), previous) if previous else None, numbers
    )


def number_in(record: Record, column: str) -> float:
    """A number in a cell; NaN in an empty one. Raises EvaluationError naming file, line and column."""
    text = record.string(column).strip()
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise EvaluationError(f"{record.where}: {column}: got {text!r}, expected a number") from None


def read_words(source: RawSource, pattern: str, most: int | None = None) -> list[ReadWord]:
    """The words of the table of reading times, or so many of them. Raises EvaluationError naming file and line."""
    name = source.one_name(pattern)
    return [read_word(record) for record in islice(some(read_csv(source, name), name), most)]


def read_children(source: RawSource, pattern: str) -> Children:
    """The table of children. Raises EvaluationError naming file and line, and for a word that stands twice."""
    name, found = source.one_name(pattern), Children()
    for record in read_csv(source, name):
        word = record.text("word")
        if word in found:
            raise EvaluationError(f"{record.where}: the word {word!r} stands twice")
        found[word] = {float(age): number_in(record, age) for age in record.values if age.isdigit()}
        if not found[word]:
            raise EvaluationError(f"{record.where}: there is no column of an age in months, such as '16'")
    if not found:
        raise EvaluationError(f"{name}: the file holds no words")
    return found


def read_contexts(source: RawSource, pattern: str) -> Contexts:
    """The contexts of each word, in the order of the file; words of one character are left out.

    Raises EvaluationError naming the file for other content.
    """
    name = source.one_name(pattern)
    try:
        content = json.loads(source.read_bytes(name).decode("utf-8"))
        found = {word: [str(one["context"]) for one in given] for word, given in content.items() if len(word) > 1}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EvaluationError(
            f'{name}: expected {{"word": [{{"context": "text"}}, ...], ...}} in UTF-8: {type(error).__name__}: {error}'
        ) from error
    if not any(found.values()):
        raise EvaluationError(f"{name}: the file holds no contexts")
    return found
