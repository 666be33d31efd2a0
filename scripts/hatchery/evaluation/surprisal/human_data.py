"""Human data about words, in BabyLM's files: reading times, and the fraction of children who say a word at each age.

Planning also imports this module, so it has no slow imports.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from hatchery.corpora.rows import unique_keys
from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, checked_text, shorten, some
from hatchery.evaluation.surprisal.settings import MISSING
from hatchery.evaluation.surprisal.texts import is_missing
from hatchery.evaluation.tasks.formats import read_csv
from hatchery.raw.registration import RawSource

EYE_TRACKING = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")
SELF_PACED = "self_paced_reading_time"
FREQUENCY = "Subtlex_log10"
OF_THE_WORD = (FREQUENCY, "length", "context_length")
OF_THE_ONE_BEFORE = ("prev_length", "prev_surprisal")
NUMBERS = (*OF_THE_WORD, "prev_length", *EYE_TRACKING, SELF_PACED)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
Contexts = dict[str, list[str]]
Children = dict[str, dict[float, float]]
"""Type of the children's data: for each word and each age in months, the share of children who say the word, NaN if
unknown.
"""


@dataclass(frozen=True)
class ReadWord:
    """A word with its reading times and properties: `context` is the text before the word, `before` is the pair (text
    before the previous word, previous word), and `numbers` contains the columns NUMBERS.

    A missing number is NaN; `before` is None if the table has no previous word.
    """

    context: str
    word: str
    before: tuple[str, str] | None
    numbers: Mapping[str, float]


def read_word(record: Record) -> ReadWord:
    """Return the word in a row of `reading_data.csv`. Raises EvaluationError naming file, line and column of a wrong
    cell.
    """
    numbers = {name: number_in(record, name, lowest=-math.inf if name == FREQUENCY else 0) for name in NUMBERS}
    previous, context = record.string("prev_word"), record.string("prev_item")
    if previous and not context.strip():
        raise EvaluationError(
            f"{record.where}: prev_word is set but prev_item is empty, expected the text before the word in prev_item"
        )
    return ReadWord(record.text("item"), record.text("word"), (context, previous) if previous else None, numbers)


def number_in(record: Record, column: str, lowest: float = -math.inf, highest: float = math.inf) -> float:
    """Return the finite number in a cell; NaN for an empty cell, NA and other values of MISSING.

    Raises EvaluationError naming file, line and column for text that is not a number, and for a number below `lowest`
    or above `highest`.
    """
    text = record.string(column).strip()
    if is_missing(text, MISSING):
        return math.nan
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    if math.isinf(value):
        raise EvaluationError(
            f"{record.where}: {column}: got {shorten(text)}, expected a number such as 203.5, or an empty cell"
        )
    if not lowest <= value <= highest:
        limits = f"at least {lowest:g}" if math.isinf(highest) else f"a share from {lowest:g} to {highest:g}"
        hint = "; divide percentages by 100" if value > highest else ""
        raise EvaluationError(f"{record.where}: {column}: got {text}, expected {limits}{hint}")
    return value


def read_words(source: RawSource, pattern: str, most: int | None = None) -> list[ReadWord]:
    """Return the words of the table of reading times; if `most` is not None, only the first `most` words.

    Raises EvaluationError naming file and line for a wrong row. If `most` is None, also raises EvaluationError for a
    column with too few reading times, or with only equal reading times.
    """
    name = source.one_name(pattern)
    words = [read_word(record) for record in islice(some(read_csv(source, name, complete=True), name), most)]
    if most is None:
        _check_outcomes(words, name)
    return words


def _check_outcomes(words: Sequence[ReadWord], name: str) -> None:
    """Raise EvaluationError for a column with too few reading times, or with only equal reading times, because no
    regression can be fitted.
    """
    for outcome in (*EYE_TRACKING, SELF_PACED):
        self_paced = outcome == SELF_PACED
        columns = (*OF_THE_WORD, *(["prev_length"] if self_paced else []))
        times = [
            one.numbers[outcome]
            for one in words
            if not (self_paced and one.before is None)
            and not any(math.isnan(one.numbers[column]) for column in (*columns, outcome))
        ]
        # A regression needs one row more than it has parameters: an intercept, all columns, all products of two
        # columns, and the surprisal. For self-paced reading, the columns include the previous word's length and
        # surprisal.
        n_columns = len(OF_THE_WORD) + (len(OF_THE_ONE_BEFORE) if self_paced else 0)
        fewest = 1 + n_columns + math.comb(n_columns, 2) + 1 + 1
        if len(times) < fewest or len(set(times)) < 2:
            raise EvaluationError(
                f"{name}: {outcome}: got {len(times):,} rows without an empty cell in this column and in "
                f"{', '.join(columns)}, expected at least {fewest}, with different times"
            )


def read_children(source: RawSource, pattern: str) -> Children:
    """Return the table of children's words: for each word, the fraction of children who say it at each age. Raises
    EvaluationError naming file and line for a wrong row and for a word that occurs twice.
    """
    name, children = source.one_name(pattern), Children()
    for record in read_csv(source, name, complete=True):
        word = record.text("word")
        if word in children:
            raise EvaluationError(f"{record.where}: the word {word!r} occurs twice")
        ages = [age for age in record.values if age.isascii() and age.isdigit()]
        children[word] = {float(age): number_in(record, age, 0, 1) for age in ages}
        if not children[word]:
            raise EvaluationError(f"{record.where}: no column has an age in months as its name, such as '16'")
    if not children:
        raise EvaluationError(f"{name}: the file contains no words")
    return children


def read_contexts(source: RawSource, pattern: str, shortest: int = 2) -> Contexts:
    """Return the contexts of each word, in the order of the file; words of fewer than `shortest` characters are
    omitted.

    Raises EvaluationError naming the file if it is not a JSON object with a list of contexts for each word, or if it
    contains no context. Raises EvaluationError naming the word if one of its contexts is not a text, or occurs twice.
    """
    name = source.one_name(pattern)
    try:
        content = json.loads(source.read_bytes(name).decode("utf-8"), object_pairs_hook=unique_keys)
        contexts_by_word = {
            word: [one["context"] for one in given] for word, given in content.items() if len(word) >= shortest
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EvaluationError(
            f'{name}: expected {{"word": [{{"context": "text"}}, ...], ...}} in UTF-8: {type(error).__name__}: {error}'
        ) from error
    for word, contexts in contexts_by_word.items():
        before = set[str]()
        for number, context in enumerate(contexts, 1):
            where = f"{name}: {word!r}: context {number}"
            if not isinstance(context, str):
                raise EvaluationError(f"{where}: got {shorten(context)}, expected a text, which may be empty")
            checked_text(context, where)
            if context in before:
                raise EvaluationError(f"{where}: {shorten(context)} occurs twice, expected each context of a word once")
            before.add(context)
    if not any(contexts_by_word.values()):
        raise EvaluationError(f"{name}: the file contains no contexts")
    return contexts_by_word
