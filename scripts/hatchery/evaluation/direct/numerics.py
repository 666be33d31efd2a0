"""The state of a caller's model and of PyTorch, which an evaluation changes and puts back."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hatchery.evaluation.pretrained import Pretrained
from hatchery.numerics import kept_settings


@contextmanager
def kept_numerics(model: Pretrained) -> Iterator[None]:
    """Put PyTorch's settings, its random states, and device and training mode of all modules back at the end."""
    network: torch.nn.Module = model.network
    modes = [(module, module.training) for module in network.modules()]
    device = next(iter(network.parameters())).device
    with kept_settings():
        try:
            yield
        finally:
            network.to(device)
            for module, mode in modes:
                module.training = mode
