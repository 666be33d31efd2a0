"""The sets of rows on which a run is scored. A set contains the labels, groups and further texts that metrics need, and
marks the rows that enter a metric.

A set is a split of the task itself (validation, mismatched), or the rows of another task that the model is scored on
without training (a transfer, such as MNLI to HANS). All rows are predicted and stored, but only scored rows enter a
metric (in MSGS, rows with `condition: test`; docs/papers/babylm-evaluation.md, "MSGS").

In a transfer, classes of one task are mapped to labels of another: MNLI's three classes to HANS' two labels
(docs/papers/ltg-bert.md, "HANS"). The scorer of HANS merges neutral with contradiction, and LTG-BERT's published script
merges neutral with entailment. There are two rules: the most probable class is mapped, or the probabilities of merged
classes are added before the comparison. `TransferSettings` contains the mapping and the rule.

A run that gives the same answer for every row counts as failed. Its score stays in means over runs
(`analysis.aggregates`), because published averages contain such scores: 61.4 % on WSC is the score of a constant answer
(ELC-BERT, Table 9). A diverged run (NaN) is left out of means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.finetuning.batches import EncodedData, Predicted
from hatchery.evaluation.metrics import Failure
from hatchery.evaluation.metrics.classification import classes, independent, mcc
from hatchery.evaluation.metrics.grouped import margins
from hatchery.evaluation.metrics.scored import Scored, metric_called
from hatchery.evaluation.probing.encoding import EncodedSpans
from hatchery.evaluation.tasks.example import Example, SpanExample
from hatchery.evaluation.tasks.settings import TaskSettings, TransferRule, label_text

# Predictions of a regression model count as constant if their range is below this fraction of the range of the labels.
CONSTANT_SHARE = 1e-3


def failure(scored: Scored) -> Failure:
    """Return the kind of collapse of a model's outputs; an empty text if they are usable. If all labels are equal, only
    `nan` is detected.

    - `nan`: a score, or a number that a regression model predicts, is not finite.
    - `majority_class`: all predictions are equal although the labels vary.
    - `zero_mcc`: the predicted classes vary, but have no correlation with the labels (not tested if each row has
      several independent yes-or-no labels).
    - `constant`: all numbers that a regression model predicts are equal or almost equal (CONSTANT_SHARE), or all scores
      of ReCoRD's entities are equal.

    ReCoRD's entities are ranked by their scores, so a model that predicts class 0 for every row has not failed on
    ReCoRD.
    """
    if not np.isfinite(scored.scores).all():
        return "nan"
    if not _varies(scored.labels):
        return ""
    if np.issubdtype(scored.labels.dtype, np.floating):
        if not np.isfinite(scored.predictions).all():
            return "nan"
        return "constant" if np.ptp(scored.predictions) < CONSTANT_SHARE * np.ptp(scored.labels) else ""
    if scored.facts and "entity" in scored.facts[0]:
        return "constant" if np.ptp(margins(scored)) == 0 else ""
    if not _varies(scored.predictions):
        return "majority_class"
    return "zero_mcc" if not independent(scored) and abs(mcc(scored)) < 1e-12 else ""


def _varies(values: np.ndarray) -> bool:
    return bool((values != values[:1]).any())


ALL_LABELS = ""


@dataclass(frozen=True)
class FactAccuracy:
    """Accuracy, a fraction, on the `n` rows whose field `fact` has the value `value` and whose label is `label` (empty:
    any label).
    """

    fact: str
    value: str
    label: str
    n: int
    accuracy: float


def accuracy_by_fact(scored: Scored, facts: Sequence[str], label_names: Sequence[str]) -> list[FactAccuracy]:
    """Return accuracies for each value of each field in `facts`; values are sorted. The first accuracy of a value is
    over all its rows, and one accuracy follows for each label of these rows.

    HANS' scorer prints the same accuracies (docs/papers/ltg-bert.md, "HANS"). For a model that follows an overlap
    heuristic, the accuracy is near 100 % for one gold label and near 0 % for the other. The accuracies of a model that
    guesses are not so far apart.

    `label_names` are in the order of the classes. Raises EvaluationError if a row lacks a field, and if the labels are
    not classes.
    """
    if not facts:
        return []
    labels, predictions = classes(scored, "accuracy by fact")
    right = (labels == predictions) & (labels >= 0)
    rows = []
    for fact in facts:
        if len(scored.facts) != len(labels) or not all(fact in known for known in scored.facts):
            raise EvaluationError(
                f"accuracy by {fact!r}: a row has no field {fact!r}, expected the task's `facts` in every row"
            )
        values, members = np.unique(np.array([known[fact] for known in scored.facts]), return_inverse=True)
        for position, value in enumerate(values.tolist()):
            chosen = members == position
            rows.append(_row(fact, value, ALL_LABELS, right[chosen]))
            rows += [
                _row(fact, value, name, right[chosen & (labels == label)])
                for label, name in enumerate(label_names)
                if (chosen & (labels == label)).any()
            ]
    return rows


def _row(fact: str, value: str, label: str, right: np.ndarray) -> FactAccuracy:
    return FactAccuracy(fact, value, label, len(right), float(right.mean()))


@dataclass(frozen=True)
class LabelMapping:
    """A mapping from a model's classes to the labels of a task on which the model is scored without training.

    `membership` bool [classes of the model, labels of the scored task] has one True in every row.
    """

    membership: np.ndarray
    rule: TransferRule

    def apply(self, predicted: Predicted) -> Predicted:
        """Return the predicted labels of the task on which the model is scored without training, int64 [n], and the
        labels' scores, float32 [n, labels]. The mapping's field `rule` determines the predicted label. The score of a
        label is the sum of the probabilities of all classes that are mapped to this label.
        """
        from scipy.special import softmax

        sums = softmax(predicted.scores.astype(np.float64), axis=1) @ self.membership
        if self.rule == "most_probable":
            predictions = self.membership.argmax(axis=1)[predicted.predictions]
        else:
            predictions = sums.argmax(axis=1)
        return Predicted(predictions.astype(np.int64), sums.astype(np.float32))


def label_mapping(task: TaskSettings, model_labels: Sequence[str]) -> LabelMapping:
    """Return the mapping from `model_labels` to the labels of `task`.

    Raises ConfigError if the task defines no transfer, if the transfer's keys are not the task's labels, if the
    transfer lists a label that the model does not have, and if a label of the model is not mapped to exactly one label
    of the task.
    """
    where = f"finetune.transfer.{task.name}"
    if task.transfer is None:
        raise ConfigError(
            f"{where}: the task has no key `transfer`, expected this key, which lists for each label of this task the "
            "labels of the fine-tuned task that count as this label"
        )
    if set(task.transfer.labels) != set(task.label_names):
        raise ConfigError(
            f"{where}.labels: got {', '.join(task.transfer.labels)}, expected the task's labels "
            f"{', '.join(task.label_names)}"
        )
    membership = np.zeros((len(model_labels), len(task.label_names)), dtype=bool)
    for column, name in enumerate(task.label_names):
        for value in task.transfer.labels[name]:
            if label_text(value) not in model_labels:
                raise ConfigError(
                    f"{where}.labels.{name}: got {value!r}, expected a label of the fine-tuned model: "
                    f"{', '.join(model_labels)}"
                )
            membership[model_labels.index(label_text(value)), column] = True
    for row, name in enumerate(model_labels):
        if membership[row].sum() != 1:
            times = int(membership[row].sum())
            raise ConfigError(f"{where}.labels: the model's label {name!r} is listed {times} times, expected once")
    return LabelMapping(membership, task.transfer.rule)


@dataclass(frozen=True)
class ScoredSet:
    """One set of rows on which a model is scored. A unit is a row or, for sentences with spans, a target in a sentence.

    `is_scored`, bool [units], is True for the units that enter the metrics. `groups` are the names of groups, such as
    questions, whose rows are evaluated together. `facts` are fields of the rows that metrics read, in addition to the
    labels. `groups` and `facts` have one entry per unit, and are empty for sentences with spans. `label_names` are the
    labels of the set's task, empty for a task without named labels.
    """

    name: str
    task: TaskSettings
    label_names: tuple[str, ...]
    data: EncodedData
    is_scored: np.ndarray
    groups: Sequence[str] = ()
    facts: Sequence[Mapping[str, str]] = ()
    mapping: LabelMapping | None = None

    @property
    def labels(self) -> np.ndarray:
        """Labels of all units of the set (rows, or targets in sentences); see `EncodedData.labels`."""
        return self.data.labels

    def subset(self, items: Sequence[int]) -> "ScoredSet":
        """Return the scored set of the items with the indices `items`."""
        data = self.data.subset(items)
        if not self.facts:
            return replace(self, data=data, is_scored=np.ones(data.n_units, dtype=bool))
        groups, facts = [self.groups[item] for item in items], [self.facts[item] for item in items]
        return replace(self, data=data, is_scored=self.is_scored[list(items)], groups=groups, facts=facts)

    def answers(self, predicted: Predicted) -> Predicted:
        """Convert a model's predicted classes and their scores to labels of this set's task and scores of these labels.
        Return `predicted` unchanged if the set has no label mapping.
        """
        return predicted if self.mapping is None else self.mapping.apply(predicted)

    def scored(self, answers: Predicted, all_rows: bool = False) -> Scored:
        """Return labels, predictions and scores of the rows (or targets in sentences) that enter the metrics. If
        `all_rows` is true, return labels, predictions and scores of all rows.
        """
        chosen = np.flatnonzero(self.is_scored | all_rows)
        labels = self.labels[chosen]
        return Scored(
            labels=labels.astype(np.float64) if answers.predictions.dtype.kind == "f" else labels,
            predictions=answers.predictions[chosen],
            scores=answers.scores[chosen],
            groups=[self.groups[index] for index in chosen.tolist()] if self.groups else (),
            facts=[self.facts[index] for index in chosen.tolist()] if self.facts else (),
            label_names=self.label_names,
        )

    def values(self, answers: Predicted) -> dict[str, float]:
        """Return the values of the task's metrics, by name, on the rows (or targets in sentences) that enter the
        metrics.
        """
        scored = self.scored(answers)
        return {name: metric_called(name)(scored) for name in self.task.metrics}

    def failure(self, answers: Predicted) -> Failure:
        """Return the kind of collapse of the predictions in `answers`; an empty text if they are usable."""
        return failure(self.scored(answers))

    def breakdown(self, answers: Predicted) -> list[FactAccuracy]:
        """Return the accuracy for each value of each field in the task's `facts`; empty for a task without `facts`."""
        return accuracy_by_fact(self.scored(answers), self.task.facts, self.label_names)

    @property
    def majority_accuracy(self) -> float | None:
        """Return the accuracy of the most frequent label on the rows (or targets in sentences) that enter the metrics;
        None for regression.
        """
        labels = self.labels[self.is_scored]
        if labels.dtype.kind == "f":
            return None
        return metric_called("majority_accuracy")(Scored(labels, labels, np.empty((len(labels), 0))))


