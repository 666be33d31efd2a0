"""Device, CPU threads and process group of one training process.

A single process uses an in-memory store and no network port, so trainings on one machine do not compete for a port.
Several processes connect at the address of the first process, which `Topology` contains. On CPUs, processes communicate
by gloo. A process that loses its connection reports the lost connection with its rank. A process waits for a dead
process at most `COLLECTIVE_TIMEOUT`.
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

# Maximum waiting time in an operation of all processes: enough for the first process to verify or write a large
# checkpoint. If a process hangs or its node fails, the other processes hold their GPUs for this time.
COLLECTIVE_TIMEOUT = timedelta(minutes=10)
# Words in error messages of gloo, NCCL and the store after another process has ended. The text of an error is searched
# for these words, because gloo raises no specific exception class.
_LOST = re.compile(
    r"\b(gloo|nccl|TCPStore|socket|connection (closed|reset|refused)|broken pipe|timed out|wait timeout)\b", re.I
)
# Keys in the store: the message of the first process, which says whether there is anything to train, and the number of
# processes that have received this message.
_ANNOUNCEMENT, _RECEIVED = "hatchery/announcement", "hatchery/received"


def select_device(requested: str, topology: Topology) -> torch.device:
    """Return the device of this process. Raises ConfigError if `requested` is "cuda" but torch finds no CUDA device.

    If the process sees several GPUs of its node, its local rank selects one of them.
    """
    available = torch.cuda.is_available()
    if requested == "cuda" and not available:
        raise ConfigError("runtime.device: got 'cuda', but torch sees no CUDA device here; use 'cpu' or 'auto'")
    if requested == "cpu" or not available:
        return torch.device("cpu")
    return torch.device("cuda", topology.local_rank % torch.cuda.device_count())


def prepare_device(device: torch.device, threads: int | None, compiled: bool = False) -> None:
    """Set the number of CPU threads; on a CPU, also make torch deterministic and keep freed memory for reuse.

    If `compiled` is true, torch's compiler is also made deterministic. On CUDA, training is not deterministic, because
    determinism costs speed. By default, torch's deterministic mode also fills every new tensor with values, to expose
    reads of uninitialised memory. This function switches the filling off, because it costs a pass over every new
    tensor.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    if device.type == "cpu":
        if compiled:
            torch.use_deterministic_algorithms(True)
        else:
            # This call has the effect of torch.use_deterministic_algorithms(True), but does not import the compiler,
            # because that import takes a second.
            torch.set_deterministic_debug_mode("error")
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        keep_freed_memory()
    else:
        torch.cuda.set_device(device)


def import_deepspeed(device: torch.device) -> Any:
    """Import DeepSpeed for `device`; the import writes no output to stdout and compiles no extensions. Raises
    ConfigError if a package is missing."""
    os.environ["DS_ACCELERATOR"] = device.type
    os.environ["LOCAL_RANK"] = str(device.index or 0)
    try:
        import deepspeed
        import deepspeed.ops
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"training needs the package {error.name}, which is not installed; `make env` installs all packages; "
            'pip install ".[train]" installs the packages that training needs'
        ) from error

    for handler in logging.getLogger("DeepSpeed").handlers:
        # Send DeepSpeed's log lines to stderr, because stdout is the command's output. Handlers of other classes, such
        # as pytest's handlers, are not changed.
        if type(handler) is logging.StreamHandler:
            # Set the attribute `stream` directly: the method `setStream` would first flush the old stream, which an
            # earlier training may have closed.
            handler.stream = sys.stderr
    if device.type == "cpu":
        # This entry prevents DeepSpeed from compiling a shared-memory all-reduce at the first use of gloo, which takes
        # 40 seconds and needs a compiler. Only DeepSpeed's inference code uses this all-reduce. No other switch exists.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


def rendezvous(topology: Topology) -> torch.distributed.Store:
    """Return the store through which the processes connect. Raises TrainingError if they cannot connect.

    The store must exist as long as a process group uses it. The first process's store is the server of all other
    processes.
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
    """Send the message `word` to all other processes, and wait until they have received the message.

    Only the first process calls this function, once. Raises TrainingError if the other processes do not connect.
    """
    if topology.world_size == 1:
        return
    store.set(_ANNOUNCEMENT, word)
    deadline = time.monotonic() + COLLECTIVE_TIMEOUT.total_seconds()
    while store.add(_RECEIVED, 0) < topology.world_size - 1:
        if time.monotonic() > deadline:
            raise TrainingError("the other processes of this training did not connect within the time limit")
        time.sleep(0.01)


def await_announcement(store: torch.distributed.Store, timeout: timedelta) -> str:
    """Return the message that the first process announced. Raises TrainingError if no message arrives within
    `timeout`."""
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
    """Open torch's process group during the `with` block. If `store` is None, a new store is made.

    Set `shares_state` to False if the optimiser state is not sharded. A single process on a CPU then gets a process
    group that starts no threads and sends nothing. The library gloo is not used in this case, because it may fail to
    start its threads and then hang at the end of the process. Raises TrainingError if the processes cannot connect, and
    if another process ends.
    """
    backend = "gloo" if device.type == "cpu" else "nccl"
    if topology.world_size == 1 and device.type == "cpu" and not shares_state:
        # Import for its effect: it registers the backend "fake", which starts no threads.
        importlib.import_module("torch.testing._internal.distributed.fake_pg")
        backend = "fake"
    # Import these modules before the process group opens. If the group were open, default arguments of their functions
    # would refer to the group and keep it open until the interpreter ends. The threads of the group could then abort
    # the process ("terminate called without an active exception").
    importlib.import_module("torch.distributed.nn.functional")
    import_deepspeed(device)
    if topology.world_size == 1 and sys.platform == "linux":
        # Without this variable gloo looks up the host's name, which fails or waits on machines without a network.
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
    """Add this process's rank to the messages of HatcheryErrors in the `with` block, if there are several processes."""
    try:
        yield
    except HatcheryError as error:
        if topology.world_size == 1:
            raise
        raise type(error)(f"process {topology.rank} of {topology.world_size}: {error}") from error


def _no_rendezvous(topology: Topology, error: Exception) -> TrainingError:
    where = f"{topology.address}:{topology.port}"
    return TrainingError(f"cannot connect to the other processes at {where}: {first_line(error)}")


def _lost(error: Exception) -> TrainingError:
    return TrainingError(
        f"the other processes are lost: {first_line(error)}; see the message of the process that ended first"
    )


def _leave_process_group() -> None:
    """Close the process group and delete all references to it, because its threads end with the last reference."""
    deepspeed: Any = sys.modules.get("deepspeed.comm.comm")
    if deepspeed is not None and deepspeed.cdb is not None:
        # Release DeepSpeed's own reference to the group.
        deepspeed.destroy_process_group()
        deepspeed.cdb = None
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    # Call the garbage collector, because DeepSpeed's objects form reference cycles, some of which contain the group.
    gc.collect()
