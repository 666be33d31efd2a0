"""Settings of distillation: a model learns from its labels and from the predictions of finished models, its teachers.

Source: "Distilling the Knowledge in a Neural Network" (Hinton et al., 2015), Section 2, with the mean of several
teachers' probabilities. The module `distillation` computes the loss.
"""

from dataclasses import dataclass

from hatchery.settings.base import Positive, RefusedError, Settings, Share
from hatchery.training.start_settings import ModelChoice


@dataclass(frozen=True)
class DistillationSettings(Settings):
    """Settings of distillation: weight and temperature. The manifests of the teachers are not settings, but inputs of
    the stage `pretrain`.
    """

    weight: Share = 0.5
    """Weight of the divergence from the teachers in the loss. The weight of the label loss is 1 minus this number. 0
    trains without teachers."""
    temperature: Positive = 1.0
    """Temperature: logits of teachers and model are divided by this number before their divergence is computed. The
    divergence is multiplied by the squared temperature."""


@dataclass(frozen=True)
class DistillationChoice(DistillationSettings):
    """Distillation: training on the mean of the probabilities of finished models, the teachers."""

    teachers: tuple[ModelChoice, ...] = ()
    """Finished models with this experiment's tokenizer. If a named run has several seeds, the teacher is its model with
    the seed of this run, or with `seed` if this key is set."""

    def __post_init__(self) -> None:
        if not self.teachers:
            raise RefusedError("teachers", "got no teachers, expected at least one teacher, such as [{run: NAME}]")
