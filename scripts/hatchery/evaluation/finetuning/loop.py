"""Train one task model with one seed and one learning rate.

Training uses AdamW with warm-up and a schedule. If there are development data, the model is evaluated on them after
every epoch or after a number of steps. The result is then the best state (docs/papers/babylm-evaluation.md, "Official
fine-tuning"). If `official` is true or there are no development data, the result is the last state.

The loop is independent of the task: the data object makes the batches, the model computes the losses, and a function
scores predictions. Data order and dropout use separate random streams. A run with the same seed on the same device has
the same result.

The setting `decay` selects the parameters with weight decay. In the pretraining code of LTG-BERT and ELC-BERT, only
weight matrices decay. In BabyLM's official pipeline of 2023, all parameters decay except biases and norms; embeddings
also decay. In BabyLM's pipeline since 2025, all parameters decay. LTG-BERT's code trains the classifier with a separate
learning rate (docs/papers/ltg-bert.md, "Differences"). The optimiser does not contain frozen parameters.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.errors import EvaluationError
from hatchery.evaluation.draws import derived_seed
from hatchery.evaluation.finetuning.batches import (
    EncodedData,
    NotFiniteError,
    Predicted,
    batches_per_epoch,
    predict,
    training_batches,
)
from hatchery.evaluation.tasks.settings import ProtocolSettings
from hatchery.modeling.heads.task_model import TaskModel
from hatchery.training.decay_groups import is_decayed
from hatchery.training.learning_rates import learning_rate_factor
from hatchery.training.optimizers import AdamW
from hatchery.training.settings import ScheduleSettings

# The largest possible metric value, because all metrics are fractions or correlations.
HIGHEST_VALUE = 1.0


@dataclass(frozen=True)
class TrainedModel:
    """The model state that a training selected: the number of optimiser steps that led to this state, and the selection
    metric of this state on the development data (None if it was not measured).
    """

    best_step: int
    development_value: float | None


class BestState:
    """The best state of a run so far: a copy of its trained parameters. Among states with equal development values, the
    first is the best.

    Every state with a higher development value becomes the best state. Training stops after `patience_evaluations`
    evaluations in a row, none of which increased the highest value by more than `minimum_improvement`. These are the
    rules of BabyLM's official trainer (docs/papers/babylm-evaluation.md, "Official fine-tuning"); it is inferred that
    ELC-BERT's early stopping has the same rules. A run without evaluations keeps its last state.
    """

    def __init__(self, model: nn.Module, patience_evaluations: int | None, minimum_improvement: float) -> None:
        self._trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self._patience, self._minimum = patience_evaluations, minimum_improvement
        self._copies: dict[str, Tensor] = {}
        self._waited, self._highest = 0, -math.inf
        self.best: TrainedModel | None = None

    @torch.no_grad()
    def note(self, step: int, value: float) -> bool:
        """Record the development value after `step` steps; return True if training should stop, because the patience is
        exhausted or the highest possible value is reached.

        NaN (a correlation of constant predictions) ranks below every number.
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
        # At the highest possible value, training also stops: no later state can be better, and among equal states the
        # first is kept.
        out_of_patience = self._patience is not None and self._waited >= self._patience
        return out_of_patience or value >= HIGHEST_VALUE

    @torch.no_grad()
    def restore(self, last_step: int) -> TrainedModel:
        """Load the best state into the model. A model that was never evaluated keeps its state after `last_step`."""
        if self.best is None:
            return TrainedModel(last_step, None)
        for name, parameter in self._trained.items():
            parameter.copy_(self._copies[name])
        return self.best


NEVER_DECAYED = ("bias", "norm")


def build_optimizer(model: TaskModel, protocol: ProtocolSettings, learning_rate: float) -> AdamW:
    """Return the optimiser of `model`, which must already be on its device; each parameter group stores its peak
    learning rate under the key `peak`.
    """
    fresh = {id(parameter) for parameter in model.fresh_parameters()}
    head_rate = learning_rate if protocol.head_learning_rate is None else protocol.head_learning_rate
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in named_by_role(model):
        if parameter.requires_grad:
            decay = protocol.weight_decay if decays(name, protocol) else 0.0
            peak = head_rate if id(parameter) in fresh else learning_rate
            groups.setdefault((peak, decay), []).append(parameter)
    described = [
        {"params": parameters, "peak": peak, "weight_decay": decay} for (peak, decay), parameters in groups.items()
    ]
    betas = (protocol.beta1, protocol.beta2)
    return AdamW(described, lr=learning_rate, betas=betas, eps=protocol.epsilon, fused=True)


