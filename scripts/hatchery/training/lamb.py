"""LAMB (You et al. 2020, arXiv:1904.00962), in the variant of the code of LTG-BERT and ELC-BERT.

Each tensor gets Adam's update with bias correction and decoupled weight decay, multiplied by the trust ratio `||p|| /
||u||` (norms of parameter and update). A parameter group without weight decay has NO trust ratio, so its parameters get
plain Adam updates with the full learning rate. The trust ratio is not clamped, and gradients are not normalised.
Updates equal those of LTG-BERT's code within fp32 rounding, and are bitwise reproducible on one machine.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class PlainOptimizer(torch.optim.Optimizer):
    """Base class of optimisers whose methods lack the decorators of PyTorch's optimiser methods."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class Lamb(PlainOptimizer):
    """LAMB for fp32 parameters; torch's `foreach` operations update all tensors of a group together.

    State of each parameter: `step` (int64, zero-dimensional, on the CPU), `exp_avg` and `exp_avg_sq` (both with the
    shape of the parameter). Parameters without a gradient stay unchanged.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-6,
        weight_decay: float = 0.1,
        trust_ratio: bool = True,
        cautious: bool = False,
        peak_rate: float | None = None,
    ) -> None:
        """If `trust_ratio` is false, this optimiser is AdamW. `cautious` and `peak_rate` change the weight decay: see
        `add_weight_decay`.
        """
        defaults: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "trust_ratio": trust_ratio, "cautious": cautious, "peak_rate": peak_rate})

    @torch.no_grad()
    def step(self, closure: Callable[[], Tensor] | None = None) -> Tensor | None:  # type: ignore[override]
        """Update all parameters once from their `.grad`; return the value of `closure`, or None."""
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

        if add_weight_decay(updates, parameters, group) and group["trust_ratio"]:
            torch._foreach_mul_(updates, _trust_ratios(parameters, updates))
        torch._foreach_add_(parameters, updates, alpha=-group["lr"])

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.int64)
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state


def add_weight_decay(
    updates: tuple[Tensor, ...] | list[Tensor], parameters: list[Tensor], group: Mapping[str, Any]
) -> bool:
    """Add weight decay to `updates`, the updates of a parameter group before they are multiplied by the learning rate.
    Return False if the group's weight decay is 0.

    If `peak_rate` is set, the decay is multiplied by the current learning rate divided by `peak_rate`. If `cautious` is
    true, only the elements that the update moves towards zero are decayed (Chen et al. 2025, arXiv:2510.12402).
    """
    decay = group["weight_decay"]
    if decay <= 0:
        return False
    if group["peak_rate"] is not None:
        decay *= group["lr"] / group["peak_rate"]
    if group["cautious"]:
        pairs = zip(parameters, updates, strict=True)
        decayed = [parameter * (parameter * update > 0) for parameter, update in pairs]
        torch._foreach_add_(updates, decayed, alpha=decay)
    else:
        torch._foreach_add_(updates, parameters, alpha=decay)
    return True


def _trust_ratios(parameters: Sequence[Tensor], updates: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the trust ratio `||p|| / ||u||` of each tensor, zero-dimensional; 1 if a norm is zero, for example for a
    tensor that starts at zero.
    """
    parameter_norms = torch.stack(torch._foreach_norm(list(parameters)))
    update_norms = torch.stack(torch._foreach_norm(list(updates)))
    usable = (parameter_norms > 0) & (update_norms > 0)
    ratios = torch.where(usable, parameter_norms / update_norms, torch.ones_like(update_norms))
    return tuple(ratios.unbind())
