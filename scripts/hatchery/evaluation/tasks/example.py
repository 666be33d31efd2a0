"""Rows of every task: texts with a label, questions with choices, sentences with labelled spans.

Readers and layouts create rows; encodings and metrics read them. This module depends on no file format and no model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Label = int | float | tuple[int, ...]


@dataclass(frozen=True)
class MarkedSpan:
    """Characters [start, end) of one segment of an input, such as the target words of WiC."""

    segment: int
    start: int
    end: int


@dataclass(frozen=True)
class Example:
    """One labelled unit.

    `inputs` holds the segments of every model input: one input of one to three texts, or one input per choice. `label`
    is the index of a class or of the right choice, or a number (regression). Rows with the same `group` are judged
    together (the question of MultiRC, the query of ReCoRD). A row that is not `scored` is predicted and stored, but
    enters no metric (MSGS rows of other conditions). `facts` are further texts that metrics and tables need (ReCoRD's
    entity and answers, HANS' heuristic); `where` is `file:line` of the row.
    """

    inputs: tuple[tuple[str, ...], ...]
    label: Label
    group: str = ""
    scored: bool = True
    marked: tuple[MarkedSpan, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    where: str = ""

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments of the example's only input."""
        (segments,) = self.inputs
        return segments


@dataclass(frozen=True)
class SpanTarget:
    """One labelled span, or pair of spans, of a sentence: word indices [start, end), and the true labels.

    Labels are indices into the task's label set; a label outside the set is -1, which equals no prediction.
    """

    spans: tuple[tuple[int, int], ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class SpanExample:
    """A sentence of edge probing: its words, and the spans to label. `where` is `file:line` of its record."""

    words: tuple[str, ...]
    targets: tuple[SpanTarget, ...]
    where: str = ""


@dataclass(frozen=True)
class TaskData:
    """Training rows, and the scored rows by name of the set.

    The first scored set, "validation", is the main one: papers use it as their test set, so training and selection
    never read it. `labels` are the label names in the order of their indices; empty for a task without a label set.
    """

    train: list[Example] | list[SpanExample]
    scored: dict[str, list[Example] | list[SpanExample]]
    labels: tuple[str, ...]
