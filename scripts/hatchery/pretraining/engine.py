"""The model inside DeepSpeed: ZeRO stage 0, our own optimiser, fp32 parameters, half precision by autocast.

ZeRO 1-3 and DeepSpeed's bf16 optimiser flatten parameters into buffers, which would destroy LAMB's norm per tensor;
stage 0 keeps them whole. Gradients are summed over micro-batches and processes, never averaged: the loss is divided
beforehand (`hatchery.pretraining.measures`). Nothing here waits for a GPU, except fp16, whose loss scale has to know
whether the gradients are finite.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.modeling.language_model import LanguageModel, labelled_positions
from hatchery.pretraining.precision import InPrecision, Precision
from hatchery.pretraining.processes import import_deepspeed
from hatchery.pretraining.topology import Topology


def deepspeed_configuration() -> dict[str, Any]:
    """DeepSpeed's configuration of a run; we own accumulation, precision, clipping and the learning rate."""
    return {
        # DeepSpeed wants a batch size for its own speed report, which is off; nothing else reads it here.
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_allreduce_op": "sum",
        # Clipping happens in `Engine`, because DeepSpeed at stage 0 clips without telling the norm.
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": 0},
        "steps_per_print": None,
        "wall_clock_breakdown": False,
    }


@dataclass(frozen=True)
class Update:
    """What is known of an update once it has been handed to the device."""

    # Global L2 norm before clipping, zero-dimensional, on the device.
    gradient_norm: Tensor
    # Whether fp16 gradients overflowed, so that nothing was changed.
    skipped: bool = False
    # By what the loss of this step was multiplied; null without loss scaling.
    loss_scale: float | None = None


class Engine:
    """Forward, backward and update of one model, over all processes of the open process group."""

    def __init__(
        self,
        model: LanguageModel,
        optimizer: torch.optim.Optimizer,
        max_gradient_norm: float | None,
        precision: Precision,
        device: torch.device,
        topology: Topology,
        compiled: bool = False,
    ) -> None:
        """`model` must lie on `device`; process 0's parameters are sent to all others here.

        Without `max_gradient_norm` nothing is clipped. `compiled` hands the model to torch.compile, in place, so that
        its parameters keep their names.
        """
        self.model, self.optimizer = model, optimizer
        self.device, self.topology, self.precision = device, topology, precision
        self.max_gradient_norm = max_gradient_norm
        self._update = Update(torch.zeros((), device=device))
        # Seed and number of the step, and where its next micro-batch begins in the global batch.
        self._step_key, self._next_sequence = (0, 0), 0
        if compiled:
            model.compile()
        # The gradients are complete only between DeepSpeed's reduction and the update: this hook runs there.
        self._hook = optimizer.register_step_pre_hook(self._before_update)
        deepspeed = import_deepspeed(device)
        deepspeed.init_distributed(dist_backend=torch.distributed.get_backend(), auto_mpi_discovery=False)
        self._engine = deepspeed.initialize(
            model=InPrecision(model, precision, device.type),
            optimizer=optimizer,
            config=deepspeed_configuration(),
            dist_init_required=False,
        )[0]
        self._engine.train()

    def begin_step(self, seed: int, step: int, learning_rate: float, first_sequence: int = 0) -> None:
        """Say from what the coming micro-batches draw their dropout, and set the learning rate of the coming update.

        `first_sequence` is the number, from 0, that the first sequence of this process has in the global batch.
        """
        self._step_key, self._next_sequence = (seed, step), first_sequence
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def forward(self, batch: dict[str, Tensor]) -> Any:
        """The model's output for the next micro-batch of the step, on the device and in the run's precision.

        Dropout is drawn from (seed, step, number of the first sequence in the global batch): a resumed run is exact
        without stored generator states, and the same micro-batch drops the same in any process.
        """
        state = np.random.SeedSequence([*self._step_key, self._next_sequence]).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0]))
        self._next_sequence += len(batch["input_ids"])
        return self._engine(**self._on_device(batch))

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`, which must already be divided for the whole global batch."""
        self._engine.backward(self.precision.scaled(loss), scale_wrt_gas=False)

    def step(self) -> Update:
        """Sum gradients over processes, unscale, clip, update, clear; in fp16 an overflow leaves out the update."""
        self._engine.step()
        return self._update

    @torch.no_grad()
    def evaluate(self, batch: dict[str, Tensor]) -> Any:
        """The model's output without dropout and without gradients."""
        self.model.eval()
        with self.precision.autocast(self.device.type):
            output = self.model(**self._on_device(batch))
        self.model.train()
        return output

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of DeepSpeed's objects, so that none of them outlives the process group."""
        self._hook.remove()
        self._engine.destroy()
        del self._engine

    def _on_device(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        if self.device.type == "cpu":
            return batch
        # Found here and not by the model: a GPU would have to be waited for to learn how many there are.
        batch = {**batch, "labelled": labelled_positions(batch["labels"])}
        return {
            key: (value if value.is_pinned() else value.pin_memory()).to(self.device, non_blocking=True)
            for key, value in batch.items()
        }

    def _before_update(self, *_: Any) -> None:
        parameters = list(self.model.parameters())
        scale = None if self.precision.scaler is None else self.precision.scaler.scale
        taken = self.precision.unscale_(parameters)
        # A skipped step has no gradients any more.
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        norm = nn.utils.get_total_norm(gradients, foreach=True).to(self.device)
        if taken and self.max_gradient_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, self.max_gradient_norm, norm, foreach=True)
        self._update = Update(norm, not taken, scale)
