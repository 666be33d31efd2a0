"""What people did with words, in the files of BabyLM: how long they read them, and when children say them."""

import json
import math

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.tasks.formats import read_csv
from hatchery.raw.registration import RawSource

Contexts = dict[str, list[str]]
Children = dict[str, dict[float, float]]
"""By word, the share of children that say it at an age in months; NaN where nobody knows."""


def one_file(source: RawSource, pattern: str) -> str:
    """The name of the only file that fits a pattern. Raises EvaluationError where there is none, or another."""
    names = source.names(pattern)
    if len(names) != 1:
        found = f"{len(names)} ({', '.join(names[:3])}, ...)" if names else "none"
        raise EvaluationError(f"{source.root}: expected one file that matches {pattern!r}, found {found}")
    return names[0]


def number_in(record: Record, column: str) -> float:
    """A number in a cell; NaN in an empty one. Raises EvaluationError naming file, line and column."""
    text = record.string(column).strip()
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise EvaluationError(f"{record.where}: {column}: got {text!r}, expected a number") from None


def read_children(source: RawSource, pattern: str) -> Children:
    """The table of children. Raises EvaluationError naming file and line, and for a word that stands twice."""
    name, found = one_file(source, pattern), Children()
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
    name = one_file(source, pattern)
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
