"""Device, threads and process group of one training process.

A single process needs no network: its group uses an in-memory store, so two trainings on one machine cannot use the
same port. Several processes connect at the address in the topology. CPU training uses gloo. A process that loses its
connection to the others reports this in one line with its rank, and waits for a dead process at most
`COLLECTIVE_TIMEOUT`.
"""

import gc
import importlib
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from hatchery.errors import ConfigError, HatcheryError, TrainingError, first_line
from hatchery.training.speed import keep_freed_memory
from hatchery.training.topology import Topology

# Enough time for the first process to verify or write a large checkpoint while the others wait; if a process hangs or
# its node is lost, the others hold their GPUs in vain until then.
COLLECTIVE_TIMEOUT = timedelta(minutes=10)
# Words in the messages of gloo, NCCL and the store when another process has ended; torch has no exception class for it
# that gloo uses.
_LOST = re.compile(
    r"\b(gloo|nccl|TCPStore|socket|connection (closed|reset|refused)|broken pipe|timed out|wait timeout)\b", re.I
)
# Keys in the store: the first process's announcement whether there is anything to train, and the receipts of the
# others.
_ANNOUNCEMENT, _RECEIVED = "hatchery/announcement", "hatchery/received"


def select_device(requested: str, topology: Topology) -> torch.device:
    """Return the device of this process. Raises ConfigError if CUDA is requested and missing.

    If Slurm shows all GPUs of a node to each task, the local rank selects one; if it shows one GPU, that one is used.
    """
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise ConfigError("runtime.device: got 'cuda', but torch sees no CUDA device here; use 'cpu' or 'auto'")
    if requested == "cpu" or not available:
        return torch.device("cpu")
    return torch.device("cuda", topology.local_rank % torch.cuda.device_count())


def prepare_device(device: torch.device, threads: int | None, compiled: bool = False) -> None:
    """Set the number of CPU threads and, on the CPU, torch's deterministic algorithms and an allocator that keeps
    memory.

    `compiled` makes the compiler deterministic, too. On CUDA determinism costs speed and is not promised. Filling fresh
    memory, which torch couples to determinism, is switched off: it only helps to find uninitialised reads and costs a
    pass over every new tensor.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if device.type == "cpu":
        if compiled:
            torch.use_deterministic_algorithms(True)
        else:
            # torch.use_deterministic_algorithms does the same, but also imports the compiler, which takes a second.
            torch.set_deterministic_debug_mode("error")
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        keep_freed_memory()
    else:
        torch.cuda.set_device(device)


def import_deepspeed(device: torch.device) -> Any:
    """Import DeepSpeed for `device`, without output on the command's stdout and without compiling extensions."""
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ["LOCAL_RANK"] = str(device.index or 0)
    try:
        import deepspeed
        import deepspeed.ops
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"training needs the package {error.name}, which is not installed here; `make env` installs everything, "
            'and pip install ".[train]" the packages that training needs'
        ) from error

    for handler in logging.getLogger("DeepSpeed").handlers:
        # DeepSpeed's log lines go to stderr, not to the command's output. Handlers of other libraries (pytest's) stay
        # unchanged.
        if type(handler) is logging.StreamHandler:
            # `setStream` would flush the stream of an earlier training in this process, which may be closed.
            handler.stream = sys.stderr
    if device.type == "cpu":
        # DeepSpeed compiles a shared-memory all-reduce at the first use of gloo (40 seconds, and it needs a compiler),
        # though only its inference code calls it. It reads this table before it builds; there is no other switch.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def rendezvous(topology: Topology) -> torch.distributed.Store:
    """Return the store over which the processes find each other. Raises TrainingError if they do not meet.

    The store must exist as long as a process group uses it; the first process's store is the server of all others.
    """
    if topology.world_size == 1:
        return torch.distributed.HashStore()
    url = f"tcp://{topology.address}:{topology.port}"
    try:
        return next(torch.distributed.rendezvous(url, topology.rank, topology.world_size, timeout=COLLECTIVE_TIMEOUT))[
            0
        ]
    except (RuntimeError, ValueError) as error:
        raise _no_rendezvous(topology, error) from error


