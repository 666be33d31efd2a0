"""The optimisers, LAMB and AdamW, which parameters get weight decay, and the learning rate of each step.

LAMB is that of LTG-BERT and ELC-BERT (You et al. 2020, arXiv:1904.00962, in the variant of both papers). Per tensor:
Adam with bias correction, decoupled weight decay, and a step that is rescaled by ||p|| / ||u||. A group without weight
decay gets NO trust ratio, so its parameters take plain Adam steps with the full learning rate. There is no clamp on the
ratio and no normalisation of gradients. Promise: equal to the published trajectory within fp32 rounding, and the same
bits on the same machine.

The default of what is decayed is the reading of the BabyLM code (ELC-BERT): every weight matrix; biases, layer norms,
embeddings, layer weights and learned scales are not, and a word embedding that is tied to the output layer counts as an
embedding. LTG-BERT's BNC code reaches the tied matrix through the output layer and decays it with the head
(docs/papers/ltg-bert.md, "Optimiser"); the reduced-vocabulary study decays every parameter
(docs/papers/reduced-vocabulary.md, "Differences").

The learning rate is a pure function of the step, so that a resumed run needs no scheduler state. `cosine` is that of
LTG-BERT: a linear warm-up from exactly 0 (the first update has rate 0), then half a cosine down to a fraction of the
peak; `linear_as_published` is the other one of its code (docs/papers/ltg-bert.md, "Learning rate"), and
`inverse_square_root` that of the reduced-vocabulary study, Section 4.2 (docs/papers/reduced-vocabulary.md,
"Pretraining"). Steps count optimiser updates from 0, those that fp16 skips included, as in LTG-BERT's BNC code.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hatchery.settings.fields import ABSENT
from hatchery.training.settings import OptimizerSettings, ScheduleSettings


class PlainOptimizer(torch.optim.Optimizer):
    """The base of optimisers, with PyTorch's methods as they are under their decorators."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class AdamW(PlainOptimizer, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class Lamb(PlainOptimizer):
    """LAMB over fp32 parameters; all tensors of a group are updated together with torch's `foreach` operations.

    State of each parameter: `step` (int64, zero-dimensional, on the CPU), `exp_avg` and `exp_avg_sq` (like the
    parameter). Parameters without a gradient are left alone.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-6,
        weight_decay: float = 0.1,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:  # type: ignore[override]
        """Update all parameters once from their `.grad`; returns what `closure` returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            if parameters:
                self._update(parameters, group)
        return loss

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        gradients: list[Tensor] = [parameter.grad for parameter in parameters]  # type: ignore[misc]
        states = [self._state_of(parameter) for parameter in parameters]
        averages = [state["exp_avg"] for state in states]
        squares = [state["exp_avg_sq"] for state in states]
        for state in states:
            state["step"] += 1
        counts = [int(state["step"]) for state in states]

        torch._foreach_mul_(averages, beta1)
        torch._foreach_add_(averages, gradients, alpha=1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - beta2)

        denominators = torch._foreach_div(squares, [1 - beta2**count for count in counts])
        torch._foreach_sqrt_(denominators)
        torch._foreach_add_(denominators, group["eps"])
        updates = torch._foreach_div(averages, [1 - beta1**count for count in counts])
        torch._foreach_div_(updates, denominators)

        if group["weight_decay"] > 0:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
            torch._foreach_mul_(updates, _trust_ratios(parameters, updates))
        torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.int64)
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state


