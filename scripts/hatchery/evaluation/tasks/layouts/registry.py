"""The layouts by name, with the fields that each may ask a record for and the number of its inputs.

- `segments`: one input of one to three texts, each a field of the record or a template over its fields. `question` is a
  field, `"Question: {question} Answer: {answer}"` a template, which is how BabyLM 2023 joins question and answer of
  MultiRC and builds the query of WSC (docs/papers/babylm-evaluation.md, "Tasks"). What a field holds is never taken for
  a template.
- `copa`: two inputs per item, one per choice; the label is the right choice (docs/papers/ltg-bert.md, "Fine-tuning").
  The cause comes first: to the question "cause" the inputs are (choice, premise), to "effect" (premise, choice).
- `wic`: two sentences with a word in each, which are marked for the head that reads them beside [CLS]. `start1`,
  `end1`, `start2`, `end2` count characters of the raw sentences, so the sentences stay as they are.
- `multirc` and `record` are in `passages.py`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, shorten
from hatchery.evaluation.tasks.example import Example, MarkedSpan
from hatchery.evaluation.tasks.formats.registry import text_fields
from hatchery.evaluation.tasks.labels import label_value
from hatchery.evaluation.tasks.layouts.layout import Context, LayOut
from hatchery.evaluation.tasks.layouts.passages import MULTIRC_FIELDS, RECORD_FIELDS, lay_out_multirc, lay_out_record
from hatchery.evaluation.tasks.settings import Layout, TaskSettings
from hatchery.evaluation.tasks.suites import missing_field

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


def lay_out_segments(context: Context) -> LayOut:
    """Examples with the task's `fields` as segments.

    A text may be empty (QQP has empty questions) where another text of the same input is not.
    """
    task, label = context.task, context.label
    fields = text_fields(task)
    parts = tuple(_part(field, context) for field in fields)

    def lay_out(record: Record) -> Iterator[Example]:
        segments = tuple([part(record) for part in parts])
        if not any(segments):
            raise EvaluationError(f"{record.where}: no text in the fields {', '.join(fields)}")
        group, scored, facts = context.traits(record)
        yield Example((segments,), label(record, label_value(record, task)), group, scored, (), facts, record.where)

    return lay_out


def field_names(field: str) -> list[str]:
    """The record's fields that a field or template of a task asks for."""
    return PLACEHOLDER.findall(field) if "{" in field else [field]


def _part(field: str, context: Context) -> Callable[[Record], str]:
    string, normalise = context.string, context.normalise
    if "{" in field:
        return lambda record: _filled(normalise(PLACEHOLDER.sub(lambda found: string(record, found[1]), field)))
    return lambda record: _filled(normalise(string(record, field)))


def _filled(text: str) -> str:
    """The text, or an empty one for white space alone."""
    return "" if text.isspace() else text


COPA_FIELDS = ("premise", "choice1", "choice2", "question")
CHOICES = 2


def lay_out_copa(context: Context) -> LayOut:
    """Examples with two inputs of two segments. Raises EvaluationError for a question that is neither of the two."""

    def lay_out(record: Record) -> Iterator[Example]:
        premise, *choices = (context.text(record, name) for name in COPA_FIELDS[:3])
        question = context.string(record, "question")
        if question not in ("cause", "effect"):
            raise EvaluationError(f"{record.where}: the question must be cause or effect, got {shorten(question)}")
        inputs = tuple((choice, premise) if question == "cause" else (premise, choice) for choice in choices)
        group, scored, facts = context.traits(record)
        label = context.label(record, label_value(record, context.task))
        yield Example(inputs, label, group, scored, (), facts, record.where)

    return lay_out


WIC_FIELDS = ("sentence1", "sentence2", "start1", "start2", "end1", "end2")


def lay_out_wic(context: Context) -> LayOut:
    """Examples with two segments; of a head that reads them, with two marked spans.

    Raises EvaluationError for a span outside its sentence.
    """
    marks_words = context.task.head.kind == "marked_words_classification"

    def lay_out(record: Record) -> Iterator[Example]:
        segments = tuple(context.text(record, f"sentence{number}") for number in (1, 2))
        spans = tuple(_span(record, index, segments[index], context) for index in (0, 1))
        group, scored, facts = context.traits(record)
        label = context.label(record, label_value(record, context.task))
        yield Example((segments,), label, group, scored, spans if marks_words else (), facts, record.where)

    return lay_out


def _span(record: Record, segment: int, text: str, context: Context) -> MarkedSpan:
    bounds: list[int] = []
    for name in (f"start{segment + 1}", f"end{segment + 1}"):
        if not record.has(name):
            raise missing_field(record, name, context.task.name)
        value = record.value(name)
        if type(value) is not int:
            raise EvaluationError(f"{record.where}: the field {name!r} must be a whole number, got {shorten(value)}")
        bounds.append(value)
    start, end = bounds
    if not (0 <= start < end <= len(text)) or not text[start:end].strip():
        raise EvaluationError(
            f"{record.where}: the word at [{start}, {end}) lies outside 'sentence{segment + 1}', "
            f"which has {len(text)} characters"
        )
    return MarkedSpan(segment, start, end)


@dataclass(frozen=True)
class LayoutDefinition:
    """One entry of the registry. `fields` is empty where the task names them; `choices` is the number of inputs."""

    make: Callable[[Context], LayOut]
    fields: tuple[str, ...] = ()
    choices: int | None = None


LAYOUTS: dict[Layout, LayoutDefinition] = {
    "segments": LayoutDefinition(lay_out_segments),
    "copa": LayoutDefinition(lay_out_copa, COPA_FIELDS, CHOICES),
    "multirc": LayoutDefinition(lay_out_multirc, MULTIRC_FIELDS),
    "record": LayoutDefinition(lay_out_record, RECORD_FIELDS),
    "wic": LayoutDefinition(lay_out_wic, WIC_FIELDS),
}


def used_fields(task: TaskSettings) -> frozenset[str]:
    """The top-level fields of a record that the task may ask for."""
    own = LAYOUTS[task.layout].fields or [name for field in text_fields(task) for name in field_names(field)]
    checked = task.vocabulary.fields if task.vocabulary else ()
    names = {*own, task.label_field, *task.scored_rows, *task.group_fields, *task.facts, *checked}
    return frozenset(names | {name.split(".")[0] for name in names})
