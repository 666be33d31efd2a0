"""The files of a set: patterns of the task against the names of its source."""

from hatchery.errors import EvaluationError
from hatchery.evaluation.tasks.settings import TaskSettings
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


def check_disjoint(source: RawSource, task: TaskSettings) -> None:
    """Raise EvaluationError when a file of the training set is also one of a scored set."""
    training = set(task_files(source, task, "train")) if "train" in task.files else set()
    for key in task.files:
        shared = training.intersection(task_files(source, task, key)) if key != "train" else ()
        if shared:
            raise EvaluationError(
                f"{source.root}: {min(shared)!r} is both a training and a {key!r} file of the task {task.name!r}"
            )
