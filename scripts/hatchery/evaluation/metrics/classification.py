"""Metrics of classification and regression. The values of the classification metrics equal scikit-learn's to the last
bit.

Scikit-learn is not used: its import would take a second in every fine-tuning job, and the formulas are short
(docs/papers/babylm-evaluation.md, "Tasks").

Classes are int64 [n]. For independent labels (bool [n, K], edge probing), only `accuracy`, `f1`, `majority_accuracy`,
`micro_f1`, `clean_micro_f1`, and metrics that are computed from these five, are defined. All values are fractions (MCC
and correlations from -1 to 1), and 0/0 is 0. The label -1 is a label outside the model's label set; it equals no
prediction.
"""

import warnings

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.scored import Scored, metric, one_each

POSITIVE_CLASS = 1


def independent(scored: Scored) -> bool:
    """Return True if each row has K independent yes-or-no labels, which are stored as bool [n, K]."""
    return scored.labels.dtype == np.bool_ and scored.labels.ndim == 2


def classes(scored: Scored, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and predictions, int64 [n]. Raises EvaluationError naming the metric if the labels are not
    classes."""
    return one_each(scored, name, "iu", "class")


@metric
def accuracy(scored: Scored) -> float:
    """Fraction of the rows with a correct prediction.

    With independent labels, a row is correct if the label with the highest score is true. This accuracy is thus
    comparable with the accuracy of a softmax over the labels. `micro_f1` is not comparable with this accuracy, because
    `micro_f1` compares each score with a threshold.
    """
    if independent(scored):
        best = scored.scores.argmax(axis=1)
        return float(scored.labels[np.arange(len(best)), best].mean())
    labels, predictions = classes(scored, "accuracy")
    return float((labels == np.where(labels < 0, 0, predictions)).mean())


@metric
def f1(scored: Scored) -> float:
    """F1 of the class with index 1, or of the label with index 1 if labels are independent: 2TP / (2TP + FP + FN). As
    in BabyLM and ELC-BERT, it is not a macro average. Raises EvaluationError if there is only one independent label.
    """
    if independent(scored):
        if scored.labels.shape[1] <= POSITIVE_CLASS:
            raise EvaluationError("metric f1: got one independent label, expected two or more")
        labels, predictions = scored.labels[:, POSITIVE_CLASS], scored.predictions[:, POSITIVE_CLASS]
    else:
        labels, predictions = (values == POSITIVE_CLASS for values in classes(scored, "f1"))
    return _f1(labels, predictions)


@metric
def accuracy_or_f1(scored: Scored) -> float:
    """F1 of the second class if the task has two labels, accuracy if the task has more labels. BabyLM's multilingual
    track reports this metric."""
    return f1(scored) if len(scored.label_names) == POSITIVE_CLASS + 1 else accuracy(scored)


@metric
def macro_f1(scored: Scored) -> float:
    """Unweighted mean of the F1 of every class that occurs among the labels or the predictions (SuperGLUE's CB)."""
    labels, predictions = classes(scored, "macro_f1")
    return float(np.mean([_f1(labels == label, predictions == label) for label in np.union1d(labels, predictions)]))


def _f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the F1 of yes-or-no decisions, bool [n]."""
    decisions = int(labels.sum()) + int(predictions.sum())
    return 2 * int((labels & predictions).sum()) / decisions if decisions else 0.0


@metric
def mcc(scored: Scored) -> float:
    """Matthews correlation coefficient (Gorodkin's R_K for more than two classes).

    On MSGS' disambiguating rows, against the linguistic label, the coefficient is the Linguistic Bias Score
    (docs/papers/babylm-evaluation.md, "MSGS").
    """
    labels, predictions = classes(scored, "mcc")
    found = np.union1d(labels, predictions)
    # Sums of integers are exact in float64, so the order of the rows does not change the result.
    truly, said = (np.array([(c == values).sum() for c in found], np.float64) for values in (labels, predictions))
    rows, right = float(len(labels)), float((labels == predictions).sum())
    spread = (rows**2 - said @ said) * (rows**2 - truly @ truly)
    return float((right * rows - truly @ said) / np.sqrt(spread)) if spread else 0.0


@metric
def mean_of_accuracy_and_f1(scored: Scored) -> float:
    """Mean of accuracy and F1. For MRPC and QQP, the reduced-vocabulary study reports only this mean.

    Source: docs/papers/reduced-vocabulary.md, "Fine-tuning".
    """
    return (accuracy(scored) + f1(scored)) / 2


@metric
def majority_accuracy(scored: Scored) -> float:
    """Accuracy of a baseline that predicts the most frequent label for every row."""
    if independent(scored):
        return float(scored.labels.mean(axis=0).max())
    _, counts = np.unique(scored.labels[scored.labels >= 0], return_counts=True)
    return float(counts.max() / len(scored.labels)) if len(counts) else 0.0


def _numbers(scored: Scored, name: str) -> tuple[np.ndarray, np.ndarray]:
    return one_each(scored, name, "f", "number")


def _is_constant(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


@metric
def pearson(scored: Scored) -> float:
    """Pearson's correlation; 0 if labels or predictions are constant, NaN if a value is NaN."""
    from scipy import stats

    labels, predictions = _numbers(scored, "pearson")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    with warnings.catch_warnings():
        # `scored_sets.failure` reports a run with nearly constant predictions, so SciPy's warning about them is
        # suppressed.
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(stats.pearsonr(labels, predictions).statistic)


@metric
def spearman(scored: Scored) -> float:
    """Spearman's rank correlation, ties averaged; 0 if labels or predictions are constant, NaN if a value is NaN."""
    from scipy import stats

    labels, predictions = _numbers(scored, "spearman")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(stats.spearmanr(labels, predictions).statistic)


@metric
def mean_of_pearson_and_spearman(scored: Scored) -> float:
    """Mean of Pearson's and Spearman's correlation. For STS-B, the reduced-vocabulary study reports only this mean.

    Source: docs/papers/reduced-vocabulary.md, "Fine-tuning".
    """
    return (pearson(scored) + spearman(scored)) / 2
