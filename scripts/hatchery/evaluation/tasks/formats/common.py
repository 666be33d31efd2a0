"""What the task formats share: finding files and turning labels into indices."""

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.settings import LabelValue, TaskSettings, label_text
from hatchery.evaluation.json_lines import shorten
from hatchery.storage.sources import RawSource


def task_files(source: RawSource, task: TaskSettings, key: str) -> list[str]:
    """Names of the files under `files.<key>`, in the configured order; patterns expand in sorted order.

    Raises EvaluationError when a pattern matches no file.
    """
    patterns = task.files[key]
    names: dict[str, None] = {}
    for pattern in (patterns,) if isinstance(patterns, str) else patterns:
        matches = source.names(pattern)
        if not matches:
            raise EvaluationError(f"{source.root}: no file matches {pattern!r}, the {key!r} files of {task.name!r}")
        names |= dict.fromkeys(matches)
    return list(names)


def label_index(value: object, task: TaskSettings, where: str) -> int:
    """The index of a label. Raises EvaluationError naming the place for a label that the task does not list."""
    text = label_text(value) if isinstance(value, LabelValue) else None
    if text not in task.label_names:
        raise EvaluationError(
            f"{where}: the label {shorten(value)} is unknown; the task lists {', '.join(task.label_names)}"
        )
    return task.label_names.index(text)
