"""The model inside DeepSpeed: Hatchery's own optimisers, fp32 parameters, half precision by autocast.

ZeRO stages 1 to 3 and DeepSpeed's bf16 optimiser join parameters in flat buffers, in which LAMB's norm per tensor
cannot be computed. Therefore LAMB runs only at ZeRO stage 0. AdamW updates each element of a parameter independently,
so it supports all stages (`hatchery.training.zero`). Gradients are summed over micro-batches and processes, not
averaged, because the training loop has already divided the loss. The engine waits for a GPU only in fp16, because the
loss scale depends on the gradients.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from hatchery.modeling.encoder_decoder.decoding import DecoderLayer
from hatchery.modeling.kernels.position_attention import use_kernels_
from hatchery.modeling.language_model import LanguageModel, labelled_positions, moved
from hatchery.modeling.layers import EncoderLayer
from hatchery.modeling.recomputation import recompute_
from hatchery.objectives.mask_rates import OWN
from hatchery.training.checkpoints import States
from hatchery.training.compilation import compile_layers_
from hatchery.training.own_model import OwnModel
from hatchery.training.precision import InPrecision, Precision
from hatchery.training.processes import import_deepspeed
from hatchery.training.topology import Topology
from hatchery.training.zero import Shards, zero_configuration


def deepspeed_configuration(zero_stage: int = 0, max_gradient_norm: float | None = None) -> dict[str, object]:
    """Return DeepSpeed's configuration of a run.

    Hatchery, not DeepSpeed, controls gradient accumulation, precision and learning rate. At ZeRO stage 0, `Engine`
    clips gradients, because DeepSpeed does not return the norm of the gradients.
    """
    return {
        # DeepSpeed requires a batch size, but uses it only for its speed report, which is off.
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_allreduce_op": "sum",
        **zero_configuration(zero_stage, max_gradient_norm),
        "steps_per_print": None,
        "wall_clock_breakdown": False,
    }


def for_model(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return those tensors of a batch that are inputs of the model."""
    return {name: tensor for name, tensor in batch.items() if not name.startswith(OWN)}


def recompute_layers_(model: nn.Module) -> list[Any]:
    """Make all layers recompute their activations in the backward pass instead of storing them; return the layers."""
    layers: list[Any] = [module for module in model.modules() if isinstance(module, EncoderLayer | DecoderLayer)]
    recompute_(layers)
    return layers


@dataclass(frozen=True)
class Update:
    """The results of an optimiser update; a GPU may not have computed them yet."""

    # Global L2 norm before clipping, zero-dimensional, on the device.
    gradient_norm: Tensor
    # True if fp16 gradients overflowed and the update was skipped.
    skipped: bool = False
    # Scale of this step's loss; None without loss scaling.
    loss_scale: float | None = None


