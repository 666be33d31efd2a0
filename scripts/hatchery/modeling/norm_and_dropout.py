"""Layer norm in full precision, and a fast dropout on the CPU.

Under bf16 autocast, torch computes layer norms in fp32 on CUDA but not on the CPU; `LayerNorm` computes in fp32 on both
devices. On the CPU, torch's dropout takes as long as a matrix product in Hatchery's small models. `Dropout` is faster,
because it draws only 16 random bits per element.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError


def full_precision(tensor: Tensor) -> Tensor:
    """Return `tensor` in fp32 if it is bf16 or fp16; otherwise, return it unchanged."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


class LayerNorm(nn.Module):
    """Layer norm over the last dimension, computed and returned in full precision.

    If `affine` is false, the layer norm has no parameters. LTG-BERT uses layer norms without parameters everywhere
    except after attention and on the relative embedding (docs/papers/ltg-bert.md, "Model").
    """

    def __init__(self, size: int, eps: float, affine: bool = False) -> None:
        super().__init__()
        self.size, self.eps = size, eps
        self.weight = nn.Parameter(torch.ones(size)) if affine else None
        self.bias = nn.Parameter(torch.zeros(size)) if affine else None

    def forward(self, tensor: Tensor) -> Tensor:
        """Normalise `tensor` [..., size]."""
        # Convert the parameters to fp32, too, because the whole model may have been converted to half precision.
        weight = None if self.weight is None else full_precision(self.weight)
        bias = None if self.bias is None else full_precision(self.bias)
        return F.layer_norm(full_precision(tensor), (self.size,), weight, bias, self.eps)


class Dropout(nn.Module):
    """Inverted dropout. In evaluation mode, or if `probability` is 0, the input is returned without a copy."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    @property
    def active_probability(self) -> float:
        """Return the current probability of dropping elements: 0 in evaluation mode."""
        return self.probability if self.training else 0.0

    def forward(self, tensor: Tensor) -> Tensor:
        """Set random elements of `tensor` to 0 and scale up the other elements, so that the mean is unchanged."""
        if self.active_probability == 0:
            return tensor
        if tensor.device.type != "cpu" or torch.compiler.is_compiling():
            return F.dropout(tensor, self.probability)
        return _cpu_dropout(tensor, self.probability)


def _cpu_dropout(tensor: Tensor, probability: float) -> Tensor:
    size = tensor.numel()
    words = torch.empty((size + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    threshold = round(probability * 2**16)
    # Write the results of the comparison into the integer tensor, because torch vectorises an in-place comparison of
    # integers. In contrast, it converts a Boolean tensor to numbers element by element.
    kept = words.view(torch.int16)[:size].view(tensor.shape).ge_(threshold - 2**15)
    return tensor * kept.to(tensor.dtype).mul_(1 / (1 - threshold / 2**16))


def set_dropout(module: nn.Module, probability: float) -> None:
    """Use `probability` at every dropout inside `module`. Raises ModelError unless 0 <= probability < 1."""
    if not 0 <= probability < 1:
        raise ModelError(f"dropout: got {probability!r}, expected 0 <= probability < 1")
    for child in module.modules():
        if isinstance(child, Dropout):
            child.probability = probability
