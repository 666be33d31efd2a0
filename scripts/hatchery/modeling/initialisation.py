"""Random initial weights that depend only on a seed and the names of the tensors.

Every tensor has its own random stream, drawn on the CPU. So the weights of a tensor do not depend on other modules, on
the order of construction, or on the device. The families define the distributions, for example in `ltg.encoder`.
"""

import hashlib
import math

import torch
from torch import Tensor, nn


def stream(seed: int, name: str) -> torch.Generator:
    """Return the random generator of the tensor called `name`; it depends only on `seed` and `name`."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))


@torch.no_grad()
def truncated_normal_(tensor: Tensor, deviation: float, seed: int, name: str) -> None:
    """Fill `tensor` with draws from a normal distribution of standard deviation `deviation`, truncated at two standard
    deviations. `seed` and `name` select the random numbers (see `stream`).
    """
    values = torch.empty(tensor.shape, dtype=torch.float32)
    nn.init.trunc_normal_(values, std=deviation, a=-2 * deviation, b=2 * deviation, generator=stream(seed, name))
    tensor.copy_(values)


@torch.no_grad()
def normal_(tensor: Tensor, deviation: float, seed: int, name: str) -> None:
    """Fill `tensor` with draws from a normal distribution of standard deviation `deviation`. `seed` and `name` select
    the random numbers (see `stream`).
    """
    values = torch.empty(tensor.shape, dtype=torch.float32)
    tensor.copy_(values.normal_(0.0, deviation, generator=stream(seed, name)))


@torch.no_grad()
def uniform_(tensor: Tensor, deviation: float, seed: int, name: str) -> None:
    """Fill `tensor` with draws from a uniform distribution around 0 of standard deviation `deviation`. `seed` and
    `name` select the random numbers (see `stream`).
    """
    values, bound = torch.empty(tensor.shape, dtype=torch.float32), math.sqrt(3) * deviation
    tensor.copy_(values.uniform_(-bound, bound, generator=stream(seed, name)))


def xavier_deviation(tensor: Tensor) -> float:
    """Return the standard deviation sqrt(2 / (fan-in + fan-out)) of Xavier's normal initialisation of a matrix."""
    return math.sqrt(2 / sum(tensor.shape))


def initial_standard_deviation(hidden_size: int) -> float:
    """Return sqrt(2 / (5 * hidden_size)), the standard deviation of LTG-BERT's initial weights before truncation at two
    standard deviations (LTG-BERT, Section 4).
    """
    return math.sqrt(2 / (5 * hidden_size))


@torch.no_grad()
def initialise_linear_layers_(module: nn.Module, deviation: float, seed: int) -> None:
    """Draw the weights of all linear layers inside `module` from a normal distribution of standard deviation
    `deviation`, truncated at two standard deviations. Set their biases to 0.
    """
    for name, child in module.named_modules():
        if isinstance(child, nn.Linear):
            truncated_normal_(child.weight, deviation, seed, name)
            if child.bias is not None:
                child.bias.zero_()
