"""Fine-tuning of one classifier with one seed, read from top to bottom.

AdamW, linear warm-up, decay to 0; after every epoch the selection metric on development rows decides which epoch is
kept (ELC-BERT section 4: early stopping on held-out training rows, the released validation file as test set).
Split, order, head and dropout draw from streams of their own, so a seed fixes every number of a run on one device.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from hatchery.evaluation.finetuning.encoding import EncodedExamples
from hatchery.evaluation.finetuning.length_batches import pad_batch, prediction_batches, training_batches
from hatchery.evaluation.finetuning.settings import ProtocolSettings
from hatchery.evaluation.metrics.classification import METRICS
from hatchery.evaluation.seeds import derived_seed
from hatchery.pretraining.parameter_groups import parameter_groups
from hatchery.pretraining.schedules import learning_rate
from hatchery.pretraining.settings import ScheduleSettings

PREDICTION_BATCH_SIZE = 64
PERFECT = 1.0


class NotFiniteError(ArithmeticError):
    """A loss, a gradient norm or a logit is NaN or infinite: the run has diverged."""


@dataclass(frozen=True)
class TrainedClassifier:
    """What a seed ends with: the epoch (from 1) whose weights the model holds, its development value, if any."""

    best_epoch: int
    development_value: float | None


def train_classifier(
    model: nn.Module,
    train: EncodedExamples,
    development: EncodedExamples | None,
    protocol: ProtocolSettings,
    seed: int,
    pad_id: int,
    device: torch.device,
    on_step: Callable[[int], None] = lambda steps: None,
) -> TrainedClassifier:
    """Train `model` in place and leave it with the weights of the best epoch.

    Without development rows that is the last epoch. `model(ids, mask)` gives logits [B, labels]. `on_step` is told
    the number of finished or, after early stopping, skipped optimiser steps. Raises NotFiniteError when the run
    diverges.
    """
    torch.manual_seed(derived_seed(seed, "dropout"))
    optimizer = _adamw(model, protocol)
    schedule = ScheduleSettings(protocol.schedule, protocol.warmup_fraction, final_fraction=0.0)
    total_steps, step = step_count(len(train.sequences), protocol), 0
    best = TrainedClassifier(best_epoch=protocol.epochs, development_value=None)
    best_weights: dict[str, torch.Tensor] | None = None
    for epoch in range(1, protocol.epochs + 1):
        model.train()
        for batch in training_batches(train.lengths, protocol.batch_size, seed, epoch):
            rate = learning_rate(protocol.learning_rate, schedule, step, total_steps)
            _update(model, optimizer, train, batch, rate, protocol.max_gradient_norm, pad_id, device)
            step += 1
            on_step(1)
        if development is None:
            continue
        predictions = predict(model, development, pad_id, device)
        value = METRICS[protocol.selection_metric](development.labels, predictions)
        if best.development_value is None or value > best.development_value:
            best = TrainedClassifier(epoch, value)
            best_weights = copy.deepcopy(model.state_dict())
        # A perfect value cannot be bettered, and of equal epochs the first is kept: training on would change nothing.
        waited = epoch - best.best_epoch
        if best.development_value == PERFECT or (
            protocol.patience_epochs is not None and waited >= protocol.patience_epochs
        ):
            on_step(total_steps - step)
            break
    if best_weights is not None:
        model.load_state_dict(best_weights)
    return best


def step_count(n_examples: int, protocol: ProtocolSettings) -> int:
    """Optimiser steps of a run that is not stopped early."""
    return protocol.epochs * math.ceil(n_examples / protocol.batch_size)


def _adamw(model: nn.Module, protocol: ProtocolSettings) -> torch.optim.AdamW:
    return torch.optim.AdamW(
        parameter_groups(model, protocol.weight_decay),
        lr=protocol.learning_rate,
        betas=(protocol.beta1, protocol.beta2),
        eps=protocol.epsilon,
        fused=True,
    )


def _update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    train: EncodedExamples,
    batch: np.ndarray,
    rate: float,
    max_gradient_norm: float | None,
    pad_id: int,
    device: torch.device,
) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    ids, mask = pad_batch([train.sequences[index] for index in batch], pad_id)
    logits = model(ids.to(device), mask.to(device))
    labels = torch.from_numpy(train.labels[batch]).to(device)
    loss = nn.functional.cross_entropy(logits.float(), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), math.inf if max_gradient_norm is None else max_gradient_norm)
    if not (math.isfinite(norm.item()) and math.isfinite(loss.item())):
        raise NotFiniteError("the loss or its gradient is not finite")
    optimizer.step()


# Not inference mode: a tensor that the model kept from here could not take part in the next epoch's gradients.
@torch.no_grad()
def predict(model: nn.Module, examples: EncodedExamples, pad_id: int, device: torch.device) -> np.ndarray:
    """The most probable label of every example, int64 [n]; the first of equal ones.

    Raises NotFiniteError for a logit that is not finite.
    """
    model.eval()
    predictions = np.empty(len(examples.sequences), dtype=np.int64)
    for batch in prediction_batches(examples.lengths, PREDICTION_BATCH_SIZE):
        ids, mask = pad_batch([examples.sequences[index] for index in batch], pad_id)
        logits = model(ids.to(device), mask.to(device)).float().cpu()
        if not bool(torch.isfinite(logits).all()):
            raise NotFiniteError("a logit is not finite")
        predictions[batch] = logits.argmax(dim=-1).numpy()
    return predictions
