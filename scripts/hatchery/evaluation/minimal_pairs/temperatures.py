"""Accuracy at 61 temperatures, which divide the logits, and at the temperature with the highest accuracy.

Source: docs/papers/gpt-bert.md, "Scoring". The best temperature is selected on the test items, so its accuracy is an
upper bound. This accuracy is a separate metric, which is never compared with accuracies at temperature 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from hatchery.evaluation.minimal_pairs.decisions import Accuracy, accuracy_table, decision
from hatchery.evaluation.minimal_pairs.items import Item
from hatchery.evaluation.settings import ScoringSettings

GRID = (1e-6, *(round(0.05 * step, 2) for step in range(1, 61)))
"""The temperatures by which logits are divided; the first temperature, close to 0, replaces temperature 0."""
ONE = GRID.index(1.0)


@dataclass(frozen=True)
class BestTemperature:
    """The temperature with the highest accuracy. `table` has the accuracies at this temperature, and `by_temperature`
    has a pair (temperature, accuracy) for each temperature.
    """

    temperature: float
    table: list[Accuracy]
    by_temperature: list[tuple[float, float]]

    @property
    def frame(self) -> pl.DataFrame:
        """Return the table temperatures.csv: each temperature with the suite's mean accuracy, a fraction."""
        return pl.DataFrame(self.by_temperature, schema=["temperature", "accuracy"], orient="row")


def best_temperature(items: Sequence[Item], scores: np.ndarray, settings: ScoringSettings) -> BestTemperature:
    """Return the temperature of GRID with the highest mean accuracy of the suite; among equal accuracies, the first
    temperature.

    `scores` float64 [I, K, T] are the scores of the K candidates of each item at the T temperatures of GRID.
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
