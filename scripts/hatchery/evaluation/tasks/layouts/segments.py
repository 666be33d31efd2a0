"""One model input with one to three segments. A segment is a field of the record, or a template that contains fields.

For example, `question` is a field, and `"Question: {question} Answer: {answer}"` is a template. BabyLM 2023 uses
templates to join question and answer in MultiRC, and to build the query of WSC (docs/papers/babylm-evaluation.md,
"Tasks"). Braces in the content of a field are plain text.
"""

import re
from collections.abc import Callable, Iterator

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.formats import text_fields
from hatchery.evaluation.tasks.layout import Context, LayOut, Layout, label_value

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


def lay_out_segments(context: Context) -> LayOut:
    """Return a function from a record to an example whose segments are the task's `fields`.

    A segment may be empty (QQP has empty questions) if another segment of the same input is not empty. The function
    raises EvaluationError if all segments are empty.
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
    """Return the names of the record's fields that an entry of the task's `fields` uses. An entry is a field or a
    template.
    """
    return PLACEHOLDER.findall(field) if "{" in field else [field]


def _part(field: str, context: Context) -> Callable[[Record], str]:
    string, normalise = context.string, context.normalise
    if "{" in field:
        return lambda record: _filled(normalise(PLACEHOLDER.sub(lambda found: string(record, found[1]), field)))
    return lambda record: _filled(normalise(string(record, field)))


def _filled(text: str) -> str:
    """Return the text, or an empty text if it consists only of white space."""
    return "" if text.isspace() else text


LAYOUT = Layout(lay_out_segments)
