"""Device, threads and process group of one training process.

A single process needs no network at all: its group lives in an in-memory store, so two trainings on one machine
cannot clash over a port. Several processes meet at the address that the topology names. CPU training uses gloo.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed

from hatchery.errors import ConfigError, TrainingError
from hatchery.pretraining.topology import Topology

# Long enough for the first process to verify or write a large checkpoint while the others wait.
COLLECTIVE_TIMEOUT = timedelta(minutes=30)


def select_device(requested: str, topology: Topology) -> torch.device:
    """The device of this process. Raises ConfigError when CUDA is requested and there is none.

    Where Slurm shows all GPUs of a node to each task the local rank selects one; where it shows one, that one is it.
    """
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise ConfigError("runtime.device: got 'cuda', but torch sees no CUDA device here; use 'cpu' or 'auto'")
    if requested == "cpu" or not available:
        return torch.device("cpu")
    return torch.device("cuda", topology.local_rank % torch.cuda.device_count())


def prepare_device(device: torch.device, threads: int | None) -> None:
    """Set the number of CPU threads and, on the CPU, torch's deterministic algorithms.

    On CUDA determinism costs speed and is not promised. Filling fresh memory, which torch couples to determinism, is
    switched off: it only helps to find uninitialised reads and costs a pass over every new tensor.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    else:
        torch.cuda.set_device(device)


@contextmanager
def process_group(topology: Topology, device: torch.device) -> Iterator[None]:
    """Open torch's process group for the duration of the block. Raises TrainingError when the processes do not meet."""
    backend = "gloo" if device.type == "cpu" else "nccl"
    try:
        if topology.world_size == 1:
            if sys.platform == "linux":
                # gloo otherwise looks up the host's name, which fails or waits on machines without a network.
                os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            torch.distributed.init_process_group(
                backend, store=torch.distributed.HashStore(), rank=0, world_size=1, timeout=COLLECTIVE_TIMEOUT
            )
        else:
            torch.distributed.init_process_group(
                backend,
                init_method=f"tcp://{topology.address}:{topology.port}",
                rank=topology.rank,
                world_size=topology.world_size,
                timeout=COLLECTIVE_TIMEOUT,
            )
    except (RuntimeError, ValueError) as error:
        where = f"{topology.address}:{topology.port}"
        reason = str(error).splitlines()[0]
        raise TrainingError(f"process {topology.rank} cannot meet the other processes at {where}: {reason}") from error
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def sum_over_processes(values: list[float], device: torch.device) -> list[float]:
    """The sum of each value over all processes, in double precision; every process gets the same numbers."""
    if torch.distributed.get_world_size() == 1:
        return values
    tensor = torch.tensor(values, dtype=torch.float64, device=device)
    torch.distributed.all_reduce(tensor)
    return list(tensor.tolist())


def from_first_process(value: int) -> int:
    """The integer that process 0 holds, in every process."""
    if torch.distributed.get_world_size() == 1:
        return value
    holder = [value]
    torch.distributed.broadcast_object_list(holder, src=0)
    return holder[0]
