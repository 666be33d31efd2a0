"""The model inside DeepSpeed: our own optimiser, fp32 parameters, half precision by autocast.

ZeRO 1-3 and DeepSpeed's bf16 optimiser flatten parameters into buffers, which would destroy LAMB's norm per tensor;
stage 0 keeps them whole, and AdamW, which looks at single numbers only, may take another
(`hatchery.training.zero`). Gradients are summed over micro-batches and processes, never averaged: the loss is
divided beforehand (`hatchery.training.loop`). Nothing here waits for a GPU, except fp16, whose loss scale has to
know whether the gradients are finite.
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
    """DeepSpeed's configuration of a run; we own accumulation, precision, the learning rate and, at stage 0, clipping.

    There clipping happens in `Engine`, because DeepSpeed clips without telling the norm.
    """
    return {
        # DeepSpeed wants a batch size for its own speed report, which is off; nothing else reads it here.
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_allreduce_op": "sum",
        **zero_configuration(zero_stage, max_gradient_norm),
        "steps_per_print": None,
        "wall_clock_breakdown": False,
    }


def for_model(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a batch that the model reads."""
    return {name: tensor for name, tensor in batch.items() if not name.startswith(OWN)}


def recompute_layers_(model: nn.Module) -> list[Any]:
    """Let all layers forget what they compute in training until the backward pass asks; returns the layers."""
    layers: list[Any] = [module for module in model.modules() if isinstance(module, EncoderLayer | DecoderLayer)]
    recompute_(layers)
    return layers


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
        """`model` must lie on `device`; process 0's parameters are sent to all others here.

        Without `max_gradient_norm` nothing is clipped. `compiled` layers go through torch.compile, and `recomputed`
        ones are computed again in the backward pass; both in place, so that parameters keep their names. Above stage 0
        a state that `optimizer` holds already is shared among the processes.
        """
        self.model, self.optimizer = model, optimizer
        self.device, self.topology, self.precision = device, topology, precision
        self.max_gradient_norm = max_gradient_norm
        self._update = Update(torch.zeros((), device=device))
        # Seed and number of the step, and where its next micro-batch begins in the global batch.
        self._step_key, self._next_sequence = (0, 0), 0
        # Open from the beginning of a step to its update. At stage 3 nobody keeps whole weights that long.
        self._casts = ExitStack()
        self._casts_once = precision.name != "fp32" and zero_stage < 3
        self._kernels_at = use_kernels_(model, device) if precision.name != "fp32" else []
        self._replaced = compile_layers_(model) if compiled else []
        if recomputed:
            self._replaced += [layer for layer in recompute_layers_(model) if layer not in self._replaced]
        self._hook, states = None, dict(optimizer.state)
        self._averaged_over = topology.world_size if zero_stage == 3 else 1
        if zero_stage == 0:
            # The gradients are complete only between DeepSpeed's reduction and the update: this hook runs there.
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
        """Say from what the coming micro-batches draw their dropout, and set the learning rate of the coming update.

        `first_sequence` is the number, from 0, that the first sequence of this process has in the global batch.
        """
        self._step_key, self._next_sequence = (seed, step), first_sequence
        self._casts.close()
        if self._casts_once:
            self._casts.enter_context(self.precision.one_cast(self.device.type))
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
        return self._engine(**for_model(self.on_device(batch)))

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of `loss`, which must already be divided for the whole global batch."""
        self._engine.backward(self.precision.scaled(loss * self._averaged_over), scale_wrt_gas=False)

    def step(self) -> Update:
        """Sum gradients over processes, unscale, clip, update, clear; in fp16 an overflow leaves out the update."""
        self._casts.close()
        self._engine.step()
        if self._shards is not None:
            norm = torch.as_tensor(self._engine.get_global_grad_norm(), device=self.device)
            self._update = Update(norm.detach().clone())
        return self._update

    def whole_states(self) -> States:
        """What the optimiser keeps, by parameter, also where it is shared; every process must ask.

        A shared state is whole in the first process only, in the memory of its CPU.
        """
        return self.optimizer.state if self._shards is None else self._shards.whole()

    @contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """For the block, the model's parameters are whole in every process; every process must ask."""
        if self._shards is None:
            yield
            return
        with self._shards.whole_parameters():
            yield

    @torch.no_grad()
    def evaluate(self, batch: dict[str, Tensor]) -> Any:
        """The model's output without dropout and without gradients."""
        self.model.eval()
        with self.precision.autocast(self.device.type):
            output = self.model(**for_model(self.on_device(batch)))
        self.model.train()
        return output

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let go of DeepSpeed's objects, so that none of them outlives the process group; the model is whole again.

        While an exception passes the other processes may be gone: nobody waits for them, and a model whose parameters
        are shared stays as it is.
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
        """A batch where the model is; one that is there already stays as it is."""
        if self.device.type == "cpu" or "labelled" in batch:
            return batch
        # Found here and not by the model: a GPU would have to be waited for to learn how many there are.
        batch = {**batch, "labelled": labelled_positions(batch["labels"])}
        return {key: moved(value, self.device) for key, value in batch.items()}

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
