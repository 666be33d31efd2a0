"""Metrics of classification, computed by scikit-learn, and the signs that a run has collapsed.

Labels and predictions are integer arrays of class indices. All values are fractions (MCC from -1 to 1). The reading
of BabyLM and ELC-BERT holds for `f1`: the F1 of the positive class, index 1, not a macro average.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

Failure = Literal["", "majority_class", "nan", "zero_mcc"]


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Share of the rows that are right."""
    return float(accuracy_score(labels, predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """F1 of the class with index 1: 2TP / (2TP + FP + FN), and 0 where that is 0/0."""
    return float(f1_score(labels == 1, predictions == 1, zero_division=0.0))


def macro_f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Unweighted mean of the F1 of every class that occurs among the labels or the predictions."""
    return float(f1_score(labels, predictions, average="macro", zero_division=0.0))


def mcc(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Matthews correlation coefficient (Gorodkin's R_K for more than two classes), 0 where it is 0/0."""
    # One distinct class makes scikit-learn warn about the shape of its confusion matrix.
    if len(np.union1d(labels, predictions)) < 2:
        return 0.0
    return float(matthews_corrcoef(labels, predictions))


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": accuracy,
    "f1": f1,
    "macro_f1": macro_f1,
    "mcc": mcc,
}


def failure(labels: np.ndarray, predictions: np.ndarray) -> Failure:
    """Why predictions say that training collapsed, or an empty string.

    `majority_class`: one class for every row although the labels vary (the 61.4 % on WSC in the papers' tables);
    `zero_mcc`: predictions that vary without any correlation. A run without finite predictions (`nan`) is told by
    the training loop.
    """
    if len(np.unique(labels)) < 2:
        return ""
    if len(np.unique(predictions)) == 1:
        return "majority_class"
    return "zero_mcc" if abs(mcc(labels, predictions)) < 1e-12 else ""
