"""Difficulties of subwords, updated during training. Masking prefers difficult subwords (adaptive masked language
modelling).

Source: Edman & Fraser 2025, arXiv:2510.20475: every 200 batches, a subword's difficulty becomes a weighted mean of its
previous difficulty and its recent difficulty. The paper does not specify the recent difficulty. We inferred that the
recent difficulty is the mean loss of the n predictions of the subword since the last update. With `by: accuracy`, the
recent difficulty is (number of wrong predictions + 1) / (n + 2). We also inferred that a subword without a prediction
since the last update keeps its difficulty.

Losses are summed as integers, in millionths of a nat, so that the sums depend neither on the order of additions on a
GPU nor on the number of processes. A checkpoint contains difficulties and sums, so a resumed run is bitwise equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.objectives.mask_rates import CHOICE, RATES, SHOWN, TokenPreference
from hatchery.objectives.token_preferences import chosen, hidden
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.batches import StepBatch
from hatchery.training.topology import sum_tensor_over_processes
from hatchery.training.watchers import Watcher

VALUES, SUMS = "token_difficulty::values", "token_difficulty::sums"
UNITS_PER_NAT = 1_000_000
LEAST = 0.01
"""Minimum difficulty of a subword, so that every subword can still be masked."""


class TokenDifficulty(Watcher):
    """Difficulties of all subwords. Predictions during training update the difficulties, and masking uses the
    difficulties.
    """

    def __init__(self, settings: TokenPreference, vocabulary_size: int) -> None:
        self.settings = settings
        self.values: np.ndarray = np.ones(vocabulary_size)
        """Difficulty of each subword, float64 [V]."""
        # Rows: number of labels, number of correct predictions, loss in millionths of a nat. `_sums` contains the sums
        # over all processes since the last update. `_step_sums` contains the sums over this process's sequences of the
        # current step.
        self._sums = torch.zeros((3, vocabulary_size), dtype=torch.int64)
        self._step_sums = torch.zeros_like(self._sums)
        self._steps = 0

    @property
    def preferences(self) -> np.ndarray:
        """Return for each subword a positive number: masking prefers subwords with large numbers. The number is a power
        of the subword's difficulty: float64 [vocabulary size].
        """
        return self.values**self.settings.power

    @torch.no_grad()
    def see(self, targets: Tensor, losses: Tensor, right: Tensor) -> None:
        """Count the predictions of a batch. Each element of `targets` int64, `losses` (nats) and `right` belongs to one
        prediction; `right` is True for a correct prediction.
        """
        ones = torch.ones_like(targets)
        units = (losses.detach().double() * UNITS_PER_NAT).round().long()
        for row, values in zip(self._step_sums, (ones, right.long(), units), strict=True):
            row.index_add_(0, targets, values)

    def load(self, tensors: Mapping[str, Tensor], rows: Sequence[Mapping[str, float]]) -> None:
        """Load from a checkpoint the difficulties, and the sums of losses and counts of predictions since the last
        update of the difficulties.
        """
        if VALUES in tensors:
            self.values = tensors[VALUES].numpy().copy()
            self._sums = tensors[SUMS][:, :-1].clone()
            self._steps = int(tensors[SUMS][0, -1])

    def begin(self, model: nn.Module) -> None:
        """Move the sums of losses and counts of predictions to the device of the model."""
        device = next(model.parameters()).device
        self._sums, self._step_sums = self._sums.to(device), self._step_sums.to(device)

    def prepared(self, batch: StepBatch) -> StepBatch:
        """Return the batch with new masks, which prefer subwords that are difficult at present."""
        return hidden_anew(batch, self.preferences)

    def after_step(self, step: int, model: nn.Module) -> None:
        """Add the step's losses and counts of predictions, summed over all processes, to the sums since the last update
        of the difficulties. At the end of an interval, update the difficulties.
        """
        self._sums += sum_tensor_over_processes(self._step_sums)
        self._step_sums.zero_()
        self._steps += 1
        if self._steps < self.settings.interval_steps:
            return
        seen, right, units = self._sums.double().cpu().numpy()
        if self.settings.by == "accuracy":
            recent = (seen - right + 1) / (seen + 2)
        else:
            recent = units / UNITS_PER_NAT / np.maximum(seen, 1)
        memory = self.settings.memory
        mixed = np.maximum(LEAST, memory * self.values + (1 - memory) * recent)
        self.values = np.where(seen > 0, mixed, self.values)
        self._sums.zero_()
        self._steps = 0

    def state(self) -> dict[str, Tensor]:
        """Return tensors for a checkpoint. One tensor contains the difficulties. The other contains, for each subword,
        the counts of all and of correct predictions and the sum of losses, since the last update of the difficulties;
        its last column is the number of steps since this update.
        """
        steps = torch.full((3, 1), self._steps, device=self._sums.device)
        return {VALUES: torch.from_numpy(self.values.copy()), SUMS: torch.cat([self._sums, steps], dim=1)}


def hidden_anew(batch: StepBatch, preferences: np.ndarray) -> StepBatch:
    """Return the batch with new masks. `preferences`, float64 [vocabulary size], are numbers for each token id; masking
    prefers tokens with large numbers.
    """
    parts = [_part_hidden_anew(part, preferences) for part in batch.micro_batches]
    labelled = sum(int((part["labels"] != UNLABELLED).sum()) for part in parts)
    return replace(batch, micro_batches=parts, counted=(labelled,))


def _part_hidden_anew(part: dict[str, Tensor], preferences: np.ndarray) -> dict[str, Tensor]:
    names = ("input_ids", "labels", CHOICE, SHOWN, RATES)
    input_ids, labels, choice, shown, rates = (part[name].numpy() for name in names)
    ids = np.where(labels == UNLABELLED, input_ids, labels)
    where = np.stack([chosen(*row[:2], preferences, row[2]) for row in zip(ids, choice, rates, strict=True)])
    inputs, wanted = hidden(ids, where, shown)
    return {**part, "input_ids": torch.from_numpy(inputs), "labels": torch.from_numpy(wanted)}
