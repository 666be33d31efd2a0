"""Accuracy at 61 temperatures, by which logits are divided, and at the one that is best on the very items.

Source: docs/papers/gpt-bert.md, "Scoring". The best of them is chosen on the test items, so it is an upper bound with
a name of its own: nobody compares it with an accuracy at temperature 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from hatchery.evaluation.minimal_pairs.decisions import Accuracy, accuracy_table, decision
from hatchery.evaluation.minimal_pairs.items import Item
from hatchery.evaluation.settings import ScoringSettings

GRID = (1e-6, *(round(0.05 * step, 2) for step in range(1, 61)))
"""The temperatures; the first stands for 0."""
ONE = GRID.index(1.0)


@dataclass(frozen=True)
class BestTemperature:
    """The temperature at which most items are right, and the accuracies there; `by_temperature` is accuracy by each."""

    temperature: float
    table: list[Accuracy]
    by_temperature: list[tuple[float, float]]

    @property
    def frame(self) -> pl.DataFrame:
        """The table temperatures.csv: each temperature with its mean accuracy over paradigms, a fraction of 1."""
        return pl.DataFrame(self.by_temperature, schema=["temperature", "accuracy"], orient="row")


def best_temperature(items: Sequence[Item], scores: np.ndarray, settings: ScoringSettings) -> BestTemperature:
    """The first best of GRID by the unweighted mean over paradigms.

    `scores` float64 [I, K, T] are those of the candidates of each item at each temperature, as GRID has them.
    """
    tables = []
    for at in range(len(GRID)):
        decisions = [
            decision(item, values[: len(item.candidates), at].tolist(), settings)
            for item, values in zip(items, scores, strict=True)
        ]
        outcomes, credits = [one.outcome for one in decisions], [one.credit for one in decisions]
        by_split, by_pair = settings.format == "entity_tracking", settings.track == "multilingual"
        tables.append(accuracy_table(items, outcomes, settings.suite, credits, by_split, by_pair))
    shares = [next(row.accuracy for row in table if row.level == "suite") for table in tables]
    best = max(range(len(GRID)), key=shares.__getitem__)
    return BestTemperature(GRID[best], tables[best], list(zip(GRID, shares, strict=True)))
