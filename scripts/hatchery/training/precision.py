"""The arithmetic of a run (fp32, or autocast to bf16 or fp16), and the loss scaling of fp16.

Loss scaling keeps small fp16 gradients above zero. Parameters and optimiser state are fp32 in all precisions. LTG-BERT
and ELC-BERT used fp16 with dynamic loss scaling (docs/papers/ltg-bert.md, "Differences"). The scale depends only on
gradients that are summed over processes, so the scale is equal in all processes. The scale is a power of two, so
scaling rounds nothing. The state of the loss scaler is two numbers, which checkpoints store, so a resumed run is exact.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hatchery.errors import CheckpointError, TrainingError

PrecisionName = Literal["fp32", "bf16", "fp16"]
AUTOCAST_TYPES: dict[PrecisionName, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}

# The constants of torch's GradScaler, which the code of LTG-BERT and ELC-BERT uses.
FIRST_SCALE = 2.0**16
GROWTH_INTERVAL = 2000
# Smallest loss scale. If gradients overflow even at this scale, the model has diverged, because unscaled gradients
# would also overflow.
SMALLEST_SCALE = 2.0**-14

SCALE, GOOD_STEPS = "loss_scaler.scale", "loss_scaler.good_steps"


class LossScaler:
    """Multiplies losses by `scale` before the backward pass and divides the gradients by `scale` before the update.

    If a gradient is not finite, the step is skipped, and the scale is halved. After 2000 consecutive steps with finite
    gradients, the scale is doubled. torch's GradScaler is not used, because it calls `optimizer.step`, which DeepSpeed
    must call.
    """

    def __init__(self, scale: float = FIRST_SCALE, growth_interval: int = GROWTH_INTERVAL) -> None:
        """`scale` must be a power of two, so that scaling and unscaling round nothing. It is doubled after
        `growth_interval` consecutive steps with finite gradients.
        """
        self.scale, self.growth_interval = scale, growth_interval
        self.good_steps = 0

    def scaled(self, loss: Tensor) -> Tensor:
        """Return `loss` times the scale, for the backward pass; all micro-batches of a step have the same scale."""
        return loss * self.scale

    @torch.no_grad()
    def unscale_(self, parameters: Iterable[nn.Parameter]) -> bool:
        """Divide the gradients of `parameters` by the scale, adapt the scale, and return whether all gradients were
        finite.

        Call this method once per step, before clipping, on gradients that are summed over micro-batches and processes.
        If a gradient is not finite, ALL gradients become None, so that `optimizer.step` changes neither the parameters
        nor the optimiser state. Raises TrainingError if the scale would become too small.
        """
        with_gradient = [parameter for parameter in parameters if parameter.grad is not None]
        gradients: list[Tensor] = [parameter.grad for parameter in with_gradient]  # type: ignore[misc]
        if not gradients or _unscale_all_finite_(gradients, 1 / self.scale):
            self._grow()
            return True
        for parameter in with_gradient:
            parameter.grad = None
        self._shrink()
        return False

    def state(self) -> dict[str, Tensor]:
        """Return the scaler's scale and its number of consecutive steps with finite gradients, for a resumed run: two
        zero-dimensional tensors on the CPU (fp64 and int64).
        """
        return {
            SCALE: torch.tensor(self.scale, dtype=torch.float64),
            GOOD_STEPS: torch.tensor(self.good_steps, dtype=torch.int64),
        }

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the scaler's tensors from `state`. Raises CheckpointError if they are missing."""
        missing = [name for name in (SCALE, GOOD_STEPS) if name not in state]
        if missing:
            raise CheckpointError(f"the checkpoint contains no {missing[0]}, expected the checkpoint of a run in fp16")
        self.scale, self.good_steps = float(state[SCALE]), int(state[GOOD_STEPS])

    def _grow(self) -> None:
        self.good_steps += 1
        if self.good_steps == self.growth_interval:
            self.good_steps = 0
            # Keep the scale below the largest fp32 number, because the scale multiplies an fp32 loss. Torch's scaler
            # has the same limit.
            if self.scale * 2 <= torch.finfo(torch.float32).max:
                self.scale *= 2

    def _shrink(self) -> None:
        self.good_steps = 0
        if self.scale / 2 < SMALLEST_SCALE:
            raise TrainingError(
                "pretraining.precision: fp16 gradients are not finite although the loss is scaled by only "
                f"{self.scale:g}: the model has diverged; lower the learning rate, lengthen the warm-up, or use bf16 "
                "or fp32"
            )
        self.scale /= 2


