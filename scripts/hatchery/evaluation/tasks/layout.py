"""The type `Layout`: how the fields of a record become a model's inputs, and how labels, groups (rows that are
evaluated together) and facts (further texts for metrics) are read. Each file in `layouts/` defines a constant `LAYOUT`.

A label is the index of a class, the index of a choice, or a number. If releases of a task spell a label differently
(`entailment` and 0, `true` and 1), the task's `label_values` maps the spellings. There are separate error messages for
hidden labels of test splits (-1), for null in a label field that the file does not use (MSGS controls), and for labels
of another task.

A file of another task must raise an error, not produce a wrong score. Such a file is recognised by the fields that no
other suite has. Without this check, a CoLA task would read an MSGS file, which has a `sentence` and may have a `label`,
and MRPC would read a WiC file, which has two sentences.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, shorten
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.settings import LabelValue, TaskSettings, label_text

# Names of fields that identify each suite or task. A record probably belongs to the first entry whose fields the record
# contains.
_SIGNATURES: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (suite, frozenset(fields.split()))
    for suite, fields in (
        ("minimal pairs (BLiMP or the supplement)", "sentence_good sentence_bad"),
        ("MSGS", "sentence linguistic_feature_label surface_feature_label"),
        ("edge probing (jiant)", "text targets"),
        ("WiC", "word sentence1 sentence2"),
        ("WSC", "text span1_text span2_text"),
        ("WSC", "text target"),
        ("COPA", "premise choice1 choice2"),
        ("ReCoRD", "passage query entities"),
        ("ReCoRD (original)", "passage qas"),
        ("MultiRC", "paragraph question answer"),
        ("BoolQ", "question passage"),
        ("HANS", "premise hypothesis heuristic"),
        ("HANS (original)", "gold_label sentence1 sentence2 heuristic"),
        ("QNLI", "question sentence"),
        ("QQP", "question1 question2"),
        ("MNLI, CB or SuperGLUE's RTE", "premise hypothesis"),
        ("MRPC (original)", "Quality #1.String #2.String"),
        ("MRPC, RTE, STS-B or WNLI", "sentence1 sentence2"),
        ("CoLA or SST-2", "sentence"),
    )
)
# For each suite, the fields that no other suite has. A task that uses none of these fields must not read a file with
# two of them, even if the file has all fields of the task.
_DISTINCTIVE: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (suite, frozenset(fields.split()))
    for suite, fields in (
        ("minimal pairs (BLiMP or the supplement)", "sentence_good sentence_bad"),
        ("MSGS", "linguistic_feature_label surface_feature_label condition"),
        ("WiC", "start1 start2 end1 end2"),
        ("WSC", "span1_text span2_text"),
        ("COPA", "choice1 choice2"),
        ("HANS", "heuristic subcase template"),
    )
)


def guess_suite(names: Collection[str]) -> str | None:
    """Return the name of the suite or task to which a record with the fields `names` probably belongs; None if no suite
    matches.
    """
    dotted = {name.replace(" ", ".") for name in names}
    return next((suite for suite, fields in _SIGNATURES if fields <= dotted), None)


def check_suite(record: Record, used: Collection[str], task_name: str) -> None:
    """Raise EvaluationError if the record has two or more fields that only one suite has (_DISTINCTIVE), and none of
    this suite's fields is in `used`, the fields that the task reads."""
    names = set(record.names)
    for suite, fields in _DISTINCTIVE:
        if len(fields & names) >= 2 and fields.isdisjoint(used):
            raise EvaluationError(
                f"{record.where}: this is a file of {suite}, but the task {task_name!r} reads none of the fields "
                f"{', '.join(sorted(fields & names))}"
            )


def missing_field(record: Record, name: str, task_name: str) -> EvaluationError:
    """Return the error for a record without the field `name`. The message names the suite to which the record probably
    belongs, if there is one.
    """
    suite = guess_suite(record.names)
    guess = f"; the record looks like a record of {suite}" if suite else ""
    return EvaluationError(
        f"{record.where}: the field {name!r} of the task {task_name!r} is missing; "
        f"the record has: {', '.join(record.names)}{guess}"
    )


ReadLabel = Callable[[Record, object], int | float]
"""Function that converts the content of a record's label field to a label; the record is only used in error messages.
"""


def label_reader(task: TaskSettings, choices: int | None = None) -> ReadLabel:
    """Return a function that reads a task's labels. If the task lists labels, the function returns the index of a
    class. Otherwise, it returns the index of one of `choices` choices or, if `choices` is None, a finite number.

    The function raises EvaluationError naming file and line, the wrong label and the expected labels.
    """
    if task.labels:
        return _class_reader(task)
    if choices is not None:
        return lambda record, value: _choice(record, value, task, choices)
    return lambda record, value: _number(record, value, task)


def label_value(record: Record, task: TaskSettings) -> object:
    """Return the content of the label field. Raises EvaluationError if the record has no such field."""
    name = task.label_field
    if name in record.values:
        return record.values[name]
    if not record.has(name):
        raise missing_field(record, name, task.name)
    return record.value(name)


