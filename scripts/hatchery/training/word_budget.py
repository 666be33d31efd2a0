"""The number of steps that spend a word budget, and the steps of the word milestones, counted before training.

Source: the rules of the BabyLM challenge of 2025 and 2026. These rules count words (`hatchery.corpora.word_counting`)
in all text that a model reads, including repetitions, and require checkpoints after given numbers of words. The text of
a step is a function of its number (`data_order`), so words can be counted without training. Because the number of steps
is known before training, schedules cover all steps, and a resumed run has the same milestones.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from hatchery.artifacts.atomic import write_json
from hatchery.errors import ConfigError
from hatchery.training.curriculum import Measure, order_of
from hatchery.training.data_order import EpochSlice, Order
from hatchery.training.examples import Examples
from hatchery.training.milestones import mark_name
from hatchery.training.objective import Objective
from hatchery.training.settings import PretrainSettings
from hatchery.training.start_settings import NEARLY, BudgetSettings
from hatchery.training.step_plan import StepPlan

BUDGET_FILE = "budget.json"
"""File in the run folder with the number of steps and the word milestones, for the run's other processes and for later
attempts.
"""


@dataclass(frozen=True)
class Mark:
    """A word milestone: the step after which a run has seen a number of words."""

    step: int
    """Smallest number of finished steps, at least one of which is a step of this run, after which the run has seen the
    milestone's number of words. For a milestone that equals the budget or is not reached, the last step.
    """
    words: int
    """Number of words seen after this step, including the words of the initial model."""


@dataclass(frozen=True)
class Spending:
    """The number of steps that spend a run's budget, and the run's word milestones."""

    steps: int
    words_seen: int | None
    """Number of words seen after the run, including the words of the initial model; None for a budget in minutes."""
    marks: Mapping[str, Mark]
    """Word milestones by name."""

    @property
    def kept_steps(self) -> frozenset[int]:
        """Steps of the word milestones; several milestones may have the same step."""
        return frozenset(mark.step for mark in self.marks.values())


class ShownWords:
    """Counts the words of sequences of one length. A sequence is counted when its number of words is first needed."""

    def __init__(self, examples: Examples, seed: int, kinds: int) -> None:
        """`kinds` is the number of kinds of sequences; the indices of causal sequences follow the indices of masked
        sequences."""
        self._examples, self._seed, self._size = examples, seed, kinds * len(examples)
        self._counted: dict[int, np.ndarray] = {}

    def of(self, part: EpochSlice) -> int:
        """Return the number of words of the sequences in `part`."""
        key = 0 if self._examples.same_in_every_epoch else part.epoch
        counts = self._counted.setdefault(key, np.full(self._size, -1, dtype=np.int32))
        missing = part.indices[counts[part.indices] < 0]
        counts[missing] = self._examples.words(self._seed, part.epoch, missing)
        return int(counts[part.indices].sum())


def most_words(budget: BudgetSettings, text_words: int, text_bytes: int | None = None) -> int:
    """Return the maximum number of words that a model may see, for a training text of `text_words` words.

    `text_bytes` is the number of bytes (UTF-8) of the text; None if the bytes were not counted. Raises ConfigError if
    the text has more words or bytes than the budget allows for a corpus, or if the budget limits bytes that were not
    counted. Also raises ConfigError if the maximum number of epochs is reached long before the maximum number of words.
    """
    if budget.corpus_words is not None and text_words > budget.corpus_words:
        raise ConfigError(
            f"pretraining.budget.corpus_words: the text has {text_words:,} words, expected at most "
            f"{budget.corpus_words:,}"
        )
    if budget.corpus_bytes is not None:
        where = "pretraining.budget.corpus_bytes"
        if text_bytes is None:
            raise ConfigError(f"{where}: the bytes of the text were not counted; encode the corpus again")
        if text_bytes > budget.corpus_bytes:
            raise ConfigError(f"{where}: the text has {text_bytes:,} bytes, expected at most {budget.corpus_bytes:,}")
    if budget.epochs is None:
        return budget.words_seen
    most = min(budget.words_seen, int(budget.epochs * text_words))
    if most < NEARLY * budget.words_seen:
        raise ConfigError(
            f"pretraining.budget.words_seen: got {budget.words_seen:,}, expected at most about {most:,}, "
            f"which is budget.epochs ({budget.epochs:g}) times the {text_words:,} words of the text"
        )
    return most


def spend(
    settings: PretrainSettings,
    objective: Objective,
    examples_of_length: Callable[[int], Examples],
    most: int,
    words_before: int = 0,
    first_step: int = 0,
    measure: Measure | None = None,
) -> Spending:
    """Return the largest number of steps in which the model sees at most `most` words, and the word milestones.

    `measure` is the difficulty measure of a curriculum (see `order_of`). `words_before` is the number of words seen
    before step `first_step`. Raises ConfigError if the first step exceeds the budget.
    """
    low, high = first_step, 0
    examples = cache(examples_of_length)
    kinds = len(settings.objective.sequences_of_kinds(settings.batch_size))
    shown = cache(lambda length: ShownWords(examples(length), settings.seed, kinds))
    guess = max(first_step + 1, settings.planned().steps)
    # Search the number of steps by bisection. Because sequence lengths, batch sizes and data order depend on the number
    # of steps, the words of each plan are counted again.
    while high == 0 or high - low > 1:
        plan = StepPlan(settings.with_steps(guess))
        order = order_of(objective, plan, settings.seed, examples, measure)
        seen = _seen(plan, order, shown, words_before, first_step)
        if seen[-1] <= most:
            low, words_seen = guess, seen
        else:
            high = guess
        own = (seen[-1] - words_before) / (guess - first_step)
        aim = first_step + round((most - words_before) / own) if own else 2 * guess
        guess = max(low + 1, aim if high == 0 else min(aim, high - 1))
    if low == first_step:
        raise ConfigError(
            f"pretraining.budget.words_seen: got {most:,}, but the first step alone reads more than the "
            f"{most - words_before:,} words that are left of this budget"
        )
    marks = {}
    for words in settings.marks:
        passed = first_step + int(np.searchsorted(words_seen, words, "left"))
        step = low if words == settings.words_budget else min(max(passed, first_step + 1), low)
        marks[mark_name(words)] = Mark(step, int(words_seen[step - first_step]))
    return Spending(low, int(words_seen[-1]), marks)


def _seen(
    plan: StepPlan, order: Order, shown: Callable[[int], ShownWords], words_before: int, first_step: int
) -> np.ndarray:
    """Return the number of words seen before each step from `first_step` on, followed by the number of words seen after
    the last step: int64.
    """
    steps = map(plan.at, range(first_step, plan.steps))
    of_step = [sum(map(shown(step.sequence_length).of, order(step))) for step in steps]
    return np.cumsum([words_before, *of_step], dtype=np.int64)


def write_spending(folder: Path, spending: Spending) -> None:
    """Write the number of steps that spend a run's budget, and the steps of its word milestones, into `folder`."""
    write_json(folder / BUDGET_FILE, asdict(spending))


def read_spending(folder: Path) -> Spending | None:
    """Return the number of steps and the word milestones that `write_spending` stored in a run folder; None if no
    budget was stored.
    """
    path = folder / BUDGET_FILE
    if not path.is_file():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Spending(kept["steps"], kept["words_seen"], {name: Mark(**mark) for name, mark in kept["marks"].items()})
