"""ZeRO: a run's optimiser state, gradients and parameters, sharded among its processes by DeepSpeed. Of the optimisers,
only AdamW can be sharded.

DeepSpeed concatenates the tensors of a parameter group and divides the result into one shard for each process. This
module joins shards to complete tensors for checkpoints, and divides tensors into shards. So checkpoints do not depend
on the sharding, and a run may continue with another number of processes or at another ZeRO stage. All processes must
call the functions of this module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

COUNT, MOMENTS = "step", ("exp_avg", "exp_avg_sq")
"""Names in AdamW's state of a parameter: the step count, and the moments, which have the shape of the parameter."""


def zero_configuration(stage: int, max_gradient_norm: float | None) -> dict[str, object]:
    """Return DeepSpeed's configuration of sharding.

    Above ZeRO stage 0, DeepSpeed clips gradients, because only DeepSpeed knows the global norm of the sharded
    gradients.
    """
    if stage == 0:
        return {"zero_optimization": {"stage": 0}, "gradient_clipping": 0.0}
    return {
        "zero_optimization": {"stage": stage, "overlap_comm": False},
        "gradient_clipping": max_gradient_norm or 0.0,
        # Set this key, because otherwise DeepSpeed refuses our subclass of torch's AdamW.
        "zero_allow_untested_optimizer": True,
        # Stage 3 can only average gradients over processes, not sum them, so `Engine` multiplies the loss by the number
        # of processes.
        **({"gradient_allreduce_op": "mean"} if stage == 3 else {}),
    }


class Shards:
    """The sharded state of an optimiser. DeepSpeed must wrap the optimiser before the optimiser has a state; `fill`
    then loads a state.
    """

    def __init__(self, stage: int, model: nn.Module, optimizer: torch.optim.Optimizer, zero: Any) -> None:
        self.stage, self.optimizer, self._zero = stage, optimizer, zero
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    @property
    def _flat(self) -> list[Tensor]:
        """Return this process's flat shard of each parameter group."""
        pieces = (
            self._zero.fp32_partitioned_groups_flat if self.stage == 3 else self._zero.single_partition_of_fp32_groups
        )
        return list(pieces)

    def fill(self, states: Mapping[Any, Mapping[str, Tensor]]) -> None:
        """Load this process's shard of the complete `states`, which may be in CPU memory.

        If `states` is empty, the optimiser starts with an empty state.
        """
        if not states:
            return
        count = next(iter(states.values()))[COUNT]
        for flat in self._flat:
            self.optimizer.state[flat] = {COUNT: count.clone(), **{key: torch.zeros_like(flat) for key in MOMENTS}}
        for parameter in self._parameters:
            for key in MOMENTS:
                for own, (start, end) in self._pieces(parameter, key):
                    own.copy_(states[parameter][key].flatten()[start:end])

    def whole(self) -> dict[Any, dict[str, Tensor]]:
        """Return the complete states of all parameters, in the first process's CPU memory; empty in all other
        processes.

        A device never holds more than one complete state tensor.
        """
        counts = [self.optimizer.state[flat][COUNT] for flat in self._flat if flat in self.optimizer.state]
        states: dict[Any, dict[str, Tensor]] = {}
        for parameter in self._parameters if counts else ():
            state = {COUNT: counts[0].clone()}
            for key in MOMENTS:
                joined = self._joined(parameter, key)
                if joined is not None:
                    state[key] = joined
            if torch.distributed.get_rank() == 0:
                states[parameter] = state
        return states

    def _joined(self, parameter: Any, key: str) -> Tensor | None:
        size, shape = (
            (parameter.ds_numel, parameter.ds_shape) if self.stage == 3 else (parameter.numel(), parameter.shape)
        )
        joined = torch.zeros(size, dtype=torch.float32, device=parameter.device)
        for own, (start, end) in self._pieces(parameter, key):
            joined[start:end] = own
        torch.distributed.reduce(joined, dst=0)
        return joined.view(shape).cpu() if torch.distributed.get_rank() == 0 else None

    def _pieces(self, parameter: Any, key: str) -> Iterator[tuple[Tensor, tuple[int, int]]]:
        """Yield this process's pieces of a parameter's state tensor called `key`, each with its range in the flattened
        parameter.
        """
        if self.stage == 3:
            own, _ = self._zero._get_fp32_opt_state_partition(parameter, False, key)
            start = own.numel() * self._zero._get_param_partition_rank(parameter)
            end = min(start + own.numel(), parameter.ds_numel)
            if start < end:
                yield own.flatten()[: end - start], (start, end)
        elif parameter._hp_mapping is not None:
            mapping = parameter._hp_mapping
            there, here = mapping.hp_fragment_address, mapping.lp_fragment_address
            flat = self._flat[mapping.param_group_index]
            own = self.optimizer.state[flat][key]
            yield own[there.start : there.start + there.numel], (here.start, here.start + here.numel)

    @contextmanager
    def whole_parameters(self) -> Iterator[None]:
        """Gather the complete parameters in every process during the `with` block. Outside the block, a process at ZeRO
        stage 3 has only its shard of the parameters.
        """
        if self.stage < 3:
            yield
            return
        import deepspeed

        with deepspeed.zero.GatheredParameters(self._parameters):
            yield
