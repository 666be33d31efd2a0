"""Examples of every task: texts with a label, questions with choices, sentences with labelled spans.

The readers of task files (`formats`, `layouts`) create examples. Fine-tuning and probing convert examples to token ids
and compute metrics. This module depends on no file format and no model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Label = int | float | tuple[int, ...]


@dataclass(frozen=True)
class MarkedSpan:
    """A range of characters [start, end) in one segment of an input, for example a target word of WiC."""

    segment: int
    start: int
    end: int


@dataclass(frozen=True)
class Example:
    """One example of a task: one or more model inputs with one label.

    `inputs` contains the segments (texts) of every model input: one input of one to three segments, or one input per
    choice. `label` is the index of a class or of the correct choice, a number (regression), or a tuple of integers for
    a head with several labels per example. Metrics evaluate examples with the same `group` together (the question of
    MultiRC, the query of ReCoRD). If `scored` is false, the example is predicted and stored, but enters no metric (MSGS
    rows whose condition is not `test`). `marked` are the words that the head reads. `facts` are further texts for
    metrics and tables (ReCoRD's entity and answers, HANS' heuristic). `where` is `file:line` of the example's row.
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
        """The segments of the input, for an example that has only one input."""
        (segments,) = self.inputs
        return segments


@dataclass(frozen=True)
class SpanTarget:
    """One target of a sentence: one span of words [start, end), or a pair of spans, with the true labels.

    Labels are distinct indices into the task's label set. All labels outside the label set together become one index
    -1, which no prediction can equal.
    """

    spans: tuple[tuple[int, int], ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class SpanExample:
    """A sentence of edge probing: its words, and its targets (spans with labels). `where` is `file:line` of the
    sentence's record.
    """

    words: tuple[str, ...]
    targets: tuple[SpanTarget, ...]
    where: str = ""


@dataclass(frozen=True)
class TaskData:
    """The training examples of a task, and the examples on which models are scored, by name of the split.

    The first scored split, "validation", is the main scored split. Papers use it as their test set, so training never
    reads it, and model selection reads it only with `selection: scored`. `labels` are the label names in the order of
    their indices; empty for a task without a label set.
    """

    train: list[Example] | list[SpanExample]
    scored: dict[str, list[Example] | list[SpanExample]]
    labels: tuple[str, ...]
