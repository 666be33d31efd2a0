"""Distillation: the loss of an objective, combined with the divergence from the predictions of teachers.

Source: "Distilling the Knowledge in a Neural Network" (Hinton et al., 2015), Section 2. With the weight w and the
temperature T, training minimises (1 - w) * loss + w * T^2 * KL(p || q). Here loss is the objective's loss, p is the
mean of the teachers' probabilities, and q are the model's probabilities. p and q are computed from logits divided by T.

The divergence is computed at the labelled positions, and each position has the same weight in the divergence as in the
loss. The reported loss excludes the divergence, so that losses of runs with and without teachers are comparable.
Teachers run without dropout and have no state, so a resumed run is exact.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.modeling.flops import PassShape
from hatchery.modeling.language_model import LanguageModel, LanguageModelOutput
from hatchery.modeling.mean_probabilities import mean_probabilities
from hatchery.modeling.store import load_config, load_language_model
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.continuation import check_vocabulary
from hatchery.training.distillation_settings import DistillationSettings
from hatchery.training.examples import Examples
from hatchery.training.inputs import Inputs
from hatchery.training.objective import Objective, ObjectiveKeys, Term, unable_teacher
from hatchery.training.precision import Precision
from hatchery.training.settings import PretrainSettings, pretrain_settings
from hatchery.training.step_plan import StepPlan


class Teachers:
    """The teachers of a run: finished models that predict the labels of a batch."""

    def __init__(self, models: Sequence[LanguageModel], device: torch.device, precision: Precision) -> None:
        self._models = [model.eval().requires_grad_(False).to(device) for model in models]
        self._device, self._precision = device, precision

    @torch.no_grad()
    def probabilities(self, batch: Mapping[str, Tensor], labelled: Tensor, temperature: float, width: int) -> Tensor:
        """Return the mean of the teachers' probabilities at the positions `labelled` int64 [M]: fp32 [M, width].

        `width` is the number of logits of the student. Vocabulary entries beyond the student's logits are left out of
        each teacher's softmax. Entries that no teacher has get probability 0.
        """
        logits = []
        for model in self._models:
            with self._precision.autocast(self._device.type):
                found = model(
                    batch["input_ids"],
                    batch.get("attention_mask"),
                    batch["labels"],
                    labelled=labelled,
                    causal=batch.get("causal"),
                ).logits
            logits.append(found[:, :width].float() / temperature)
        mean = mean_probabilities(logits)
        return F.pad(mean, (0, width - mean.shape[-1]), value=-math.inf).exp()


class DistilledObjective(Objective):
    """An objective that adds distillation to the loss of another objective, the wrapped objective. The wrapped
    objective makes the examples, counts the targets and computes the shapes of forward passes. Development scores are
    those of the wrapped objective, without distillation.
    """

    def __init__(self, objective: Objective, teachers: Teachers, distillation: DistillationSettings) -> None:
        super().__init__(objective.settings)
        self.objective, self.teachers, self.distillation = objective, teachers, distillation
        self.columns = tuple(
            (*names, f"{names[0].removesuffix('loss')}teacher_divergence") for names in objective.columns
        )

    def terms(self, output: LanguageModelOutput, batch: Mapping[str, Tensor]) -> tuple[Term, ...]:
        """Return the loss terms of the wrapped objective. To each term, distillation adds the sum that training
        minimises, and the summed divergence from the teachers (nats), which is only reported.
        """
        weight, temperature = self.distillation.weight, self.distillation.temperature
        expected = self.teachers.probabilities(batch, output.positions, temperature, output.logits.shape[-1])
        predicted = torch.log_softmax(output.logits / temperature, dim=-1)
        divergences = F.kl_div(predicted, expected, reduction="none").sum(dim=-1)
        found = []
        own = self.objective.terms(output, batch)
        for term, counts in zip(own, self.objective.label_weights(output, batch), strict=True):
            divergence = (counts * divergences).sum()
            mixed = (1 - weight) * term.minimised + weight * temperature**2 * divergence
            found.append(term._replace(sums=(*term.sums, divergence.detach()), mixed=mixed))
        return tuple(found)

    def examples(self, shards: TokenShards, sequence_length: int) -> Examples:
        """Return the examples of the wrapped objective."""
        return self.objective.examples(shards, sequence_length)

    def target_counts(self, shards: TokenShards) -> np.ndarray:
        """Return the number of targets of each token id, counted by the wrapped objective: int64 [vocabulary size]."""
        return self.objective.target_counts(shards)

    def pass_shape(self, part: dict[str, Tensor], labelled_per_sequence: float) -> PassShape:
        """Return the sizes of a micro-batch's forward pass, as computed by the wrapped objective. The FLOPs of the pass
        are computed from these sizes.
        """
        return self.objective.pass_shape(part, labelled_per_sequence)


def distilled(
    objective: Objective, settings: PretrainSettings, inputs: Inputs, device: torch.device, precision: Precision
) -> Objective:
    """Return the objective of a run: `objective`, combined with distillation if the run has teachers."""
    if settings.distillation is None or not settings.learns_from_teachers:
        return objective
    models = [load_language_model(path.parent) for path in inputs.teachers]
    return DistilledObjective(objective, Teachers(models, device, precision), settings.distillation)


def check_teachers(settings: PretrainSettings, inputs: Inputs) -> None:
    """Raise ConfigError unless all teachers have the run's tokenizer and can predict the run's labels."""
    if settings.distillation is None and inputs.teachers:
        raise ConfigError(
            f"teachers are {', '.join(map(str, inputs.teachers))}, but pretraining.distillation is not set"
        )
    if settings.learns_from_teachers and not inputs.teachers:
        raise ConfigError(
            "pretraining.distillation: there are no teachers, expected the manifest of at least one model"
        )
    if not settings.learns_from_teachers:
        return
    longest = max(StepPlan(settings.planned()).lengths, default=settings.sequence_length)
    for path in inputs.teachers:
        made = read_manifest(path)
        check_vocabulary(made, read_manifest(inputs.tokenizer), "teacher")
        config, causal = load_config(path.parent)
        objective = _objective_of(made.settings)
        if objective is not None and (reason := unable_teacher(settings.objective, objective)):
            raise ConfigError(f"{path}: the teacher {reason}")
        if objective is None and causal != settings.objective.causal:
            raise ConfigError(
                f"{path}: the teacher is {'' if causal else 'not '}causal, expected a teacher that is "
                f"{'not ' if causal else ''}causal, like the model of this run"
            )
        limit = config.position_limit
        if limit is not None and limit < longest:
            raise ConfigError(
                f"{path}: the teacher has positions for {limit} tokens, expected at least {longest}, the longest "
                "sequence of this run"
            )


def teacher_configurations(inputs: Inputs) -> list[dict[str, Any]]:
    """Return the teachers' configurations, to compute the FLOPs of their forward passes."""
    return [load_config(path.parent)[0].to_dict() for path in inputs.teachers]


def _objective_of(settings: Mapping[str, Any]) -> ObjectiveKeys | None:
    """Return the training objective of a model; None for an imported model."""
    return pretrain_settings(settings).objective if settings.get("stage") == "pretrain" else None
