"""The input of metrics: labels, predictions and scores of the rows that enter a metric, in the order of the files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics import FILES


@dataclass(frozen=True)
class Scored:
    """Labels, predictions and scores of n units of one scored set; a unit is a row, or a target in a sentence with
    spans.

    `labels` and `predictions` are int64 [n] (classes, correct choices), float64 [n] (regression) or bool [n, K]
    (independent labels). The label -1 means that the true label is not in the model's label set; the prediction is then
    always wrong. `scores`, float [n, K], are the head's K outputs for each unit. If the model was fine-tuned on another
    task, whose classes are mapped to this task's labels, the scores are the summed probabilities of the classes that
    are mapped to each label. Units with the same entry in `groups` belong to one group, such as a question. `facts` are
    further inputs of some metrics (see `Example`). `label_names` are the task's labels in the order of their indices,
    empty for a task without a label set.
    """

    labels: np.ndarray
    predictions: np.ndarray
    scores: np.ndarray
    groups: Sequence[str] = ()
    facts: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    label_names: Sequence[str] = ()


def one_each(scored: Scored, metric: str, kinds: str, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and predictions, both [n], after checking that their dtype has one of the NumPy kind letters
    `kinds`.

    Raises EvaluationError naming the metric and the expected value `what` (such as "class") for another dtype or shape,
    if there are no labels, and if the number of predictions differs from the number of labels.
    """
    for name, values in (("labels", scored.labels), ("predictions", scored.predictions)):
        if values.ndim != 1 or values.dtype.kind not in kinds:
            raise EvaluationError(
                f"metric {metric}: the {name} are {values.dtype} of shape {values.shape}, expected one {what} per row"
            )
    if len(scored.labels) != len(scored.predictions) or len(scored.labels) == 0:
        raise EvaluationError(
            f"metric {metric}: got {len(scored.predictions)} predictions for {len(scored.labels)} labels, expected "
            "one prediction for each label, and at least one label"
        )
    return scored.labels, scored.predictions


Metric = Callable[[Scored], float]
"""A metric: a function that returns a value from 0 to 1, or from -1 to 1 for a correlation. Raises EvaluationError for
rows on which the metric is not defined."""


def metric(function: Metric) -> Metric:
    """Mark a function as a metric that tasks may list under `metrics`; this package finds marked functions by searching
    for the text `@metric`."""
    return function


def metric_called(name: str) -> Metric:
    """Return the metric called `name`, an element of METRICS."""
    found: Metric = getattr(import_module(f"hatchery.evaluation.metrics.{FILES[name]}"), name)
    return found
