"""Which state of a run is reported, and when it is stopped early.

The rules are those of the trainer behind the official pipeline (docs/papers/babylm-evaluation.md, "Official
fine-tuning"), which ELC-BERT's early stopping is read as (inferred): every higher development value becomes the best
state, but only one that is higher by more than `minimum_improvement` renews the patience. A run without any evaluation
keeps its last state.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# All metrics are shares or correlations.
HIGHEST_VALUE = 1.0


@dataclass(frozen=True)
class TrainedModel:
    """The state that a model was left in: after how many optimiser steps, and its development value, if it has one."""

    best_step: int
    development_value: float | None


class BestState:
    """The best state of a run so far: of equal values the first. Holds a copy of what is trained, and nothing else."""

    def __init__(self, model: nn.Module, patience_evaluations: int | None, minimum_improvement: float) -> None:
        self._trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self._patience, self._minimum = patience_evaluations, minimum_improvement
        self._copies: dict[str, Tensor] = {}
        self._waited, self._highest = 0, -math.inf
        self.best: TrainedModel | None = None

    @torch.no_grad()
    def note(self, step: int, value: float) -> bool:
        """Take the development value after `step` steps into account; whether training should stop.

        A value that is no number (a correlation of constant predictions) is worse than any.
        """
        comparable = -math.inf if math.isnan(value) else value
        improvement = math.inf if self.best is None else comparable - self._highest
        self._waited = 0 if improvement > self._minimum else self._waited + 1
        if improvement > 0:
            self.best, self._highest = TrainedModel(step, value), comparable
            for name, parameter in self._trained.items():
                if name in self._copies:
                    self._copies[name].copy_(parameter)
                else:
                    self._copies[name] = parameter.detach().clone()
        # The highest value cannot be bettered, and of equal states the first is kept: training on changes nothing.
        out_of_patience = self._patience is not None and self._waited >= self._patience
        return out_of_patience or value >= HIGHEST_VALUE

    @torch.no_grad()
    def restore(self, last_step: int) -> TrainedModel:
        """Put the best state back into the model; without an evaluation the state after `last_step` stays."""
        if self.best is None:
            return TrainedModel(last_step, None)
        for name, parameter in self._trained.items():
            parameter.copy_(self._copies[name])
        return self.best
