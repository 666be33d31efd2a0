"""The formats that give records, by name: which sets a task's files make, and how a file is read.

A set is patterns of the task against the names of its source. The formats of edge probing (`jiant`, `conllu`,
`conll2012`) give sentences with spans instead; `probing.formats` reads those.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.tasks.formats.rows import read_rows
from hatchery.evaluation.tasks.formats.rte import LINE_FIELDS, RTE_FIELDS, read_labelled_lines, read_rte_xml
from hatchery.evaluation.tasks.settings import Format, TaskSettings
from hatchery.raw.registration import RawSource


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


@dataclass(frozen=True)
class FormatDefinition:
    """One entry of the registry.

    `read` gives the records of one file: `read(source, task, key of the task's files, name, wanted fields)`. `fields`
    are the text fields of tasks that name none. Where `files_by_label`, the keys of the task's files are its labels,
    and all of them together are its training set.
    """

    read: Callable[[RawSource, TaskSettings, str, str, Collection[str]], Iterator[Record]]
    fields: tuple[str, ...] = ()
    files_by_label: bool = False


FORMATS: dict[Format, FormatDefinition] = {
    "rows": FormatDefinition(lambda source, task, key, name, wanted: read_rows(source, name, task.columns, wanted)),
    "rte_xml": FormatDefinition(lambda source, task, key, name, wanted: read_rte_xml(source, name), RTE_FIELDS),
    "labelled_lines": FormatDefinition(
        lambda source, task, key, name, wanted: read_labelled_lines(source, name, key),
        LINE_FIELDS,
        files_by_label=True,
    ),
}


def text_fields(task: TaskSettings) -> tuple[str, ...]:
    """The fields or templates that the task names, or those that its format gives."""
    return task.fields or FORMATS[task.format].fields


def set_names(task: TaskSettings) -> list[str]:
    """The sets that the task's files make, "train" first, then the scored ones in their order, "validation" first."""
    if FORMATS[task.format].files_by_label:
        return ["train"]
    order = {"train": 0, "validation": 1}
    return sorted(task.files, key=lambda name: order.get(name, 2))


def read_records(
    source: RawSource, task: TaskSettings, name: str, wanted: Collection[str]
) -> Iterator[Iterator[Record]]:
    """The records of the set called `name`, one iterator per file, the files in their order."""
    definition = FORMATS[task.format]
    for key in task.label_names if definition.files_by_label else (name,):
        for file in task_files(source, task, key):
            yield definition.read(source, task, key, file, wanted)
