"""Development scores for objectives with several loss terms: the objective's columns of the training metrics are also
computed on development text.
"""

import math
from typing import TYPE_CHECKING

import torch

from hatchery.sums import plain_sum
from hatchery.training.development import DevelopmentSet
from hatchery.training.examples import Examples
from hatchery.training.loop import sums_of
from hatchery.training.objective import Objective
from hatchery.training.topology import Topology, sum_over_processes

if TYPE_CHECKING:
    from hatchery.training.engine import Engine


class DevelopmentColumns(DevelopmentSet):
    """A fixed set of development sequences, on which all columns of an objective's training metrics are measured."""

    def __init__(
        self, objective: Objective, examples: Examples, sequences: int, micro_batch_size: int, topology: Topology
    ) -> None:
        super().__init__(examples, sequences, micro_batch_size, topology, objective.held_out_terms)
        self._objective = objective
        self._counts = [float(sum(counts)) for counts in zip(*map(examples.counted, self.batches), strict=True)]

    def score(self, engine: "Engine") -> dict[str, float]:
        """Return the mean over the development sequences of each column that the objective adds to the training
        metrics, under the name `development_<column>`, and `development_perplexity`, the perplexity of the mean loss.
        Every process must call this method.
        """
        parts = []
        for batch in self.batches:
            there = engine.on_device(batch)
            parts.append(sums_of(self._objective.terms(engine.evaluate(there), there)))
        # Read all values in one transfer, because each transfer from the device waits for all computations.
        sums = [plain_sum(column) for column in zip(*torch.stack(parts).tolist(), strict=True)]
        found = sum_over_processes([*self._counts, *sums], engine.device)
        counts, values = found[: len(self._counts)], iter(found[len(self._counts) :])
        means = {
            f"development_{name}": next(values) / max(1.0, count)
            for count, names in zip(counts, self._objective.columns, strict=True)
            for name in names
        }
        return means | {"development_perplexity": math.exp(min(means["development_loss"], 700.0))}
