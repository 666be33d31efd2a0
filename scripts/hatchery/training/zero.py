"""ZeRO: the optimiser's state, gradients and parameters of a run shared among its processes by DeepSpeed (AdamW only).

DeepSpeed lays the tensors of a parameter group end to end and cuts them into one piece for each process. Checkpoints
know nothing of that: here the pieces are put together to whole tensors by name, and cut again, so a run may go on with
another number of processes or at another stage. All of this is done by all processes together.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

COUNT, MOMENTS = "step", ("exp_avg", "exp_avg_sq")
"""The state of AdamW: a number of steps, and tensors like the parameter."""


def zero_configuration(stage: int, max_gradient_norm: float | None) -> dict[str, object]:
    """What DeepSpeed is told of the sharing. Above stage 0 it also clips, because it alone knows the whole norm."""
    if stage == 0:
        return {"zero_optimization": {"stage": 0}, "gradient_clipping": 0.0}
    return {
        "zero_optimization": {"stage": stage, "overlap_comm": False},
        "gradient_clipping": max_gradient_norm or 0.0,
        # Ours is torch's AdamW by another name.
        "zero_allow_untested_optimizer": True,
        # Stage 3 has no sum: `Engine` multiplies the loss by the number of processes beforehand.
        **({"gradient_allreduce_op": "mean"} if stage == 3 else {}),
    }


class Shards:
    """The shared state of one optimiser, which was empty when DeepSpeed got it; `fill` gives it what it had before."""

    def __init__(self, stage: int, model: nn.Module, optimizer: torch.optim.Optimizer, zero: Any) -> None:
        self.stage, self.optimizer, self._zero = stage, optimizer, zero
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    @property
    def _flat(self) -> list[Tensor]:
        """This process's piece of each group."""
        pieces = (
            self._zero.fp32_partitioned_groups_flat if self.stage == 3 else self._zero.single_partition_of_fp32_groups
        )
        return list(pieces)

    def fill(self, states: Mapping[Any, Mapping[str, Tensor]]) -> None:
        """Give every process its piece of these whole states, which may lie in the CPU's memory.

        Without any the optimiser starts from nothing.
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
        """All states in the memory of the first process's CPU; nothing in the others.

        No device ever holds more than one whole tensor of them.
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
        """What this process holds of a parameter's state, and from where to where of the flattened parameter it is."""
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
        """For the block, the parameters are whole in every process; at stage 3 each holds but its share otherwise."""
        if self.stage < 3:
            yield
            return
        import deepspeed

        with deepspeed.zero.GatheredParameters(self._parameters):
            yield
