"""The rank of this process, the number of processes, and the collective operations of a run.

The rank comes from the environment variables of torchrun or of a Slurm job step. All processes connect at MASTER_ADDR.
In a Slurm job step without MASTER_ADDR, all processes connect to rank 0 on the first host of the step's node list. If
this host's name cannot be resolved, all processes connect to the address from which `srun` was started. This module
does not import DeepSpeed, because it is also used without a training loop.
"""

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed
from torch import Tensor

from hatchery.errors import ConfigError
from hatchery.modeling.language_model import moved

# Range of ports for the connections between processes, below Linux's ephemeral ports, which outgoing connections use.
FIRST_PORT, PORTS = 20_000, 10_000


@dataclass(frozen=True)
class Topology:
    """Rank of this process, number of processes, rank on its node, and the address at which processes connect (None for
    one process)."""

    rank: int
    world_size: int
    local_rank: int
    address: str | None
    port: int | None

    @property
    def is_first(self) -> bool:
        """True for rank 0, the process that writes files and shows progress."""
        return self.rank == 0


SINGLE_PROCESS = Topology(rank=0, world_size=1, local_rank=0, address=None, port=None)


def is_resolvable(host: str) -> bool:
    """Return whether this machine can resolve the name `host`."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return True


def read_topology(environment: Mapping[str, str], resolves: Callable[[str], bool] = is_resolvable) -> Topology:
    """Return the topology from torchrun's variables or from Slurm's variables. If `environment` contains neither,
    return the topology of a single process.

    `resolves` returns whether a host name can be resolved. Raises ConfigError if a variable is missing, not a number or
    out of range.
    """
    if "WORLD_SIZE" in environment and "RANK" in environment:
        topology = _from_variables(environment, "RANK", "WORLD_SIZE", "LOCAL_RANK", resolves)
    elif "SLURM_STEP_ID" in environment and "SLURM_PROCID" in environment:
        size = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in environment else "SLURM_NTASKS"
        topology = _from_variables(environment, "SLURM_PROCID", size, "SLURM_LOCALID", resolves)
    else:
        return SINGLE_PROCESS
    if not 0 <= topology.rank < topology.world_size:
        raise ConfigError(
            f"environment: got rank {topology.rank} with {topology.world_size} processes, expected a rank from 0 to "
            f"{topology.world_size - 1}"
        )
    return topology


def _from_variables(
    environment: Mapping[str, str], rank: str, world_size: str, local_rank: str, resolves: Callable[[str], bool]
) -> Topology:
    size = _number(environment, world_size)
    if size == 1:
        return SINGLE_PROCESS
    local = _number(environment, local_rank)
    address = environment.get("MASTER_ADDR") or _first_slurm_host(environment, resolves)
    port = _number(environment, "MASTER_PORT") if "MASTER_PORT" in environment else _slurm_port(environment)
    return Topology(_number(environment, rank), size, local, address, port)


def _number(environment: Mapping[str, str], name: str) -> int:
    value = environment.get(name)
    if value is None:
        raise ConfigError(f"environment: {name} is not set, but other variables describe several processes")
    if not re.fullmatch(r"\d+", value):
        raise ConfigError(f"environment: {name} is {value!r}, expected a number")
    return int(value)


def _slurm_port(environment: Mapping[str, str]) -> int:
    """Return a port computed from the ids of the Slurm job and job step, so that job steps use different ports."""
    job, step = _number(environment, "SLURM_JOB_ID"), _number(environment, "SLURM_STEP_ID")
    return FIRST_PORT + (4 * job + step) % PORTS


def _first_slurm_host(environment: Mapping[str, str], resolves: Callable[[str], bool]) -> str:
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_NODELIST")
    address = environment.get("SLURM_LAUNCH_NODE_IPADDR")
    # Prefer the host's name to the address that `srun` reports, which is wrong if a user starts `srun` on a login node.
    # The workflow itself starts `srun` on the first node, where the name and the address are correct.
    if nodes and (not address or resolves(first_host(nodes))):
        return first_host(nodes)
    if address:
        return address
    raise ConfigError("environment: MASTER_ADDR is not set, and no Slurm node list gives the address; set MASTER_ADDR")


def first_host(nodes: str) -> str:
    """Return the first host of a Slurm node list such as `gpu[007-012,20],login1`. Raises ConfigError for a malformed
    list."""
    match = re.match(r"([^,\[\]]+)(?:\[(\d+)[^\]]*\]([^,\[\]]*))?(?:,|$)", nodes)
    if match is None:
        raise ConfigError(f"environment: the Slurm node list {nodes!r} cannot be read")
    prefix, number, suffix = match.groups()
    return prefix + (number or "") + (suffix or "")


def on_device(values: list[float] | list[list[float]], device: torch.device) -> Tensor:
    """Return `values` as an fp64 tensor on `device`. The copy does not wait for the device."""
    return moved(torch.tensor(values, dtype=torch.float64), device)


def sum_tensor_over_processes(tensor: Tensor) -> Tensor:
    """Sum `tensor` over all processes in place and return it; on a GPU the host does not wait."""
    if torch.distributed.get_world_size() > 1:
        torch.distributed.all_reduce(tensor)
    return tensor


def sum_over_processes(values: list[float], device: torch.device) -> list[float]:
    """Return the sum of each value over all processes, in double precision, equal in all processes."""
    if torch.distributed.get_world_size() == 1:
        return values
    return list(sum_tensor_over_processes(on_device(values, device)).tolist())


def gathered(value: list[str]) -> list[list[str]]:
    """Return, in every process, the lists of all processes in rank order."""
    if torch.distributed.get_world_size() == 1:
        return [value]
    values: list[list[str]] = [[]] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(values, value)
    return values


def from_first_process(value: int) -> int:
    """Return, in every process, the integer of process 0."""
    if torch.distributed.get_world_size() == 1:
        return value
    holder = [value]
    torch.distributed.broadcast_object_list(holder, src=0)
    return holder[0]
