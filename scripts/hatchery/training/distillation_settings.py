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
    """Weight of the divergence from the teachers in the loss; the loss of the labels has the remaining weight. 0 trains
    without teachers."""
    temperature: Positive = 1.0
    """Temperature by which the logits of teachers and model are divided before their divergence is computed. The
    divergence is multiplied by the squared temperature."""


@dataclass(frozen=True)
class DistillationChoice(DistillationSettings):
    """Distillation: training on the averaged probabilities of finished models, the teachers."""

    teachers: tuple[ModelChoice, ...] = ()
    """Finished models with the tokenizer of this experiment; every seed of a run is a separate teacher."""

    def __post_init__(self) -> None:
        if not self.teachers:
            raise RefusedError("teachers", "got none, expected at least one, such as [{run: NAME}]")
