"""The signs that a fine-tuning run has collapsed: its value says that training failed, not how good the model is.

The 61.4 % on WSC in the papers' tables is the constant answer (ELC-BERT, Table 9), and their averages contain it. So a
run that has collapsed is counted as failed and stays in the mean (`analysis.aggregates`); what is no number does not.
"""

import numpy as np

from hatchery.evaluation.metrics.classification import independent, mcc
from hatchery.evaluation.metrics.grouped import margins
from hatchery.evaluation.metrics.scored import Failure, Scored

# Outputs of a regression whose range is below this share of that of the labels say nothing about the inputs.
CONSTANT_SHARE = 1e-3


def failure(scored: Scored) -> Failure:
    """Why the outputs say that training collapsed, or an empty string.

    `nan`: a score is not finite. `majority_class`: one answer for every row although the labels vary. `zero_mcc`:
    classes that vary without any correlation. `constant`: numbers, or the scores of ReCoRD's entities, without
    variation; its entities are compared by their scores, so that answering every row with class 0 is no failure there.
    """
    if not np.isfinite(scored.scores).all():
        return "nan"
    if not _varies(scored.labels):
        return ""
    if np.issubdtype(scored.labels.dtype, np.floating):
        if not np.isfinite(scored.predictions).all():
            return "nan"
        return "constant" if np.ptp(scored.predictions) < CONSTANT_SHARE * np.ptp(scored.labels) else ""
    if scored.facts and "entity" in scored.facts[0]:
        return "constant" if np.ptp(margins(scored)) == 0 else ""
    if not _varies(scored.predictions):
        return "majority_class"
    return "zero_mcc" if not independent(scored) and abs(mcc(scored)) < 1e-12 else ""


def _varies(values: np.ndarray) -> bool:
    return bool((values != values[:1]).any())
