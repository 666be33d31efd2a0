"""Correlations of predicted with true numbers, computed by SciPy (STS-B)."""

import warnings

import numpy as np

from hatchery.evaluation.metrics.scored import Scored, metric, one_each


def _numbers(scored: Scored, name: str) -> tuple[np.ndarray, np.ndarray]:
    return one_each(scored, name, "f", "number")


def _is_constant(values: np.ndarray) -> bool:
    return bool((values == values[0]).all())


@metric
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


@metric
def spearman(scored: Scored) -> float:
    """Spearman's correlation of ranks, ties averaged; 0 where one side is constant, NaN where a number is."""
    from scipy import stats

    labels, predictions = _numbers(scored, "spearman")
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(stats.spearmanr(labels, predictions).statistic)


@metric
def mean_of_pearson_and_spearman(scored: Scored) -> float:
    """Mean of both, the one value of STS-B in the reduced-vocabulary study (docs/papers/reduced-vocabulary.md,
    "Fine-tuning")."""
    return (pearson(scored) + spearman(scored)) / 2
