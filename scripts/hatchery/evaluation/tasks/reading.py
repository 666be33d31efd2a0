"""A labelled task as lists of examples, read through one of the formats and cut to the wanted size.

The validation rows are the test set of the papers: training and selection never see them.
"""

from collections.abc import Callable, Sequence

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.settings import TaskSettings
from hatchery.evaluation.seeds import generator
from hatchery.evaluation.tasks.example import Example, TaskData
from hatchery.evaluation.tasks.formats.glue_jsonl import read_glue_jsonl
from hatchery.evaluation.tasks.formats.labelled_lines import read_labelled_lines
from hatchery.evaluation.tasks.formats.rte_xml import read_rte_xml
from hatchery.storage.sources import RawSource

FORMATS: dict[str, Callable[[RawSource, TaskSettings], TaskData]] = {
    "glue_jsonl": read_glue_jsonl,
    "labelled_lines": read_labelled_lines,
    "rte_xml": read_rte_xml,
}


def read_task(source: RawSource, task: TaskSettings) -> TaskData:
    """Read a task's rows and apply its limits.

    Raises EvaluationError naming file and line for wrong data, and when the training rows have fewer than two labels.
    """
    data = FORMATS[task.format](source, task)
    data = TaskData(
        train=limited(data.train, task.train_limit, task.split_seed, "train limit"),
        validation=limited(data.validation, task.validation_limit, task.split_seed, "validation limit"),
    )
    for part, examples in (("training", data.train), ("validation", data.validation)):
        if not examples:
            raise EvaluationError(f"{source.root}: the task {task.name!r} has no {part} rows")
    if len({example.label for example in data.train}) < 2:
        only = task.label_names[data.train[0].label]
        raise EvaluationError(f"{source.root}: all training rows of the task {task.name!r} have the label {only!r}")
    return data


def limited(examples: Sequence[Example], limit: int | None, seed: int, purpose: str) -> list[Example]:
    """At most `limit` examples drawn with `seed`, in their original order; a smaller draw lies inside a larger one."""
    if limit is None or limit >= len(examples):
        return list(examples)
    chosen = generator(seed, purpose).permutation(len(examples))[:limit]
    return [examples[index] for index in sorted(chosen.tolist())]
