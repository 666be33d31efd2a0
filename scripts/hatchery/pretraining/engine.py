"""The model inside DeepSpeed: ZeRO stage 0, our own optimiser, fp32 parameters, bf16 by autocast.

ZeRO 1-3 and DeepSpeed's bf16 optimiser flatten parameters into buffers, which would destroy LAMB's norm per tensor;
stage 0 keeps them whole. Gradients are summed over micro-batches and processes, never averaged: the loss is divided
by the labelled tokens of the whole global batch beforehand, so every labelled token weighs the same however the batch
is split.
"""

import logging
import os
import sys
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.pretraining.topology import Topology


def resolve_precision(requested: str, device: torch.device) -> str:
    """`fp32` or `bf16`: "auto" is bf16 on a CUDA device that computes in it, otherwise fp32."""
    if requested != "auto":
        return requested
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def deepspeed_configuration(precision: str) -> dict[str, Any]:
    """DeepSpeed's configuration of a run; our loop owns accumulation, clipping and the learning rate."""
    return {
        # DeepSpeed wants a batch size for its own speed report, which is off; nothing else reads it here.
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_allreduce_op": "sum",
        # Clipping happens in `Engine`, because DeepSpeed at stage 0 clips without telling the norm.
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": 0},
        "torch_autocast": {"enabled": precision == "bf16", "dtype": "bfloat16"},
        "steps_per_print": None,
        "wall_clock_breakdown": False,
    }


class Engine:
    """Forward, backward and update of one model, over all processes of the open process group."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        max_gradient_norm: float,
        precision: str,
        device: torch.device,
        topology: Topology,
    ) -> None:
        """`model` must lie on `device`; process 0's parameters are sent to all others here."""
        self.model, self.optimizer = model, optimizer
        self.device, self.topology = device, topology
        self.autocast = precision == "bf16"
        self.max_gradient_norm = max_gradient_norm
        self.gradient_norm = 0.0
        # The gradients are complete only between DeepSpeed's reduction and the update: this hook runs there.
        optimizer.register_step_pre_hook(self._clip)
        deepspeed = _import_deepspeed(device)
        deepspeed.init_distributed(dist_backend=torch.distributed.get_backend(), auto_mpi_discovery=False)
        self._engine = deepspeed.initialize(
            model=model,
            optimizer=optimizer,
            config=deepspeed_configuration(precision),
            dist_init_required=False,
        )[0]
        self._engine.train()

    def begin_step(self, seed: int, step: int, learning_rate: float) -> None:
        """Seed the dropout of this step and process, and set the learning rate of the coming update.

        Drawing dropout from (seed, step, rank) makes a resumed run exact without storing generator states.
        """
        state = np.random.SeedSequence([seed, step, self.topology.rank]).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0]))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def forward(self, batch: dict[str, Tensor]) -> Any:
        """The model's output for one micro-batch, on the device and in the run's precision."""
        return self._engine(**self._on_device(batch))

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`, which must already be divided by the tokens of the global batch."""
        self._engine.backward(loss, scale_wrt_gas=False)

    def step(self) -> float:
        """Sum gradients over processes, clip, update, clear; returns the global L2 norm before clipping."""
        self._engine.step()
        return self.gradient_norm

    @torch.no_grad()
    def evaluate(self, batch: dict[str, Tensor]) -> Any:
        """The model's output without dropout and without gradients."""
        self.model.eval()
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            output = self.model(**self._on_device(batch))
        self.model.train()
        return output

    def _on_device(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.device.type == "cpu":
            return batch
        return {key: value.pin_memory().to(self.device, non_blocking=True) for key, value in batch.items()}

    def _clip(self, *_: Any) -> None:
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_gradient_norm, foreach=True)
        self.gradient_norm = norm.item()


def _import_deepspeed(device: torch.device) -> Any:
    """Import DeepSpeed for `device`, quietly and without compiling anything."""
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ["LOCAL_RANK"] = str(device.index or 0)
    import deepspeed
    import deepspeed.ops

    for handler in logging.getLogger("DeepSpeed").handlers:
        # Its lines belong to the log, not to the command's output. Handlers of others (pytest's) are left alone.
        if type(handler) is logging.StreamHandler:
            handler.setStream(sys.stderr)
    if device.type == "cpu":
        # DeepSpeed compiles a shared-memory all-reduce at the first use of gloo (40 seconds, and a compiler must be
        # there), though only its inference code calls it. This table is what it asks before it builds; there is no
        # switch for it.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed
