"""The sets that a run is scored on, with the labels, groups, facts and scored rows that metrics need.

A set is a file of the task itself (validation, mismatched) or a task that the model is transferred to (HANS). All units
are predicted and stored; only those that count enter a metric (MSGS: condition test; docs/papers/babylm-evaluation.md,
"MSGS").

In a transfer, classes of one task's model are mapped to labels of another: MNLI's three to HANS' two
(docs/papers/ltg-bert.md, "HANS"). The benchmark merges neutral with contradiction, LTG-BERT's released script with
entailment; the most probable class may be mapped, or summed probabilities compared. `TransferSettings` holds both
choices.

The 61.4 % on WSC in the papers' tables is the constant answer (ELC-BERT, Table 9), and their averages contain it. So a
collapsed run counts as failed and stays in the mean (`analysis.aggregates`); NaN does not.
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

# A regression's outputs count as constant if their range is below this share of the range of the labels.
CONSTANT_SHARE = 1e-3


def failure(scored: Scored) -> Failure:
    """Return the kind of collapse of the outputs, or an empty string.

    `nan`: a score is not finite. `majority_class`: one answer for every row although the labels vary. `zero_mcc`:
    classes that vary without any correlation. `constant`: numbers, or the scores of ReCoRD's entities, without
    variation. ReCoRD's entities are ranked by their scores, so predicting class 0 for every row is no failure there.
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
    """Accuracy, a fraction, of the `n` rows whose `fact` has `value` and whose label is `label` (empty: any)."""

    fact: str
    value: str
    label: str
    n: int
    accuracy: float


def accuracy_by_fact(scored: Scored, facts: Sequence[str], label_names: Sequence[str]) -> list[FactAccuracy]:
    """Return, for each field in `facts` and each of its values, sorted: the accuracy on all rows, then on the rows of
    every label.

    These are the levels that HANS' scorer prints (docs/papers/ltg-bert.md, "HANS"); the six cells of heuristic and gold
    label tell an overlap heuristic, near 100 and 0, from a model that guesses.

    `label_names` are in the order of the classes. Raises EvaluationError if a row lacks a field.
    """
    if not facts:
        return []
    labels, predictions = classes(scored, "accuracy by fact")
    right = (labels == predictions) & (labels >= 0)
    rows = []
    for fact in facts:
        if len(scored.facts) != len(labels) or not all(fact in known for known in scored.facts):
            raise EvaluationError(f"accuracy by fact: a row has no {fact!r}, expected the task's facts in every row")
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
    """A mapping from a model's classes to the labels of another task.

    `membership` bool [classes of the model, labels of the other task] has one True in every row.
    """

    membership: np.ndarray
    rule: TransferRule

    def apply(self, predicted: Predicted) -> Predicted:
        """Return predictions int64 [n], and as scores the summed probabilities float32 [n, labels], under either
        rule."""
        from scipy.special import softmax

        sums = softmax(predicted.scores.astype(np.float64), axis=1) @ self.membership
        if self.rule == "most_probable":
            predictions = self.membership.argmax(axis=1)[predicted.predictions]
        else:
            predictions = sums.argmax(axis=1)
        return Predicted(predictions.astype(np.int64), sums.astype(np.float32))


def label_mapping(task: TaskSettings, model_labels: Sequence[str]) -> LabelMapping:
    """Return the mapping from `model_labels` to the labels of `task`.

    Raises ConfigError if the task defines no transfer, and unless each label of the model is mapped to exactly one
    label of the task.
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


@dataclass(frozen=True)
class ScoredSet:
    """One scored set. `is_scored` is bool [units]; `groups` and `facts` are per unit, empty for sentences with spans.

    `label_names` are those of the set's own task, empty for a task without named labels.
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
        """Labels of all units, as in `EncodedData`."""
        return self.data.labels

    def subset(self, items: Sequence[int]) -> "ScoredSet":
        """Return the units of the items at the given positions."""
        data = self.data.subset(items)
        if not self.facts:
            return replace(self, data=data, is_scored=np.ones(data.n_units, dtype=bool))
        groups, facts = [self.groups[item] for item in items], [self.facts[item] for item in items]
        return replace(self, data=data, is_scored=self.is_scored[list(items)], groups=groups, facts=facts)

    def answers(self, predicted: Predicted) -> Predicted:
        """Return the model's outputs as answers in the labels of this set."""
        return predicted if self.mapping is None else self.mapping.apply(predicted)

    def scored(self, answers: Predicted, all_rows: bool = False) -> Scored:
        """Return the input of metrics: the units that count, or all units."""
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
        """Return the values of the task's metrics on the units that count."""
        scored = self.scored(answers)
        return {name: metric_called(name)(scored) for name in self.task.metrics}

    def failure(self, answers: Predicted) -> Failure:
        """Return the kind of collapse of these answers, or an empty string."""
        return failure(self.scored(answers))

    def breakdown(self, answers: Predicted) -> list[FactAccuracy]:
        """Return the accuracy by the values of the task's `facts`; empty if it has none."""
        return accuracy_by_fact(self.scored(answers), self.task.facts, self.label_names)

    @property
    def majority_accuracy(self) -> float | None:
        """Return the accuracy of the most frequent label on the units that count; None for regression."""
        labels = self.labels[self.is_scored]
        if labels.dtype.kind == "f":
            return None
        return metric_called("majority_accuracy")(Scored(labels, labels, np.empty((len(labels), 0))))


OFFICIAL_SCORED_BATCH = 8
"""Batch size for validation rows in the trainer of the multilingual track, which drops the last incomplete batch."""


def whole_batches(found: ScoredSet) -> ScoredSet:
    """Return the set in which the rows after its last whole batch of 8 do not count; sentences with spans all count.

    Raises EvaluationError if there is no whole batch.
    """
    if isinstance(found.data, EncodedSpans):
        return found
    n_rows = len(found.is_scored)
    n_whole = n_rows - n_rows % OFFICIAL_SCORED_BATCH
    if n_whole == 0:
        raise EvaluationError(
            f"{found.task.name}: the set {found.name!r} has {n_rows} rows, expected at least {OFFICIAL_SCORED_BATCH} "
            "with `official`, which drops the last incomplete batch"
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
    """Return the set of encoded rows; for sentences with spans every target counts."""
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
