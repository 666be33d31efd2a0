"""Random weights that depend on a seed and the name of a tensor, and on nothing else.

Every tensor has a stream of random numbers of its own, drawn on the CPU, so adding a module, another order of
construction or another device leaves all other tensors as they were.
"""

import hashlib
import math

import torch
from torch import Tensor, nn


def stream(seed: int, name: str) -> torch.Generator:
    """The generator of the tensor called `name`."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))


@torch.no_grad()
def truncated_normal_(tensor: Tensor, deviation: float, seed: int, name: str) -> None:
    """Fill `tensor` from a normal of standard deviation `deviation` cut at two of them."""
    values = torch.empty(tensor.shape, dtype=torch.float32)
    nn.init.trunc_normal_(values, std=deviation, a=-2 * deviation, b=2 * deviation, generator=stream(seed, name))
    tensor.copy_(values)


@torch.no_grad()
def normal_(tensor: Tensor, deviation: float, seed: int, name: str) -> None:
    """Fill `tensor` from a normal of standard deviation `deviation`."""
    values = torch.empty(tensor.shape, dtype=torch.float32)
    tensor.copy_(values.normal_(0.0, deviation, generator=stream(seed, name)))


def xavier_deviation(tensor: Tensor) -> float:
    """Standard deviation sqrt(2 / (fan-in + fan-out)) of Xavier's normal initialisation of a matrix."""
    return math.sqrt(2 / sum(tensor.shape))
