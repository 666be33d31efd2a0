"""The micro-averaged F1 of edge probing (Tenney et al. 2019; docs/papers/ltg-bert.md, "Records of edge probing").

Every pair of a target and a label is one yes-or-no decision, taken at probability one half, which is score 0. The later
variants of jiant (threshold at score 0.5, mean with accuracy) are not this metric.
"""

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.classification import accuracy, classes, independent
from hatchery.evaluation.metrics.scored import Scored, metric

# Continued and reference arguments of SRL (C-ARG1, R-ARG0), which the "clean" value leaves out.
UNCLEAN_PREFIXES = ("C-", "R-")


@metric
def micro_f1(scored: Scored) -> float:
    """F1 over all decisions pooled; with one class per target it equals the accuracy.

    A target without any label that holds is one whose label the model does not know: it counts as missed, so that the
    value does not grow when unknown labels are dropped.
    """
    if not independent(scored):
        return accuracy(scored)
    unknown = int((~scored.labels.any(axis=1)).sum())
    return _pooled_f1(scored.labels, scored.predictions, unknown)


@metric
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
