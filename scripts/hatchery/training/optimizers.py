"""The optimisers, LAMB and AdamW, and which parameters get weight decay.

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
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hatchery.training.settings import OptimizerSettings


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


@dataclass(frozen=True)
class Grouping:
    """What decides the group of a parameter besides its name; the defaults are those of `OptimizerSettings`."""

    decays_all: bool = False
    # A tied word embedding is the matrix of the output layer.
    embedding_is_output: bool = False
    # The language-model head has a group of its own.
    has_head_group: bool = False

    def group_of(self, name: str) -> GroupName:
        """The group of the parameter called `name`."""
        is_tied_output = self.embedding_is_output and name.endswith(WORD_EMBEDDING)
        if not (self.decays_all or is_tied_output or is_decayed(name)):
            return "undecayed"
        return "head" if self.has_head_group and (is_tied_output or name.startswith(HEAD)) else "body"


def is_decayed(name: str) -> bool:
    """Whether the parameter called `name` is one that gets weight decay where not all do."""
    return not any(part in name for part in UNDECAYED_NAMES)


def parameter_groups(model: nn.Module, settings: OptimizerSettings | float) -> list[dict[str, Any]]:
    """Optimiser groups over all trainable parameters, each in the model's order; empty groups are left out.

    They are: the decayed parameters; those of the language-model head, if `settings.head_weight_decay` is given; and
    the undecayed ones. A number instead of settings is the weight decay of the default grouping. Tied parameters
    appear once, under their first name. In an untied model the output matrix is decayed in every reading, and
    `tied_embedding` has nothing to decide.
    """
    names = {name for name, _ in model.named_parameters()}
    if isinstance(settings, OptimizerSettings):
        weight_decay, head_weight_decay = settings.weight_decay, settings.head_weight_decay
        grouping = Grouping(
            decays_all=settings.decay == "all",
            embedding_is_output=settings.tied_embedding == "output" and OUTPUT_MATRIX not in names,
            has_head_group=head_weight_decay is not None,
        )
    else:
        weight_decay, head_weight_decay, grouping = settings, None, Grouping()
    members: dict[GroupName, list[nn.Parameter]] = {"body": [], "head": [], "undecayed": []}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            members[grouping.group_of(name)].append(parameter)
    decays = {"body": weight_decay, "head": head_weight_decay, "undecayed": 0.0}
    return [{"params": found, "weight_decay": decays[group]} for group, found in members.items() if found]


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimiser over the parameter groups of `model`, which must already lie on its device."""
    groups = parameter_groups(model, settings)
    betas = (settings.beta1, settings.beta2)
    if settings.name == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    return AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, foreach=True)
