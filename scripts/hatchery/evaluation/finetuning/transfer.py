"""The classes of one task's model as the labels of another task: MNLI's three as HANS' two (evaluation.md 7).

The benchmark merges neutral with contradiction, LTG-BERT's released script with entailment; and one may map the most
probable class, or compare summed probabilities. Both choices are values of `TransferSettings`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from hatchery.errors import ConfigError
from hatchery.evaluation.finetuning.predicting import Predicted
from hatchery.evaluation.tasks.settings import TaskSettings, TransferRule, label_text


@dataclass(frozen=True)
class LabelMapping:
    """`membership` bool [classes of the model, labels of the other task] has one True in every row."""

    membership: np.ndarray
    rule: TransferRule

    def apply(self, predicted: Predicted) -> Predicted:
        """Predictions int64 [n], and as scores the summed probabilities float32 [n, labels], under either rule."""
        sums = softmax(predicted.scores.astype(np.float64), axis=1) @ self.membership
        if self.rule == "most_probable":
            predictions = self.membership.argmax(axis=1)[predicted.predictions]
        else:
            predictions = sums.argmax(axis=1)
        return Predicted(predictions.astype(np.int64), sums.astype(np.float32))


def label_mapping(task: TaskSettings, model_labels: Sequence[str]) -> LabelMapping:
    """How a model with `model_labels` answers `task`.

    Raises ConfigError when the task does not say, and unless each label of the model counts as exactly one of its own.
    """
    where = f"finetune.transfer.{task.name}"
    if task.transfer is None:
        raise ConfigError(f"{where}: the task has no transfer, expected which labels count as its own")
    if set(task.transfer.labels) != set(task.label_names):
        raise ConfigError(
            f"{where}.labels: got {', '.join(task.transfer.labels)}, expected the task's labels "
            f"{', '.join(task.label_names)}"
        )
    membership = np.zeros((len(model_labels), len(task.label_names)), dtype=bool)
    for column, name in enumerate(task.label_names):
        for value in task.transfer.labels[name]:
            if label_text(value) not in model_labels:
                raise ConfigError(f"{where}.labels.{name}: got {value!r}, the model has {', '.join(model_labels)}")
            membership[model_labels.index(label_text(value)), column] = True
    for row, name in enumerate(model_labels):
        if membership[row].sum() != 1:
            times = int(membership[row].sum())
            raise ConfigError(f"{where}.labels: the model's label {name!r} is listed {times} times, expected once")
    return LabelMapping(membership, task.transfer.rule)