OFFICIAL_SCORED_BATCH = 8
"""Batch size for validation rows in the trainer of the multilingual track, which drops the last incomplete batch."""


def whole_batches(found: ScoredSet) -> ScoredSet:
    """Mark the rows after the last complete batch of 8 as not scored, and return the set. A set of sentences with spans
    is returned unchanged.

    Raises EvaluationError for a set of fewer than 8 rows.
    """
    if isinstance(found.data, EncodedSpans):
        return found
    n_rows = len(found.is_scored)
    n_whole = n_rows - n_rows % OFFICIAL_SCORED_BATCH
    if n_whole == 0:
        raise EvaluationError(
            f"{found.task.name}: the set {found.name!r} has {n_rows} rows, expected at least {OFFICIAL_SCORED_BATCH} "
            "if `official` is true, because the last incomplete batch is dropped"
        )
    return replace(found, is_scored=found.is_scored & (np.arange(n_rows) < n_whole))


def scored_set(
    name: str,
    task: TaskSettings,
    label_names: tuple[str, ...],
    data: EncodedData,
    rows: Sequence[Example] | Sequence[SpanExample],
    mapping: LabelMapping | None = None,
) -> ScoredSet:
    """Return encoded rows as a scored set. In sentences with spans, every target (a labelled span or pair of spans) is
    scored.
    """
    examples = [row for row in rows if isinstance(row, Example)]
    if not examples:
        return ScoredSet(name, task, label_names, data, np.ones(data.n_units, dtype=bool), mapping=mapping)
    return ScoredSet(
        name,
        task,
        label_names,
        data,
        np.array([example.scored for example in examples]),
        [example.group for example in examples],
        [example.facts for example in examples],
        mapping,
    )