def _class_reader(task: TaskSettings) -> ReadLabel:
    index = {name: position for position, name in enumerate(task.label_names)}
    index |= {spelling: index[label_text(label)] for spelling, label in task.label_values.items()}
    integers = {int(name): position for name, position in index.items() if _is_integer(name)}

    def read(record: Record, value: object) -> int:
        label = None
        if type(value) is str:
            label = index.get(value)
        elif type(value) is int:
            label = integers.get(value)
        elif isinstance(value, LabelValue):
            label = index.get(label_text(value))
        if label is None:
            listed = f"the task {task.name!r} lists {', '.join(task.label_names)}; is this a file of another task?"
            raise _unknown(record, value, task, listed)
        return label

    return read


def _is_integer(name: str) -> bool:
    return name.removeprefix("-").isdecimal() and str(int(name)) == name


def _choice(record: Record, value: object, task: TaskSettings, choices: int) -> int:
    spelled = task.label_values.get(str(value), value)
    index = int(spelled) if isinstance(spelled, str) and spelled.isdecimal() else spelled
    if type(index) is not int or not 0 <= index < choices:
        raise _unknown(record, value, task, f"{task.name!r} expects the index of a choice, 0 to {choices - 1}")
    return index


def _number(record: Record, value: object, task: TaskSettings) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if value is None or not math.isfinite(number):
        raise _unknown(record, value, task, f"the task {task.name!r} expects a finite number")
    return number


def _unknown(record: Record, value: object, task: TaskSettings, expected: str) -> EvaluationError:
    field = task.label_field
    if value is None:
        why = f"the label field {field!r} is null: either this file does not use the field, or the label is hidden"
    elif value in (-1, "-1"):
        why = f"the label -1 in {field!r} represents a hidden label: this file is a test split without labels"
    else:
        why = f"the label {shorten(value)} in {field!r} is unknown"
    return EvaluationError(f"{record.where}: {why}; {expected}")


LayOut = Callable[[Record], Iterable[Example]]
"""Function that returns the examples of one record, in order."""

NO_FACTS: dict[str, str] = {}
"""Empty mapping, shared by all examples without facts; it must never be changed."""


@dataclass(frozen=True)
class Context:
    """Parameters of a layout: the task, the normalisation of texts, and whether the rows belong to a split on which
    models are scored (`scored_set`).

    The setting `scored_rows` selects rows only in these splits: MSGS is scored on rows with the condition `test`, and
    its training rows have another condition.
    """

    task: TaskSettings
    normalise: Callable[[str], str]
    scored_set: bool
    choices: int | None = None
    label: ReadLabel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", label_reader(self.task, self.choices))

    def traits(self, record: Record) -> tuple[str, bool, dict[str, str]]:
        """Return three properties of a record, which the task's settings `group_fields`, `scored_rows` and `facts`
        define: the group with which a metric evaluates the record, True if the record is scored, and the record's
        values in the fields by which results are divided into subsets.
        """
        task = self.task
        if not (task.group_fields or task.scored_rows or task.facts):
            return "", True, NO_FACTS
        group = "/".join(self._text(record, name) for name in task.group_fields)
        scored = not self.scored_set or all(
            self._text(record, name) == label_text(value) for name, value in task.scored_rows.items()
        )
        return group, scored, {name: self._text(record, name) for name in task.facts}

    def string(self, record: Record, name: str) -> str:
        """Return the content of a text field, which may be empty. Raises EvaluationError if the field is missing or not
        a text.
        """
        text = record.values.get(name)
        if type(text) is str and text.isascii():
            return text
        if not record.has(name):
            raise missing_field(record, name, self.task.name)
        return record.string(name)

    def text(self, record: Record, name: str) -> str:
        """Return the normalised content of a text field. Raises EvaluationError if the field is missing, empty or not a
        text.
        """
        if not record.has(name):
            raise missing_field(record, name, self.task.name)
        return self.normalise(record.text(name))

    def _text(self, record: Record, name: str) -> str:
        if not record.has(name):
            raise missing_field(record, name, self.task.name)
        value = record.value(name)
        if isinstance(value, str):
            return value
        return label_text(value) if isinstance(value, int | float) else json.dumps(value, sort_keys=True)


@dataclass(frozen=True)
class Layout:
    """A conversion of the fields of a record to the inputs of a model."""

    make: Callable[[Context], LayOut]
    """Function that receives the task's `Context` and returns a function from a record to its examples."""
    fields: tuple[str, ...] = ()
    """Fields of a record that the layout reads; empty if the task's settings name the fields."""
    choices: int | None = None
    """Number of inputs of an example (one per choice); None for a single input."""


def nested(record: Record, value: object, name: str, kind: type) -> object:
    """Return `value`, the content of the record's field `name`. Raises EvaluationError unless its type is `kind` (dict
    or list).
    """
    if not isinstance(value, kind):
        raise EvaluationError(
            f"{record.where}: the field {name!r} must be a {kind.__name__}, got {type(value).__name__}"
        )
    return value
