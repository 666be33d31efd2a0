"""What a layout is: a record in its own file (`LAYOUT`) of `layouts/`, and what examples carry besides inputs."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.labels import ReadLabel, label_reader
from hatchery.evaluation.tasks.settings import TaskSettings, label_text
from hatchery.evaluation.tasks.suites import missing_field

LayOut = Callable[[Record], Iterable[Example]]
"""The examples of one record, in order."""

NO_FACTS: dict[str, str] = {}
"""Shared by all examples without facts; nothing writes to it."""


@dataclass(frozen=True)
class Context:
    """What a layout is made for: the task, the spelling of its texts, and whether its rows are scored.

    Only rows of scored sets are held against `scored_rows`: the training rows of MSGS have another condition.
    """

    task: TaskSettings
    normalise: Callable[[str], str]
    scored_set: bool
    choices: int | None = None
    label: ReadLabel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", label_reader(self.task, self.choices))

    def traits(self, record: Record) -> tuple[str, bool, dict[str, str]]:
        """Group, whether the row is scored, and facts, as the task names their fields."""
        task = self.task
        if not (task.group_fields or task.scored_rows or task.facts):
            return "", True, NO_FACTS
        group = "/".join(self._text(record, name) for name in task.group_fields)
        scored = not self.scored_set or all(
            self._text(record, name) == label_text(value) for name, value in task.scored_rows.items()
        )
        return group, scored, {name: self._text(record, name) for name in task.facts}

    def string(self, record: Record, name: str) -> str:
        """A text field, which may be empty. Raises EvaluationError when it is missing or no text."""
        found = record.values.get(name)
        if type(found) is str and found.isascii():
            return found
        if not record.has(name):
            raise missing_field(record, name, self.task.name)
        return record.string(name)

    def text(self, record: Record, name: str) -> str:
        """A text field, normalised and not empty. Raises EvaluationError when it is missing or no text."""
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
    """How the fields of a record become the inputs of a model."""

    make: Callable[[Context], LayOut]
    """What gives the examples of a record, for a task."""
    fields: tuple[str, ...] = ()
    """The fields of a record that it asks for; empty where the task names them."""
    choices: int | None = None
    """The number of inputs of an example; None for one."""


def nested(record: Record, value: object, name: str, kind: type) -> object:
    """`value`, called `name` in the record. Raises EvaluationError unless it is of the kind (a dict, a list)."""
    if not isinstance(value, kind):
        raise EvaluationError(
            f"{record.where}: the field {name!r} must be a {kind.__name__}, got {type(value).__name__}"
        )
    return value
