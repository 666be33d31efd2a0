"""Muon and NorMuon: optimisers whose updates of hidden weight matrices have nearly equal singular values.

Muon (Jordan et al. 2024; `torch.optim.Muon`) replaces a matrix's momentum by the nearest orthogonal matrix,
approximated by five Newton-Schulz iterations. NorMuon (Li et al. 2025, arXiv:2510.05491) omits Nesterov's step and
divides each row by the root of a running mean of its squares. Both optimisers scale the update to a root mean square of
0.2, as in Adam's updates. So Adam's learning rate and weight decay can be used (Liu et al. 2025, arXiv:2502.16982).
LAMB or AdamW updates embeddings, vectors and heads. A matrix of several projections is treated as one matrix.
"""

import math
from typing import Any

import torch
from torch import Tensor

from hatchery.training.lamb import Lamb, add_weight_decay

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of the polynomial of a Newton-Schulz iteration. After all iterations, singular values are between 0.7
and 1.2 if they were at least 0.002 of the matrix's Frobenius norm.
"""
ITERATIONS = 5
UPDATE_RMS = 0.2
"""Root mean square of an update before it is multiplied by the learning rate, as in Adam."""
EPSILON = 1e-7


class Muon(Lamb):
    """Muon or NorMuon for groups with `matrices: True`; `Lamb` for all other groups.

    The optimiser state of a matrix contains `momentum`, with the shape of the matrix. For NorMuon, the state also
    contains `row_squares`, with the shape (rows, 1).
    """

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        if not group.get("matrices"):
            super()._update(parameters, group)
            return
        by_shape: dict[torch.Size, list[Tensor]] = {}
        for parameter in parameters:
            by_shape.setdefault(parameter.shape, []).append(parameter)
        for same in by_shape.values():
            self._update_matrices(same, group)

    def _update_matrices(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Apply the optimiser's step to weight matrices, which must have equal shapes. The matrices are stacked and
        orthogonalised together.
        """
        gradients: list[Tensor] = [parameter.grad for parameter in parameters]  # type: ignore[misc]
        momenta = [self._momentum_of(parameter) for parameter in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        rows, columns = parameters[0].shape
        if group["row_decay"] is None:
            # Nesterov's momentum is the running mean after a second update with the same gradient.
            ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
            updates = orthogonalised(torch.stack(list(ahead)))
            updates *= UPDATE_RMS * math.sqrt(max(rows, columns))
        else:
            updates = orthogonalised(torch.stack(momenta))
            updates /= self._row_scales(parameters, updates, group["row_decay"])
            norms = torch.linalg.vector_norm(updates, dim=(1, 2), keepdim=True)
            updates *= UPDATE_RMS * math.sqrt(rows * columns) / norms.clamp(min=EPSILON)
        apart = list(updates.unbind())
        add_weight_decay(apart, parameters, group)
        torch._foreach_add_(parameters, apart, alpha=-group["lr"] * group["rate_factor"])

    def _momentum_of(self, parameter: Tensor) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state["momentum"]

    def _row_scales(self, parameters: list[Tensor], updates: Tensor, decay: float) -> Tensor:
        """Update each row's running mean of the mean square of `updates`. Return the square roots of these running
        means: [matrices, rows, 1].
        """
        squares = updates.square().mean(dim=2, keepdim=True)
        for parameter, square in zip(parameters, squares, strict=True):
            state = self.state[parameter]
            if "row_squares" not in state:
                state["row_squares"] = torch.zeros_like(square)
            state["row_squares"].lerp_(square, 1 - decay)
        kept = torch.stack([self.state[parameter]["row_squares"] for parameter in parameters])
        return kept.sqrt().add_(EPSILON)


def orthogonalised(matrices: Tensor, precision: torch.dtype | None = None) -> Tensor:
    """Return the nearest orthogonal matrix of each of `matrices` [matrices, rows, columns], approximately.

    Singular values of an input matrix become values from 0.7 to 1.2; values below 0.002 times the matrix's Frobenius
    norm may become smaller values. `precision` is the precision of matrix products: by default bf16 on a GPU and fp32
    on a CPU. The result has the dtype of `matrices`.
    """
    if precision is None:
        precision = torch.bfloat16 if matrices.device.type == "cuda" else torch.float32
    tall = matrices.shape[1] > matrices.shape[2]
    updates = (matrices.mT if tall else matrices).to(precision)
    # Division by the Frobenius norm makes the spectral norm at most 1, which the iteration requires.
    updates = updates / torch.linalg.vector_norm(updates, dim=(1, 2), keepdim=True).clamp(min=EPSILON)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = updates @ updates.mT
        updates = torch.baddbmm(updates, torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth), updates, beta=first)
    return (updates.mT if tall else updates).to(matrices.dtype)
