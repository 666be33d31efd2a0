"""A curriculum: the sequences of an epoch are ordered by the difficulty of their text instead of at random.

Every epoch contains every sequence once, so the number of words per epoch does not change. Sequences are sorted by the
sum of two numbers. The first number is the rank of their difficulty, divided by the number of sequences in the epoch.
The second is a random number from 0 to `spread`. With `spread` 0, the order depends only on the difficulty. With
`spread` 1, a sequence may move by up to the length of the epoch. The order is a function of seed and epoch, so a
resumed run continues with the same order. Difficulties are computed before the first epoch of a sequence length.
Sources: Bengio et al. 2009 (word frequency) and Platanios et al. 2019, arXiv:1903.09848 (`length`, `rarity`). The
difficulty of a packed sequence is computed over all its texts.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hatchery.training.data_order import DataOrder, Order, OrdersItself
from hatchery.training.start_settings import CurriculumSettings

if TYPE_CHECKING:
    from hatchery.objectives.padded_examples import PaddedExamples
    from hatchery.training.objective import Objective
    from hatchery.training.step_plan import StepPlan


Measure = Callable[[Any], np.ndarray]
"""A function from examples to the difficulty of each sequence, float64 [len(examples)]."""


class Curriculum(DataOrder):
    """The sequences of each step, with epochs ordered by difficulty."""

    def __init__(
        self,
        settings: CurriculumSettings,
        plan: "StepPlan",
        seed: int,
        examples_of_length: Callable[[int], Any],
        measure: Measure | None = None,
    ) -> None:
        """`measure` computes difficulties from a model, a word list or a column of the corpus. If `measure` is None,
        the difficulty `settings.by` is computed from the text.
        """
        super().__init__(plan, seed, examples_of_length)
        self.settings, self.measure = settings, measure
        self._ordered = lru_cache(maxsize=4)(self._order_of)

    def _epoch(self, stretch: int, kind: int, epoch: int) -> np.ndarray:
        if self.settings.epochs is not None and epoch >= self.settings.epochs:
            return super()._epoch(stretch, kind, epoch)
        if self.settings.by == "first_epoch":
            return super()._epoch(stretch, kind, 0)
        return self._ordered(self.plan.stretches[stretch].sequence_length, epoch)

    def _order_of(self, length: int, epoch: int) -> np.ndarray:
        examples: Any = self._examples(length)
        difficulty = difficulties(examples, self.settings.by) if self.measure is None else self.measure(examples)
        if self.settings.first == "hard":
            difficulty = -difficulty
        number = len(difficulty)
        ranks = np.empty(number)
        ranks[np.argsort(difficulty, kind="stable")] = np.arange(number) / max(1, number)
        # Make random numbers from raw integers, because numpy guarantees the stream of raw integers in all versions.
        raw = np.random.Philox(np.random.SeedSequence([self.seed, epoch, 2])).random_raw(number)
        drawn = (raw >> np.uint64(11)).astype(np.float64) / 2**53
        order = np.argsort(ranks + self.settings.spread * drawn, kind="stable").astype(np.int64)
        order.flags.writeable = False
        return order


@lru_cache(maxsize=2)
def difficulties(examples: "PaddedExamples", by: str) -> np.ndarray:
    """Return the difficulty of every sequence, float64 [len(examples)]; `by` is "length" or "rarity".

    The text of a sequence can depend on epoch and seed; difficulties are computed from the text in epoch 0 with seed 0.
    """
    texts = (examples.texts(0, 0, index) for index in range(len(examples)))
    if by == "length":
        difficulties_of_sequences = [
            sum(map(len, parts)) / max(1, sum(1 + len(part.inner_sentence_starts) for part in parts)) for parts in texts
        ]
        return np.array(difficulties_of_sequences, dtype=np.float64)
    counts = np.zeros(1, dtype=np.int64)
    for parts in texts:
        for part in parts:
            new = np.bincount(part.tokens, minlength=len(counts))
            new[: len(counts)] += counts
            counts = new
    surprisals = -np.log(np.maximum(counts, 1) / max(1, counts.sum()))
    again = (examples.texts(0, 0, index) for index in range(len(examples)))
    means = [
        sum(float(surprisals[part.tokens].sum()) for part in parts) / max(1, sum(map(len, parts))) for parts in again
    ]
    return np.array(means, dtype=np.float64)


def order_of(
    objective: "Objective",
    plan: "StepPlan",
    seed: int,
    examples_of_length: Callable[[int], Any],
    measure: Measure | None = None,
) -> Order:
    """Return the data order of a run. If the objective does not define a data order, the settings of the plan determine
    the data order.

    `measure` is passed to `Curriculum`.
    """
    if isinstance(objective, OrdersItself):
        return objective.order(plan, seed, examples_of_length)
    if plan.settings.order is None:
        return DataOrder(plan, seed, examples_of_length)
    return Curriculum(plan.settings.order, plan, seed, examples_of_length, measure)
