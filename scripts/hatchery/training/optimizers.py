"""The optimiser of a run: LAMB or AdamW over the parameter groups of its model."""

import inspect

import torch
from torch import nn

from hatchery.training.decay_groups import parameter_groups
from hatchery.training.lamb import Lamb, PlainOptimizer
from hatchery.training.settings import OptimizerSettings


class AdamW(PlainOptimizer, torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimiser over the parameter groups of `model`, which must already lie on its device."""
    groups = parameter_groups(model, settings)
    betas = (settings.beta1, settings.beta2)
    if settings.name == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    return AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, foreach=True)
