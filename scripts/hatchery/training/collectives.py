"""What the processes of a run tell each other; a single process needs nobody.

Apart from `processes`, because text is also counted and development text scored where no training loop runs.
"""

import torch
import torch.distributed
from torch import Tensor

from hatchery.modeling.language_model import moved


def on_device(values: list[float] | list[list[float]], device: torch.device) -> Tensor:
    """The numbers as an fp64 tensor on `device`, copied there without waiting for what the device does."""
    return moved(torch.tensor(values, dtype=torch.float64), device)


def sum_tensor_over_processes(tensor: Tensor) -> Tensor:
    """The sum of `tensor`, which is overwritten, over all processes; on a GPU nobody waits for it."""
    if torch.distributed.get_world_size() > 1:
        torch.distributed.all_reduce(tensor)
    return tensor


def sum_over_processes(values: list[float], device: torch.device) -> list[float]:
    """The sum of each value over all processes, in double precision; every process gets the same numbers."""
    if torch.distributed.get_world_size() == 1:
        return values
    return list(sum_tensor_over_processes(on_device(values, device)).tolist())


def gathered(value: list[str]) -> list[list[str]]:
    """The values of all processes in their order, in every process."""
    if torch.distributed.get_world_size() == 1:
        return [value]
    values: list[list[str]] = [[]] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(values, value)
    return values


def from_first_process(value: int) -> int:
    """The integer that process 0 holds, in every process."""
    if torch.distributed.get_world_size() == 1:
        return value
    holder = [value]
    torch.distributed.broadcast_object_list(holder, src=0)
    return holder[0]
