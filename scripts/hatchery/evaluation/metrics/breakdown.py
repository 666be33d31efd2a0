"""Accuracy broken down by what is known about the rows: HANS by heuristic and gold label, subcase and template.

These are the three levels that HANS' scorer prints (docs/papers/ltg-bert.md, "HANS"); the six cells of heuristic and
gold label tell an overlap heuristic, near 100 and 0, from a model that guesses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.classification import classes
from hatchery.evaluation.metrics.scored import Scored

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
    """For each fact and each of its values, sorted: all rows, then the rows of every label that occurs among them.

    `label_names` are in the order of the classes. Raises EvaluationError where a row lacks a fact.
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
