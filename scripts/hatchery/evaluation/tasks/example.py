"""The rows that every task format produces."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """One labelled input of one or two text segments; `label` is an index into the task's labels."""

    segments: tuple[str, ...]
    label: int


@dataclass(frozen=True)
class TaskData:
    """Training rows and the rows that are scored in the end."""

    train: list[Example]
    validation: list[Example]
