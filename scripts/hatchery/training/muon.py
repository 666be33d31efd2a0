"""Muon and NorMuon: updates of hidden weight matrices whose singular values are about equal.

Muon (Jordan et al. 2024; in PyTorch as `torch.optim.Muon`) replaces the momentum of a matrix by the nearest orthogonal
matrix, which five Newton-Schulz iterations approximate. NorMuon (Li et al. 2025, arXiv:2510.05491) takes the momentum
without Nesterov's step and divides each row by the root of a running mean of its squares. Muon and NorMuon scale the
update to the root mean square of Adam's updates, 0.2, so that Adam's learning rate and weight decay carry over (Liu et
al. 2025, arXiv:2502.16982). LAMB or AdamW updates embeddings, vectors and heads. A matrix that holds several
projections counts as one matrix.
"""

import math
from typing import Any

import torch
from torch import Tensor

from hatchery.training.lamb import Lamb, add_weight_decay

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Coefficients of an iteration's polynomial, steep at 0: singular values end between 0.7 and 1.2."""
ITERATIONS = 5
UPDATE_RMS = 0.2
"""Root mean square of Adam's updates at the learning rate 1."""
EPSILON = 1e-7


class Muon(Lamb):
    """Muon or NorMuon for groups with `matrices: True`; `Lamb` for the others.

    State of a matrix: `momentum` (like the parameter) and, for NorMuon, `row_squares` (rows, 1).
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
        """Update matrices of one shape together."""
        gradients: list[Tensor] = [parameter.grad for parameter in parameters]  # type: ignore[misc]
        momenta = [self._momentum_of(parameter) for parameter in parameters]
        torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
        rows, columns = parameters[0].shape
        if group["row_decay"] is None:
            # Nesterov's momentum: the running mean after one more gradient equal to this one.
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
        """Update the running means of the rows' mean squares; return their roots, (matrices, rows, 1)."""
        squares = updates.square().mean(dim=2, keepdim=True)
        for parameter, square in zip(parameters, squares, strict=True):
            state = self.state[parameter]
            if "row_squares" not in state:
                state["row_squares"] = torch.zeros_like(square)
            state["row_squares"].lerp_(square, 1 - decay)
        kept = torch.stack([self.state[parameter]["row_squares"] for parameter in parameters])
        return kept.sqrt().add_(EPSILON)


def orthogonalised(matrices: Tensor, precision: torch.dtype | None = None) -> Tensor:
    """Return approximately the nearest orthogonal matrices of `matrices` [matrices, rows, columns]; their singular
    values are 0.7 to 1.2.

    `precision` is the precision of matrix products: by default bf16 on a GPU and fp32 elsewhere. The result has the
    type of `matrices`.
    """
    if precision is None:
        precision = torch.bfloat16 if matrices.device.type == "cuda" else torch.float32
    tall = matrices.shape[1] > matrices.shape[2]
    updates = (matrices.mT if tall else matrices).to(precision)
    # Division by the Frobenius norm makes the spectral norm at most 1, as the iteration needs.
    updates = updates / torch.linalg.vector_norm(updates, dim=(1, 2), keepdim=True).clamp(min=EPSILON)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = updates @ updates.mT
        updates = torch.baddbmm(updates, torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth), updates, beta=first)
    return (updates.mT if tall else updates).to(matrices.dtype)