def named_by_role(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield each parameter once, with the text `<name>.<role>`. The role is `norm`, `embedding` or empty.

    The role is determined from the class of the parameter's module, because the parameter names of external models do
    not contain the role.
    """
    roles: dict[int, str] = {}
    for module in model.modules():
        is_norm = "norm" in type(module).__name__.lower()
        role = "norm" if is_norm else "embedding" if isinstance(module, nn.Embedding) else ""
        roles |= {id(parameter): role for parameter in module.parameters(recurse=False)}
    for name, parameter in model.named_parameters():
        yield f"{name}.{roles[id(parameter)]}", parameter


def decays(name: str, protocol: ProtocolSettings) -> bool:
    """Return True if weight decay applies to a parameter under `protocol.decay`; `name` is the parameter's text from
    `named_by_role`."""
    if protocol.decay == "matrices":
        return is_decayed(name)
    return protocol.decay == "all" or not any(part in name for part in NEVER_DECAYED)


def set_rates(optimizer: torch.optim.Optimizer, protocol: ProtocolSettings, step: int, steps: int) -> None:
    """Set the learning rate of all parameter groups for update `step` (counted from 0) of a training with `steps`
    updates.
    """
    schedule = ScheduleSettings(protocol.schedule, protocol.warmup_fraction, protocol.final_fraction)
    factor = learning_rate_factor(schedule, step, steps)
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor


# On a GPU, read the check for non-finite values only once in this number of steps, because each reading waits for the
# device. The check covers all values since the start of the run, so no non-finite value is missed.
STEPS_BETWEEN_LOOKS_ON_GPU = 50


@dataclass(frozen=True)
class Development:
    """Development data, and the function `value`, which computes the selection metric from the predictions for these
    data. Higher values are better.
    """

    data: EncodedData
    value: Callable[[Predicted], float]


def train_model(
    model: TaskModel,
    train: EncodedData,
    development: Development | None,
    protocol: ProtocolSettings,
    learning_rate: float,
    seed: int,
    device: torch.device,
    on_step: Callable[[int], None] = lambda steps: None,
) -> TrainedModel:
    """Train `model` on `device`, in place. At the end, the model has its best state by the score on the development
    data. Without development data, or if `protocol.official` is true, it has its last state.

    `on_step` is called with 1 after each optimiser step and, after early stopping, with the number of skipped steps.
    Raises NotFiniteError if the run diverges. Raises EvaluationError if scores of the pretrained model are not finite
    before training, or if incomplete batches are dropped and the training rows do not fill one batch.
    """
    steps = step_count(len(train.lengths), protocol)
    if steps == 0:
        raise EvaluationError(
            f"batch_size: got {protocol.batch_size}, expected at most {len(train.lengths)}, the number of training rows"
        )
    torch.manual_seed(derived_seed(seed, "dropout"))
    optimizer = build_optimizer(model, protocol, learning_rate)
    selection = BestState(model, protocol.patience_evaluations, protocol.minimum_improvement)
    finite = FiniteWatch(device)
    step, last = 0, None
    for epoch in range(1, protocol.epochs + 1):
        batches = training_batches(train.lengths, protocol.batch_size, seed, epoch, protocol.drop_incomplete_batch)
        interval = protocol.evaluation_interval_steps or len(batches)
        for items in batches:
            model.train()
            set_rates(optimizer, protocol, step, steps)
            optimizer.zero_grad(set_to_none=True)
            loss = torch.zeros((), device=device)
            for part in np.array_split(items, min(protocol.gradient_accumulation, len(items))):
                batch = train.batch(part).to(device)
                scores = model(**batch.inputs)
                if step == 0:
                    _check_pretrained(scores)
                its_loss = model.loss(scores, batch.labels).mean * (len(part) / len(items))
                its_loss.backward()
                loss += its_loss.detach()
            finite.add(loss, _clip(optimizer, protocol.max_gradient_norm))
            optimizer.step()
            step += 1
            on_step(1)
            if development is not None and step % interval == 0:
                finite.check()
                value = development.value(predict(model, development.data, device, protocol.edition))
                if selection.note(step, value):
                    on_step(steps - step)
                    return TrainedModel(step, value) if protocol.official else selection.restore(step)
                last = TrainedModel(step, value)
    finite.check()
    return last if protocol.official and last is not None else selection.restore(step)


def step_count(n_items: int, protocol: ProtocolSettings) -> int:
    """Return the number of optimiser steps of a run without early stopping."""
    return protocol.epochs * batches_per_epoch(n_items, protocol.batch_size, protocol.drop_incomplete_batch)


class FiniteWatch:
    """A check, computed on the device, that all losses and gradient norms so far were finite. On a GPU, the result is
    read only every STEPS_BETWEEN_LOOKS_ON_GPU steps.
    """

    def __init__(self, device: torch.device) -> None:
        self._all_finite = torch.ones((), dtype=torch.bool, device=device)
        self._interval = 1 if device.type == "cpu" else STEPS_BETWEEN_LOOKS_ON_GPU
        self._unseen = 0

    def add(self, *values: Tensor) -> None:
        """Add the loss and gradient norm of one step. If a value is not finite, NotFiniteError is raised, possibly some
        steps later.
        """
        for value in values:
            self._all_finite &= torch.isfinite(value).all()
        self._unseen += 1
        if self._unseen >= self._interval:
            self.check()

    def check(self) -> None:
        """Raise NotFiniteError if a loss or gradient norm so far was not finite."""
        self._unseen = 0
        if not bool(self._all_finite):
            raise NotFiniteError("the loss or its gradient is not finite")


def _clip(optimizer: torch.optim.Optimizer, max_gradient_norm: float | None) -> Tensor:
    """Clip gradients and return their L2 norm before clipping."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if max_gradient_norm is not None:
        nn.utils.clip_grads_with_norm_(parameters, max_gradient_norm, norm)
    return norm


def _check_pretrained(scores: Tensor) -> None:
    if not bool(torch.isfinite(scores).all()):
        raise EvaluationError(
            "the pretrained model returns scores that are not finite before any training step: its weights are damaged"
        )
