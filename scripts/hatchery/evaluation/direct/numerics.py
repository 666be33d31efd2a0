"""Save and restore the states that an evaluation changes: the state of a caller's model, and PyTorch's settings and
random states."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn

from hatchery.evaluation.pretrained import Pretrained
from hatchery.numerics import kept_settings


@contextmanager
def kept_numerics(model: Pretrained) -> Iterator[None]:
    """On exit, restore PyTorch's settings and random states, the device and training mode of all modules, and
    `requires_grad` of all parameters. Training a probe sets `requires_grad` to False.
    """
    network: nn.Module = model.network
    modes = [(module, module.training) for module in network.modules()]
    gradients = [(parameter, parameter.requires_grad) for parameter in network.parameters()]
    device = device_of(network)
    with kept_settings():
        try:
            yield
        finally:
            network.to(device)
            for module, mode in modes:
                module.training = mode
            for parameter, requires_grad in gradients:
                parameter.requires_grad_(requires_grad)


def device_of(network: nn.Module) -> torch.device:
    """Return the device of a network's parameters and buffers; the CPU for a network without parameters and buffers."""
    first = next(chain(network.parameters(), network.buffers()), None)
    return torch.device("cpu") if first is None else first.device
