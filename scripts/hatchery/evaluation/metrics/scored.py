"""What metrics look at: the labels, predictions and scores of the rows of one scored set.

Rows that are not scored have been left out before; the order is that of the rows in their files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Scored:
    """Arrays over the n units of one set.

    `labels` and `predictions` are int64 [n] (classes, right choices; a label of -1 is unknown to the model and always
    wrong), float64 [n] (regression) or bool [n, K] (independent labels). `scores` are the head's outputs float [n, K].
    `groups` says what is judged together, `facts` holds what a metric may need besides (see `Example`), `label_names`
    are those of the task in the order of their indices, empty without a label set.
    """

    labels: np.ndarray
    predictions: np.ndarray
    scores: np.ndarray
    groups: Sequence[str] = ()
    facts: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    label_names: Sequence[str] = ()


Failure = Literal["", "majority_class", "nan", "zero_mcc", "constant"]
"""Why a run is not counted, empty for one that is; `collapse.py` says when."""

Metric = Callable[[Scored], float]
