"""GLUE, SuperGLUE and MSGS rows as JSON lines: the filtered files of BabyLM 2023 and their like.

`files` names the training and the validation files; `fields` one or two text fields. A field with braces is a
template over fields of the row, which is how BabyLM joins question and answer of MultiRC and builds the query of WSC.
"""

import re

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.settings import TaskSettings
from hatchery.evaluation.json_lines import Record, read_json_lines
from hatchery.evaluation.tasks.example import Example, TaskData
from hatchery.evaluation.tasks.formats.common import label_index, task_files
from hatchery.storage.sources import RawSource

PLACEHOLDER = re.compile(r"\{(\w+)\}")


def read_glue_jsonl(source: RawSource, task: TaskSettings) -> TaskData:
    """All rows of the task. Raises EvaluationError naming file and line for a missing field or an unknown label."""
    return TaskData(train=_rows(source, task, "train"), validation=_rows(source, task, "validation"))


def _rows(source: RawSource, task: TaskSettings, key: str) -> list[Example]:
    return [
        _example(record, task) for name in task_files(source, task, key) for record in read_json_lines(source, name)
    ]


def _example(record: Record, task: TaskSettings) -> Example:
    if task.label_field not in record.values:
        raise EvaluationError(f"{record.where}: the label field {task.label_field!r} is missing")
    return Example(
        segments=tuple(segment_text(record, field) for field in task.fields),
        label=label_index(record.values[task.label_field], task, record.where),
    )


def segment_text(record: Record, field: str) -> str:
    """The text of a field, or a template with `{name}` filled from the record's fields."""
    if "{" not in field:
        return record.text(field)
    return PLACEHOLDER.sub(lambda match: record.text(match.group(1)), field)
