"""Where a pretraining starts and when it may end: from another model, and early on development text."""

from dataclasses import dataclass
from typing import Literal

from hatchery.settings.base import Count, Natural, NonNegative, Settings
from hatchery.settings.fields import ABSENT, NotEmpty

# What may differ between a model and the one that it starts from: it shapes no tensor and reads none differently.
FREE_KEYS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@dataclass(frozen=True)
class InitialModelSettings(Settings):
    """The model that training starts from; which one that is, its manifest among the inputs says."""

    take: Literal["weights", "training"] = "weights"
    """weights: step 0, a new optimiser, the whole schedule. training: go on where that run stopped, with its optimiser,
    its place in the data and its number of steps."""
    step: Count | None = None
    """Which of that run's `milestones` to take; null is the finished model. A run of 0 steps evaluates it as it is."""


@dataclass(frozen=True)
class InitialModelChoice(InitialModelSettings):
    """The model that training starts from, by its name in an experiment or its folder."""

    run: str = ABSENT
    """Name of a run."""
    experiment: str | None = None
    """Whose run; null is this one."""
    seed: Natural | None = None
    """Pretraining seed of that run; null is its only one, or that of this run."""
    path: NotEmpty = ABSENT
    """A folder that scripts/import_checkpoint.py or pretraining wrote, or the name of a `data` entry with its path."""


@dataclass(frozen=True)
class EarlyStoppingSettings(Settings):
    """End after so many evaluations in a row that are no new best by more than the minimum: the lowest development
    loss, or the highest BLEU of development text where the objective is translation."""

    patience_evaluations: Count
    """Stop after so many evaluations in a row without improvement."""
    minimum_improvement: NonNegative = 0.0
    """By how much the best has to be bettered to count: nats per labelled token, or points of BLEU."""
    export: Literal["best", "last"] = "best"
    """Weights of the best evaluation (of equal ones the first), or of the last step."""
