"""Device, threads and process group of one training process.

A single process needs no network at all: its group lives in an in-memory store, so two trainings on one machine
cannot clash over a port. Several processes meet at the address that the topology names. CPU training uses gloo.
Whoever loses the others says so in one line with its rank, and nobody waits for a dead process for long.
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

# Long enough for the first process to verify or write a large checkpoint while the others wait, and no longer: where a
# process hangs or its node is lost, the others hold their GPUs for nothing until then.
COLLECTIVE_TIMEOUT = timedelta(minutes=10)
# What gloo, NCCL and the store say when the other side is gone; torch has no class for it that gloo would use.
_LOST = re.compile(
    r"\b(gloo|nccl|TCPStore|socket|connection (closed|reset|refused)|broken pipe|timed out|wait timeout)\b", re.I
)
# The first process announces whether there is anything to train.
_ANNOUNCEMENT, _RECEIVED = "hatchery/announcement", "hatchery/received"


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


def prepare_device(device: torch.device, threads: int | None, compiled: bool = False) -> None:
    """Set the number of CPU threads and, on the CPU, torch's deterministic algorithms and an allocator that keeps.

    `compiled` tells the compiler of them, too. On CUDA determinism costs speed and is not promised. Filling fresh
    memory, which torch couples to determinism, is switched off: it only helps to find uninitialised reads and costs a
    pass over every new tensor.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if device.type == "cpu":
        if compiled:
            torch.use_deterministic_algorithms(True)
        else:
            # The same, without importing the compiler only to set an option of its, which takes a second.
            torch.set_deterministic_debug_mode("error")
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        keep_freed_memory()
    else:
        torch.cuda.set_device(device)


def import_deepspeed(device: torch.device) -> Any:
    """Import DeepSpeed for `device`, quietly and without compiling anything."""
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
        # Its lines belong to the log, not to the command's output. Handlers of others (pytest's) are left alone.
        if type(handler) is logging.StreamHandler:
            # `setStream` would flush the stream of an earlier training in this process, which may be closed.
            handler.stream = sys.stderr
    if device.type == "cpu":
        # DeepSpeed compiles a shared-memory all-reduce at the first use of gloo (40 seconds, and a compiler must be
        # there), though only its inference code calls it. This table is what it asks before it builds; there is no
        # switch for it.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def rendezvous(topology: Topology) -> torch.distributed.Store:
    """The store over which the processes find each other. Raises TrainingError when they do not meet.

    To be kept as long as a process group uses it; in the first process it is the server of all others.
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
    """Send a word to all other processes, once, and wait until they have it; first process only."""
    if topology.world_size == 1:
        return
    store.set(_ANNOUNCEMENT, word)
    deadline = time.monotonic() + COLLECTIVE_TIMEOUT.total_seconds()
    while store.add(_RECEIVED, 0) < topology.world_size - 1:
        if time.monotonic() > deadline:
            raise TrainingError("the other processes did not come within the time that is set for it")
        time.sleep(0.01)


def await_announcement(store: torch.distributed.Store, timeout: timedelta) -> str:
    """The word of the first process. Raises TrainingError when it does not come within `timeout`."""
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
    """Open torch's process group for the duration of the block, by default over a store of its own.

    Where one process on the CPU need not share the optimiser's state with itself, the group has no threads and sends
    nothing: gloo would hang at the end of a process in which it could not start its threads.
    Raises TrainingError when the processes do not meet, and when one of them goes away.
    """
    backend = "gloo" if device.type == "cpu" else "nccl"
    if topology.world_size == 1 and device.type == "cpu" and not shares_state:
        # This call registers the backend.
        importlib.import_module("torch.testing._internal.distributed.fake_pg")
        backend = "fake"
    # Before the group is open: default arguments of functions in these modules would hold it as long as the interpreter
    # lives, and with it threads that can end the interpreter in "terminate called without an active exception".
    importlib.import_module("torch.distributed.nn.functional")
    import_deepspeed(device)
    if topology.world_size == 1 and sys.platform == "linux":
        # gloo otherwise looks up the host's name, which fails or waits on machines without a network.
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
    """Errors of the block that are told to the user begin with the rank of this process, if there are several."""
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
        f"the other processes are lost: {first_line(error)}; look for the message of the one that ended first"
    )


def _leave_process_group() -> None:
    """Close the group and end its threads, which go with the last reference to it."""
    deepspeed: Any = sys.modules.get("deepspeed.comm.comm")
    if deepspeed is not None and deepspeed.cdb is not None:
        # It holds the group, too, and forgets it in the same go.
        deepspeed.destroy_process_group()
        deepspeed.cdb = None
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    # DeepSpeed's objects refer to each other in circles, and some of them to the group.
    gc.collect()
