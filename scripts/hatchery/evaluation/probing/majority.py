"""The answer without a model: the most frequent label of the training rows, for every row.

Source: reference evaluation.md 10.5, which asks for it beside every probe: about 85 % of the pairs of mentions are of
one class, so a coreference score says little without it.
"""

from typing import NamedTuple

import numpy as np

from hatchery.errors import EvaluationError


class MajorityBaseline(NamedTuple):
    """What answering `label` everywhere scores, as fractions."""

    label: int
    accuracy: float
    micro_f1: float


def majority_baseline(train: np.ndarray, scored: np.ndarray, unknown: np.ndarray | None = None) -> MajorityBaseline:
    """The baseline of labels bool [units, K] or int64 [units] (-1: unknown); of equally frequent labels the first.

    `unknown` int64 [units] counts, for independent labels, the ones that no column stands for. A row is right where
    the answered label holds, as the metric `accuracy` has it; micro F1 is over all (row, label) decisions. Raises
    EvaluationError without rows.
    """
    if len(train) == 0 or len(scored) == 0:
        raise EvaluationError(f"majority baseline: got {len(train)} training and {len(scored)} scored units")
    counts = train.sum(axis=0) if train.ndim == 2 else np.bincount(train[train >= 0])
    label = int(counts.argmax())
    if scored.ndim == 1:
        # With one label and one prediction per row, precision, recall and accuracy are one number.
        accuracy = float((scored == label).mean())
        return MajorityBaseline(label, accuracy, accuracy)
    missing = np.zeros(len(scored), dtype=np.int64) if unknown is None else unknown
    hits = scored[:, label]
    f1 = 2 * float(hits.sum()) / float(len(scored) + scored.sum() + missing.sum())
    return MajorityBaseline(label, float(hits.mean()), f1)