@dataclass(frozen=True, eq=False)
class Precision:
    """The arithmetic of a run; for fp16, this object includes the loss scaler."""

    name: PrecisionName
    scaler: LossScaler | None = None

    def autocast(self, device_type: str) -> AbstractContextManager[Any]:
        """Return the autocast context for a device of `device_type` ("cpu" or "cuda")."""
        dtype = AUTOCAST_TYPES.get(self.name)
        # The dtype is set even if autocast is off, because torch would otherwise ask the device for its default.
        return torch.autocast(device_type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)

    def one_cast(self, device_type: str) -> AbstractContextManager[Any]:
        """Return a context in which each weight is converted to half precision only once. The context itself does not
        enable autocast.

        The context must end before the weights change.
        """
        # torch caches the cast weights until the outermost autocast context ends.
        return torch.autocast(device_type, dtype=torch.bfloat16, enabled=False)

    def scaled(self, loss: Tensor) -> Tensor:
        """Return the loss for the backward pass: in fp16, the loss times the scale."""
        return loss if self.scaler is None else self.scaler.scaled(loss)

    def unscale_(self, parameters: Iterable[nn.Parameter]) -> bool:
        """Unscale the gradients and return whether the update can be done (see `LossScaler.unscale_`); in fp32 and
        bf16, always return True.
        """
        return self.scaler is None or self.scaler.unscale_(parameters)

    def state(self) -> dict[str, Tensor]:
        """Return the loss scaler's state for checkpoints; empty except in fp16."""
        return {} if self.scaler is None else self.scaler.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the loss scaler's state, a result of the method `state`. Raises CheckpointError if, in fp16, tensors of
        this state are missing.
        """
        if self.scaler is not None:
            self.scaler.load(state)


class InPrecision(nn.Module):
    """A model that enables autocast in its forward pass, for engines that disable autocast during their call.

    DeepSpeed disables autocast on CUDA. Its own fp16 autocast is not used, because it has a second loss scaler, and
    checkpoints do not contain the state of this scaler.
    """

    def __init__(self, model: nn.Module, precision: Precision, device_type: str) -> None:
        super().__init__()
        self.model, self.precision, self.device_type = model, precision, device_type

    def forward(self, *inputs: Any, **named_inputs: Any) -> Any:
        """Return the output of the model."""
        with self.precision.autocast(self.device_type):
            return self.model(*inputs, **named_inputs)


def resolve_precision(requested: PrecisionName | Literal["auto"], device: torch.device) -> Precision:
    """Return the precision called `requested`; "auto" is bf16 on a CUDA device with bf16 in hardware, otherwise fp32.

    "auto" never selects fp16: fp16 may skip steps, so users must choose it explicitly.
    """
    if requested == "auto":
        return Precision("bf16" if device.type == "cuda" and computes_bf16_fast(device) else "fp32")
    return Precision(requested, LossScaler() if requested == "fp16" else None)


def computes_bf16_fast(device: torch.device) -> bool:
    """Return whether the device has bf16 in hardware: a CPU with AVX-512 BF16 or AMX, or a GPU since Ampere. On other
    GPUs, PyTorch emulates bf16.
    """
    if device.type != "cpu":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(has for name, has in torch.cpu.get_capabilities().items() if "bf16" in name)


def slow_arithmetic(precision: Precision, device: torch.device) -> str | None:
    """Return a warning if `precision` is bf16 and the CPU has no instructions for bf16; otherwise None."""
    if precision.name != "bf16" or device.type != "cpu" or computes_bf16_fast(device):
        return None
    return (
        "pretraining.precision: this processor has no instructions for bf16 (AVX-512 BF16 or AMX) and computes it many "
        "times as slowly as fp32; set precision: fp32"
    )


def _unscale_all_finite_(gradients: list[Tensor], factor: float) -> bool:
    """Multiply `gradients` by `factor` in one pass; return whether all values were finite before the multiplication."""
    device = gradients[0].device
    non_finite = torch.zeros((), device=device)
    # As in torch's GradScaler, this function reads each gradient once; only the return statement waits for the device.
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, non_finite, torch.tensor(factor, device=device))
    return non_finite.item() == 0
