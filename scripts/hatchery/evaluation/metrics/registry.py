"""The metrics by name: what a task's configuration chooses from. The first one that a task names stands for it.

A metric looks at the rows of one scored set (`Scored`) and raises EvaluationError where they are not what it measures.
"""

from dataclasses import dataclass
from typing import Literal

from hatchery.evaluation.metrics import classification, grouped, regression, spans
from hatchery.evaluation.metrics.scored import Metric


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
    "pearson": MetricDefinition(regression.pearson, "correlation", "Correlation of numbers."),
    "spearman": MetricDefinition(regression.spearman, "correlation", "Correlation of ranks."),
    "mean_of_pearson_and_spearman": MetricDefinition(
        regression.mean_of_pearson_and_spearman, "correlation", "STS-B in the reduced-vocabulary study."
    ),
    "question_exact_match": MetricDefinition(
        grouped.question_exact_match, "fraction", "Share of MultiRC's questions with all answers judged right."
    ),
    "answer_f1": MetricDefinition(grouped.answer_f1, "fraction", "F1 over all answers of MultiRC (F1a)."),
    "record_f1": MetricDefinition(grouped.record_f1, "fraction", "Token F1 of ReCoRD's best-scored entities."),
    "record_exact_match": MetricDefinition(
        grouped.record_exact_match, "fraction", "Share of ReCoRD's best-scored entities that are answers."
    ),
    "micro_f1": MetricDefinition(spans.micro_f1, "fraction", "F1 over all decisions of edge probing."),
    "clean_micro_f1": MetricDefinition(
        spans.clean_micro_f1, "fraction", "The same without SRL's continued and reference arguments."
    ),
}
