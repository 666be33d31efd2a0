"""Almost stochastic order of every model over every other, as in ELC-BERT, Tables 11 and 12.

Each cell is one of many tests, so each needs a higher confidence for the matrix as a whole to have the one asked for.
Every pair of models draws from its own stream: more models change other cells by the correction only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np

from hatchery.analysis.stochastic_order import DRAWS, PURPOSE, estimate_order, grid_steps
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.seeds import generator
from hatchery.settings.base import ReadingName

THRESHOLD = 0.5


@dataclass(frozen=True, eq=False)
class OrderMatrix:
    """epsilon_min of "row better than column" for k models; lower is better, 1 is no evidence.

    `epsilon` and `violation` (the ratio without its confidence) are float64 [k, k] with NaN on the diagonal.
    `confidence` is that asked for the whole matrix, `cell_confidence` what each of the `comparisons` got for it.
    `runs` says how many scores each model had.
    """

    names: tuple[str, ...]
    epsilon: np.ndarray
    violation: np.ndarray
    runs: tuple[int, ...]
    confidence: float
    cell_confidence: float
    comparisons: int
    reading: ReadingName

    def better(self, threshold: float = THRESHOLD) -> np.ndarray:
        """bool [k, k]: where the row is better than the column (0.5 fits the bold face of the published tables)."""
        return self.epsilon < threshold

    def cell(self, row: str, column: str) -> float:
        """epsilon_min of "row better than column". Raises EvaluationError for a name that is not in the matrix."""
        for name in (row, column):
            if name not in self.names:
                raise EvaluationError(f"{name} is none of the compared models: {', '.join(self.names)}")
        return float(self.epsilon[self.names.index(row), self.names.index(column)])


def order_matrix(
    scores: Mapping[str, Sequence[float]],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int,
    reading: ReadingName = "corrected",
    comparisons: int | None = None,
) -> OrderMatrix:
    """Compare all models, given one score per run and higher being better (see `run_scores`).

    "corrected" integrates exactly and corrects by Bonferroni over the k (k - 1) cells, each of which gets a confidence
    of 1 - (1 - confidence) / comparisons. "as_published" is what the package behind ELC-BERT computes: quantiles on a
    grid of 0.005 and, for the k (k - 1) / 2 pairs, a confidence of confidence + (1 - confidence) / pairs, which rises
    less the more there is to correct (docs/papers/elc-bert.md, "Significance"); a single pair is left alone.
    `comparisons` states another number, such as that of a family of matrices.

    The correction is as good as the single bounds, which few runs make too low (see `epsilon_min`): among five equal
    models with nine runs each, some cell is below 0.5 in about 6 of 10 matrices (9 of 10 as published), and below 0.2
    in 2 of 10 (4 of 10). Raises EvaluationError for invalid scores, naming the pair, and ConfigError for invalid
    settings.
    """
    if reading not in get_args(ReadingName):
        raise ConfigError(f"reading: {reading!r} is none of {', '.join(get_args(ReadingName))}")
    if len(scores) < 2:
        raise EvaluationError(f"an order needs at least two models, not {len(scores)}")
    names = tuple(scores)
    cells = len(names) * (len(names) - 1)
    if comparisons is None:
        comparisons = cells if reading == "corrected" else cells // 2
    cell_confidence = corrected_confidence(confidence, comparisons, reading)
    epsilon, violation = np.full((2, len(names), len(names)), np.nan)
    # The two directions of a pair share their draws, so no two models can each be better than the other.
    for first, second in combinations(sorted(names), 2):
        steps = grid_steps(len(scores[first]), len(scores[second])) if reading == "as_published" else None
        random = generator(seed, PURPOSE, first, second)
        try:
            estimate = estimate_order(scores[first], scores[second], draws=draws, random=random, steps=steps)
        except EvaluationError as error:
            raise EvaluationError(f"{first} and {second}: {error}") from error
        i, j = names.index(first), names.index(second)
        for at, direction in (((i, j), estimate), ((j, i), estimate.reversed())):
            epsilon[at], violation[at] = direction.bound(cell_confidence), direction.violation
    runs = tuple(len(scores[name]) for name in names)
    return OrderMatrix(names, epsilon, violation, runs, confidence, cell_confidence, comparisons, reading)


def corrected_confidence(confidence: float, comparisons: int, reading: ReadingName = "corrected") -> float:
    """The confidence of a single comparison. Raises ConfigError for values out of range."""
    if comparisons < 1:
        raise ConfigError(f"comparisons: {comparisons} is not at least 1")
    if not 0.5 <= confidence < 1:
        raise ConfigError(f"confidence: {confidence} is not at least 0.5 and below 1")
    if comparisons == 1:
        return confidence
    if reading == "as_published":
        return confidence + (1 - confidence) / comparisons
    return 1 - (1 - confidence) / comparisons
