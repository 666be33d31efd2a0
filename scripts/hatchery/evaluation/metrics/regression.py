"""Correlations of predicted with true numbers, computed by SciPy (STS-B; evaluation.md 6.5)."""

import warnings

import numpy as np
from scipy import stats

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.scored import Scored


def _numbers(scored: Scored, metric: str) -> tuple[np.ndarray, np.ndarray]:
    for name, values in (("labels", scored.labels), ("predictions", scored.predictions)):
        if values.ndim != 1 or not np.issubdtype(values.dtype, np.floating):
            raise EvaluationError(
                f"metric {metric}: the {name} are {values.dtype} of shape {values.shape}, expected one number per row"
            )
    if len(scored.labels) != len(scored.predictions) or len(scored.labels) == 0:
        raise EvaluationError(
            f"metric {metric}: got {len(scored.predictions)} predictions for {len(scored.labels)} labels, "
            "expected one for each, and at least one"
        )
    return scored.labels, scored.predictions


def _is_constant(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


def pearson(scored: Scored) -> float:
    """Pearson's correlation; 0 where one side is constant, NaN where a number is."""
    labels, predictions = _numbers(scored, "pearson")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    with warnings.catch_warnings():
        # A run near collapse is told by `collapse.failure`, not by a line on stderr.
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(stats.pearsonr(labels, predictions).statistic)


def spearman(scored: Scored) -> float:
    """Spearman's correlation of ranks, ties averaged; 0 where one side is constant, NaN where a number is."""
    labels, predictions = _numbers(scored, "spearman")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(stats.spearmanr(labels, predictions).statistic)


def mean_of_pearson_and_spearman(scored: Scored) -> float:
    """Mean of both, the one value of STS-B in the reduced-vocabulary study (reduced-vocabulary.md 6)."""
    return (pearson(scored) + spearman(scored)) / 2
