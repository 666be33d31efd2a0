"""Plain text with one example per line and one file (or set of files) per label.

Made for collections such as the subjectivity data set (Pang and Lee 2004) that come without a split: the validation
rows are drawn here with the task's `split_seed`, equal lines staying together.
"""

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.settings import TaskSettings
from hatchery.evaluation.json_lines import decode_lines
from hatchery.evaluation.seeds import generator
from hatchery.evaluation.splits import hold_out, input_groups
from hatchery.evaluation.tasks.example import Example, TaskData
from hatchery.evaluation.tasks.formats.common import label_index, task_files
from hatchery.storage.sources import RawSource


def read_labelled_lines(source: RawSource, task: TaskSettings) -> TaskData:
    """All lines of the task, labels in the configured order. Raises EvaluationError naming an unreadable file."""
    examples: list[Example] = []
    for label in task.label_names:
        index = label_index(label, task, f"{source.root}")
        for name in task_files(source, task, label):
            texts = [" ".join(text.split()) for _, text in decode_lines(source, name)]
            if not texts:
                raise EvaluationError(f"{name}: the file holds no lines")
            examples.extend(Example((text,), index) for text in texts)
    kept, held = hold_out(
        input_groups(examples), task.validation_fraction, generator(task.split_seed, "validation"), str(source.root)
    )
    return TaskData(train=[examples[index] for index in kept], validation=[examples[index] for index in held])
