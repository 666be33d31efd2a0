"""Build the optimiser of a run's model."""

import inspect
from typing import Any

import torch
from torch import nn

from hatchery.training.decay_groups import is_hidden_matrix, parameter_groups
from hatchery.training.lamb import Lamb, PlainOptimizer
from hatchery.training.muon import Muon
from hatchery.training.optimizer_settings import OptimizerSettings


class AdamW(PlainOptimizer, torch.optim.AdamW):
    """`torch.optim.AdamW` without the decorators of PyTorch's optimiser methods."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """Return the optimiser of the parameters of `model`, which must already be on its device."""
    groups = parameter_groups(model, settings)
    betas = (settings.beta1, settings.beta2)
    if settings.is_plain_adamw:
        return AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, foreach=True)
    kind = Lamb
    if settings.orthogonalises:
        kind, groups = Muon, _with_matrices_apart(model, groups, settings)
    return kind(
        groups,
        lr=settings.learning_rate,
        betas=betas,
        eps=settings.epsilon,
        trust_ratio=(settings.others if settings.orthogonalises else settings.name) == "lamb",
        cautious=settings.cautious_decay,
        peak_rate=settings.learning_rate if settings.decay_follows_rate else None,
    )


def _with_matrices_apart(
    model: nn.Module, groups: list[dict[str, Any]], settings: OptimizerSettings
) -> list[dict[str, Any]]:
    """Return the parameter groups, with each group's hidden weight matrices as a separate group for Muon."""
    hidden = {id(parameter) for name, parameter in model.named_parameters() if is_hidden_matrix(name, parameter)}
    how = {
        "matrices": True,
        "momentum": settings.momentum,
        "row_decay": settings.row_decay if settings.name == "normuon" else None,
        "rate_factor": (settings.matrix_learning_rate or settings.learning_rate) / settings.learning_rate,
    }
    result = []
    for group in groups:
        matrices = [parameter for parameter in group["params"] if id(parameter) in hidden]
        others = [parameter for parameter in group["params"] if id(parameter) not in hidden]
        result += [{**group, "params": matrices, **how}] if matrices else []
        result += [{**group, "params": others}] if others else []
    return result