def _trust_ratios(parameters: Sequence[Tensor], updates: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """||p|| / ||u|| per tensor, zero-dimensional each; 1 where either norm is zero (a tensor that starts at zero)."""
    parameter_norms = torch.stack(torch._foreach_norm(list(parameters)))
    update_norms = torch.stack(torch._foreach_norm(list(updates)))
    usable = (parameter_norms > 0) & (update_norms > 0)
    ratios = torch.where(usable, parameter_norms / update_norms, torch.ones_like(update_norms))
    return tuple(ratios.unbind())


UNDECAYED_NAMES = ("bias", "norm", "embedding", "layer_weights", "head_scale", "residual_scale")
# Names in models of all families; the sentence-pair head ("pair_head.") belongs to the body.
HEAD, OUTPUT_MATRIX, WORD_EMBEDDING = "head.", "head.vocabulary_weight", "word_embedding.weight"

GroupName = Literal["body", "head", "undecayed"]


def is_decayed(name: str) -> bool:
    """Whether the parameter called `name` is one that gets weight decay where not all do."""
    return not any(part in name for part in UNDECAYED_NAMES)


def parameter_groups(model: nn.Module, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Optimiser groups over all trainable parameters, each in the model's order; empty groups are left out.

    They are: the decayed parameters; those of the language-model head, if `settings.head_weight_decay` is given; and
    the undecayed ones. Tied parameters appear once, under their first name. In an untied model the output matrix is
    decayed in every reading, and `tied_embedding` has nothing to decide.
    """
    parameters = dict(model.named_parameters())
    embedding_is_output = settings.tied_embedding == "output" and OUTPUT_MATRIX not in parameters

    def group_of(name: str) -> GroupName:
        is_tied_output = embedding_is_output and name.endswith(WORD_EMBEDDING)
        if not (settings.decay == "all" or is_tied_output or is_decayed(name)):
            return "undecayed"
        of_head = is_tied_output or name.startswith(HEAD)
        return "head" if of_head and settings.head_weight_decay is not None else "body"

    members: dict[GroupName, list[nn.Parameter]] = {"body": [], "head": [], "undecayed": []}
    for name, parameter in parameters.items():
        if parameter.requires_grad:
            members[group_of(name)].append(parameter)
    decays = {"body": settings.weight_decay, "head": settings.head_weight_decay, "undecayed": 0.0}
    return [{"params": found, "weight_decay": decays[group]} for group, found in members.items() if found]


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimiser over the parameter groups of `model`, which must already lie on its device."""
    groups = parameter_groups(model, settings)
    betas = (settings.beta1, settings.beta2)
    if settings.name == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    return AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, foreach=True)


# Where torch's linear schedulers, which `linear_as_published` is made of, start and end instead of at 0.
NEARLY_ZERO = 1e-9


def learning_rate(peak: float, schedule: ScheduleSettings, step: int, steps: int) -> float:
    """The rate of update number `step` (from 0) of a run of `steps` updates."""
    return peak * learning_rate_factor(schedule, step, steps)


def learning_rate_factor(schedule: ScheduleSettings, step: int, steps: int) -> float:
    """The share of the peak rate, 0 to 1, for update number `step` of `steps`.

    `cosine` and `linear` fall from the peak after the warm-up to `final_fraction` at the end, `constant` stays at the
    peak. `linear_as_published` multiplies the warm-up ramp with a decay over all steps: it ends near 0 whatever
    `final_fraction` says. `inverse_square_root` of a long run ends at the root of the warm-up's share of the steps.
    """
    warmup = warmup_steps(schedule, steps)
    if schedule.name == "linear_as_published":
        ramp = 1.0 if step >= warmup else NEARLY_ZERO + (1 - NEARLY_ZERO) * step / warmup
        return ramp * (1 + (NEARLY_ZERO - 1) * min(step, steps) / max(1, steps))
    if schedule.name == "inverse_square_root":
        # Step 0 counts as 1, as published: the first two updates have the same rate.
        count, width = max(step, 1), max(warmup, 1)
        return min(math.sqrt(width / count), count / width)
    if step < warmup:
        return step / warmup
    if schedule.name == "constant":
        return 1.0
    progress = (step - warmup) / max(1, steps - warmup)
    floor = schedule.final_fraction
    if schedule.name == "linear":
        return max(floor, 1 - (1 - floor) * progress)
    return max(floor, floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))


def warmup_steps(schedule: ScheduleSettings, steps: int) -> int:
    """Updates of the warm-up: `warmup_steps`, else `int(warmup_fraction * steps)`, at most `warmup_steps_limit`."""
    if schedule.warmup_steps is not ABSENT:
        return schedule.warmup_steps
    warmup = int(schedule.warmup_fraction * steps)
    return warmup if schedule.warmup_steps_limit is None else min(schedule.warmup_steps_limit, warmup)
