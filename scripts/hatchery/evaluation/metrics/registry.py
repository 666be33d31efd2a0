"""The metrics by name: what a task's configuration chooses from. The first one that a task names stands for it.

A metric looks at the rows of one scored set (`Scored`) and raises EvaluationError where they are not what it measures.
Here are also correlations of predicted with true numbers, computed by SciPy (STS-B), and the micro-averaged F1 of edge
probing (Tenney et al. 2019; docs/papers/ltg-bert.md, "Records of edge probing"): every pair of a target and a label is
one yes-or-no decision, taken at probability one half, which is score 0. The later variants of jiant (threshold at score
0.5, mean with accuracy) are not this metric.
"""

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics import classification, grouped
from hatchery.evaluation.metrics.classification import accuracy, classes, independent
from hatchery.evaluation.metrics.scored import Metric, Scored, one_each


def _numbers(scored: Scored, metric: str) -> tuple[np.ndarray, np.ndarray]:
    return one_each(scored, metric, "f", "number")


def _is_constant(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


def pearson(scored: Scored) -> float:
    """Pearson's correlation; 0 where one side is constant, NaN where a number is."""
    from scipy import stats

    labels, predictions = _numbers(scored, "pearson")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    with warnings.catch_warnings():
        # A run near collapse is told by `collapse.failure`, not by a line on stderr.
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(stats.pearsonr(labels, predictions).statistic)


def spearman(scored: Scored) -> float:
    """Spearman's correlation of ranks, ties averaged; 0 where one side is constant, NaN where a number is."""
    from scipy import stats

    labels, predictions = _numbers(scored, "spearman")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(stats.spearmanr(labels, predictions).statistic)


def mean_of_pearson_and_spearman(scored: Scored) -> float:
    """Mean of both, the one value of STS-B in the reduced-vocabulary study (docs/papers/reduced-vocabulary.md,
    "Fine-tuning")."""
    return (pearson(scored) + spearman(scored)) / 2


# Continued and reference arguments of SRL (C-ARG1, R-ARG0), which the "clean" value leaves out.
UNCLEAN_PREFIXES = ("C-", "R-")


def micro_f1(scored: Scored) -> float:
    """F1 over all decisions pooled; with one class per target it equals the accuracy.

    A target without any label that holds is one whose label the model does not know: it counts as missed, so that the
    value does not grow when unknown labels are dropped.
    """
    if not independent(scored):
        return accuracy(scored)
    unknown = int((~scored.labels.any(axis=1)).sum())
    return _pooled_f1(scored.labels, scored.predictions, unknown)


def clean_micro_f1(scored: Scored) -> float:
    """`micro_f1` without the decisions about labels that begin with C- or R-.

    Raises EvaluationError where `scored` does not name its labels.
    """
    names = scored.label_names
    if not names:
        raise EvaluationError("metric clean_micro_f1: the labels have no names, expected those of SRL's roles")
    kept = np.array([not name.startswith(UNCLEAN_PREFIXES) for name in names])
    if independent(scored):
        unknown = int((~scored.labels.any(axis=1)).sum())
        return _pooled_f1(scored.labels[:, kept], scored.predictions[:, kept], unknown)
    labels, predictions = classes(scored, "clean_micro_f1")
    is_known = labels >= 0
    true_positive = int((is_known & (labels == predictions) & kept[predictions]).sum())
    decisions = int(kept[labels[is_known]].sum()) + int((~is_known).sum()) + int(kept[predictions].sum())
    return 2 * true_positive / decisions if decisions else 0.0


def _pooled_f1(labels: np.ndarray, predictions: np.ndarray, missed: int) -> float:
    true_positive = int((labels & predictions).sum())
    decisions = int(labels.sum()) + int(predictions.sum()) + missed
    return 2 * true_positive / decisions if decisions else 0.0


@dataclass(frozen=True)
class MetricDefinition:
    """One entry of the registry: values from 0 to 1 (fraction) or from -1 to 1 (correlation)."""

    function: Metric
    unit: Literal["fraction", "correlation"]
    description: str


METRICS: dict[str, MetricDefinition] = {
    "accuracy": MetricDefinition(classification.accuracy, "fraction", "Share of right rows."),
    "f1": MetricDefinition(classification.f1, "fraction", "F1 of the second label."),
    "macro_f1": MetricDefinition(classification.macro_f1, "fraction", "Mean of the F1 of all classes."),
    "mcc": MetricDefinition(classification.mcc, "correlation", "Matthews correlation; on MSGS the bias score."),
    "mean_of_accuracy_and_f1": MetricDefinition(
        classification.mean_of_accuracy_and_f1, "fraction", "MRPC and QQP in the reduced-vocabulary study."
    ),
    "majority_accuracy": MetricDefinition(
        classification.majority_accuracy, "fraction", "Accuracy of the most frequent label; looks at no prediction."
    ),
    "pearson": MetricDefinition(pearson, "correlation", "Correlation of numbers."),
    "spearman": MetricDefinition(spearman, "correlation", "Correlation of ranks."),
    "mean_of_pearson_and_spearman": MetricDefinition(
        mean_of_pearson_and_spearman, "correlation", "STS-B in the reduced-vocabulary study."
    ),
    "question_exact_match": MetricDefinition(
        grouped.question_exact_match, "fraction", "Share of MultiRC's questions with all answers judged right."
    ),
    "answer_f1": MetricDefinition(grouped.answer_f1, "fraction", "F1 over all answers of MultiRC (F1a)."),
    "record_f1": MetricDefinition(grouped.record_f1, "fraction", "Token F1 of ReCoRD's best-scored entities."),
    "record_exact_match": MetricDefinition(
        grouped.record_exact_match, "fraction", "Share of ReCoRD's best-scored entities that are answers."
    ),
    "micro_f1": MetricDefinition(micro_f1, "fraction", "F1 over all decisions of edge probing."),
    "clean_micro_f1": MetricDefinition(
        clean_micro_f1, "fraction", "The same without SRL's continued and reference arguments."
    ),
}