class Engine:
    """Forward pass, backward pass and update of one model, over all processes of the process group."""

    def __init__(
        self,
        model: LanguageModel | OwnModel,
        optimizer: torch.optim.Optimizer,
        max_gradient_norm: float | None,
        precision: Precision,
        device: torch.device,
        topology: Topology,
        compiled: bool = False,
        zero_stage: int = 0,
        recomputed: bool = False,
    ) -> None:
        """`model` must be on `device`; process 0 sends its parameters to all other processes.

        If `max_gradient_norm` is None, gradients are not clipped. If `compiled` is true, the layers are compiled with
        torch.compile. If `recomputed` is true, activations are recomputed in the backward pass. Compilation and
        recomputation change layers in place, so parameters keep their names. Above ZeRO stage 0, the state of
        `optimizer` is divided among the processes.
        """
        self.model, self.optimizer = model, optimizer
        self.device, self.topology, self.precision = device, topology, precision
        self.max_gradient_norm = max_gradient_norm
        self._update = Update(torch.zeros((), device=device))
        # Key of the dropout generator: (seed, step number). The second value is the index, in the global batch, of the
        # first sequence of the next micro-batch.
        self._step_key, self._next_sequence = (0, 0), 0
        # This autocast context is open from the beginning of a step to its update, so that weights are converted to
        # half precision once per step. At ZeRO stage 3, weights are converted more often, because no process keeps all
        # weights during a step.
        self._casts = ExitStack()
        self._casts_once = precision.name != "fp32" and zero_stage < 3
        self._kernels_at = use_kernels_(model, device) if precision.name != "fp32" else []
        self._replaced = compile_layers_(model) if compiled else []
        if recomputed:
            self._replaced += [layer for layer in recompute_layers_(model) if layer not in self._replaced]
        self._hook, states = None, dict(optimizer.state)
        self._averaged_over = topology.world_size if zero_stage == 3 else 1
        if zero_stage == 0:
            # This hook runs between DeepSpeed's reduction and the update, because gradients are complete only at that
            # time.
            self._hook = optimizer.register_step_pre_hook(self._before_update)
        else:
            optimizer.state.clear()
        deepspeed = import_deepspeed(device)
        deepspeed.init_distributed(dist_backend=torch.distributed.get_backend(), auto_mpi_discovery=False)
        self._engine = deepspeed.initialize(
            model=InPrecision(model, precision, device.type),
            optimizer=optimizer,
            config=deepspeed_configuration(zero_stage, max_gradient_norm),
            dist_init_required=False,
        )[0]
        self._shards = Shards(zero_stage, model, optimizer, self._engine.optimizer) if zero_stage else None
        if self._shards is not None:
            self._shards.fill(states)
        self._engine.train()

    def begin_step(self, seed: int, step: int, learning_rate: float, first_sequence: int = 0) -> None:
        """Set the learning rate for step number `step`. `seed` and `step` determine the random numbers of dropout.

        `first_sequence` is the index, from 0, of this process's first sequence in the global batch.
        """
        self._step_key, self._next_sequence = (seed, step), first_sequence
        self._casts.close()
        if self._casts_once:
            self._casts.enter_context(self.precision.one_cast(self.device.type))
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def forward(self, batch: dict[str, Tensor]) -> Any:
        """Return the model's output for the next micro-batch of the step, on the device and in the run's precision.

        The random numbers of dropout depend on the run's seed, on the step, and on the index of the micro-batch's first
        sequence in the global batch. So a resumed run needs no stored generator state, and dropout does not depend on
        the process that reads the micro-batch.
        """
        state = np.random.SeedSequence([*self._step_key, self._next_sequence]).generate_state(1, np.uint64)
        torch.manual_seed(int(state[0]))
        self._next_sequence += len(batch["input_ids"])
        return self._engine(**for_model(self.on_device(batch)))

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss` to the gradients of the parameters. The caller has already divided `loss` so that
        the sum of these gradients over micro-batches and processes is the gradient of the step's loss.
        """
        self._engine.backward(self.precision.scaled(loss * self._averaged_over), scale_wrt_gas=False)

    def step(self) -> Update:
        """Sum the gradients over processes, unscale and clip them, update the parameters, and clear the gradients.

        In fp16 an overflow skips the update.
        """
        self._casts.close()
        self._engine.step()
        if self._shards is not None:
            norm = torch.as_tensor(self._engine.get_global_grad_norm(), device=self.device)
            self._update = Update(norm.detach().clone())
        return self._update

    def whole_states(self) -> States:
        """Return the complete state of the optimiser, by parameter; every process must call this method.

        If the state is sharded, only the first process receives the complete state, in its CPU memory.
        """
        return self.optimizer.state if self._shards is None else self._shards.whole()

    @contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """Gather the complete parameters in every process during the `with` block, which every process must enter."""
        if self._shards is None:
            yield
            return
        with self._shards.whole_parameters():
            yield

    @torch.no_grad()
    def evaluate(self, batch: dict[str, Tensor]) -> Any:
        """Return the model's output without dropout and without gradients."""
        self.model.eval()
        with self.precision.autocast(self.device.type):
            output = self.model(**for_model(self.on_device(batch)))
        self.model.train()
        return output

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release DeepSpeed's objects before the process group ends, and gather sharded parameters into the model.

        After an exception, sharded parameters are not gathered, because other processes may have ended.
        """
        whole: dict[str, Tensor] = {}
        if self._shards is not None and kind is None:
            with self.whole_parameters():
                whole = {name: tensor.detach().clone() for name, tensor in self.model.named_parameters()}
        self._casts.close()
        if self._hook is not None:
            self._hook.remove()
        self._engine.destroy()
        del self._engine
        if self._shards is not None:
            self._shards = None
            for name, parameter in self.model.named_parameters() if whole else ():
                parameter.data = whole[name]
        for module in self._replaced:
            del module.forward
        for attention in self._kernels_at:
            attention.attend_at_once = None

    def on_device(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return a batch on the model's device. For a GPU, the tensor `labelled` with the indices of labelled positions
        is added to the batch. A batch that already contains `labelled`, and every batch of a model on the CPU, is
        returned unchanged.
        """
        if self.device.type == "cpu" or "labelled" in batch:
            return batch
        # Compute the labelled positions before the transfer, because on a GPU the model would have to wait for their
        # number.
        batch = {**batch, "labelled": labelled_positions(batch["labels"])}
        return {key: moved(value, self.device) for key, value in batch.items()}

    def _before_update(self, *_: Any) -> None:
        parameters = list(self.model.parameters())
        scale = None if self.precision.scaler is None else self.precision.scaler.scale
        taken = self.precision.unscale_(parameters)
        # If the update is skipped, the parameters have no gradients.
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        norm = nn.utils.get_total_norm(gradients, foreach=True).to(self.device)
        if taken and self.max_gradient_norm is not None:
            nn.utils.clip_grads_with_norm_(parameters, self.max_gradient_norm, norm, foreach=True)
        self._update = Update(norm, not taken, scale)