def announce(store: torch.distributed.Store, word: str, topology: Topology) -> None:
    """Send the message `word` to all other processes, once, and wait until they have received it. Only the first
    process calls this."""
    if topology.world_size == 1:
        return
    store.set(_ANNOUNCEMENT, word)
    deadline = time.monotonic() + COLLECTIVE_TIMEOUT.total_seconds()
    while store.add(_RECEIVED, 0) < topology.world_size - 1:
        if time.monotonic() > deadline:
            raise TrainingError("the other processes did not connect within the time limit")
        time.sleep(0.01)


def await_announcement(store: torch.distributed.Store, timeout: timedelta) -> str:
    """Return the message that the first process announced. Raises TrainingError if none arrives within `timeout`."""
    try:
        store.wait([_ANNOUNCEMENT], timeout)
        word = store.get(_ANNOUNCEMENT).decode()
        store.add(_RECEIVED, 1)
    except RuntimeError as error:
        raise _lost(error) from error
    return word


@contextmanager
def process_group(
    topology: Topology,
    device: torch.device,
    store: torch.distributed.Store | None = None,
    shares_state: bool = True,
) -> Iterator[None]:
    """Open torch's process group for the duration of the `with` block, by default over a new store.

    For one process on the CPU that does not shard the optimiser's state (`shares_state`), the group has no threads and
    sends nothing, because gloo would hang at the end of a process in which it could not start its threads. Raises
    TrainingError if the processes do not meet, and if one of them ends.
    """
    backend = "gloo" if device.type == "cpu" else "nccl"
    if topology.world_size == 1 and device.type == "cpu" and not shares_state:
        # This import registers the backend "fake".
        importlib.import_module("torch.testing._internal.distributed.fake_pg")
        backend = "fake"
    # Imported before the group is open, because default arguments of functions in these modules would keep an open
    # group until the interpreter ends, and with it threads that can abort the interpreter with "terminate called
    # without an active exception".
    importlib.import_module("torch.distributed.nn.functional")
    import_deepspeed(device)
    if topology.world_size == 1 and sys.platform == "linux":
        # Otherwise gloo looks up the host's name, which fails or waits on machines without a network.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        torch.distributed.init_process_group(
            backend,
            store=rendezvous(topology) if store is None else store,
            rank=topology.rank,
            world_size=topology.world_size,
            timeout=COLLECTIVE_TIMEOUT,
        )
    except (RuntimeError, ValueError) as error:
        raise _no_rendezvous(topology, error) from error
    try:
        yield
    except RuntimeError as error:
        if topology.world_size > 1 and _LOST.search(str(error)):
            raise _lost(error) from error
        raise
    finally:
        _leave_process_group()


@contextmanager
def named_in_errors(topology: Topology) -> Iterator[None]:
    """Prefix the messages of HatcheryError in the `with` block with the rank of this process, if there are several
    processes."""
    try:
        yield
    except HatcheryError as error:
        if topology.world_size == 1:
            raise
        raise type(error)(f"process {topology.rank} of {topology.world_size}: {error}") from error


def _no_rendezvous(topology: Topology, error: Exception) -> TrainingError:
    where = f"{topology.address}:{topology.port}"
    return TrainingError(f"cannot meet the other processes at {where}: {first_line(error)}")


def _lost(error: Exception) -> TrainingError:
    return TrainingError(
        f"the other processes are lost: {first_line(error)}; see the message of the process that ended first"
    )


def _leave_process_group() -> None:
    """Close the process group and remove all references to it, because its threads end with the last reference."""
    deepspeed: Any = sys.modules.get("deepspeed.comm.comm")
    if deepspeed is not None and deepspeed.cdb is not None:
        # DeepSpeed also holds the group, and releases it in this call.
        deepspeed.destroy_process_group()
        deepspeed.cdb = None
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    # DeepSpeed's objects refer to each other in cycles, and some of them to the group.
    gc.collect()
