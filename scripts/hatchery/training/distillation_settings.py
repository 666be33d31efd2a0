"""Distillation: a model learns the predictions of finished models, its teachers, beside its labels.

Source: "Distilling the Knowledge in a Neural Network" (Hinton et al., 2015), Section 2, with the mean of the
probabilities of several teachers. `distillation` computes the loss.
"""

from dataclasses import dataclass

from hatchery.settings.base import Positive, RefusedError, Settings, Share
from hatchery.training.start_settings import ModelChoice


@dataclass(frozen=True)
class DistillationSettings(Settings):
    """Learning from teachers; their manifests are inputs of the job."""

    weight: Share = 0.5
    """Share of the divergence from the teachers in the loss; the rest is the loss of the labels. 0 trains without
    teachers."""
    temperature: Positive = 1.0
    """Logits of the teachers and of the model are divided by the temperature before their divergence is computed; the
    divergence is multiplied by its square."""


@dataclass(frozen=True)
class DistillationChoice(DistillationSettings):
    """Learning from the predictions of finished models, whose probabilities are averaged."""

    teachers: tuple[ModelChoice, ...] = ()
    """Finished models with the tokenizer of this experiment; every seed of a run is a teacher of its own."""

    def __post_init__(self) -> None:
        if not self.teachers:
            raise RefusedError("teachers", "got none, expected at least one, such as [{run: NAME}]")
