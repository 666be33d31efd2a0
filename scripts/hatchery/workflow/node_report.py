"""What one node sees, told in a file: run by a probe job of `check_cluster` on every node that it got.

Imports nothing that a job's environment may lack; torch is looked at only if it is there. Several tasks of one step
also try what pretraining needs: a connection to the first node, and a sum over all processes.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hatchery.artifacts.atomic import write_text
from hatchery.training.topology import Topology, read_topology

MESSAGE_BYTES = 16 * 2**20
NETWORK_SECONDS = 60.0
UNFINISHED = "failed: ended while the processes added up a number"


@dataclass(frozen=True)
class NodeReport:
    """One task's view of its node; a text beginning with `failed: ` says why something did not work."""

    host: str
    rank: int
    # Whether the file that the submitting machine wrote before is seen, with its content.
    sees_file: bool
    python: str
    # Lines of `nvidia-smi -L`.
    gpus: list[str] = field(default_factory=list)
    # Version of torch and what it finds, or why it cannot be imported.
    torch: str = ""
    torch_gpus: int = 0
    # Empty for a single task.
    connection: str = ""
    collective: str = ""


def report_node(folder: Path, token: str) -> None:
    """Write `<folder>/node-<rank>.json`; `token` is what the file `<folder>/token` must hold."""
    topology = read_topology(os.environ)
    try:
        sees_file = (folder / "token").read_text(encoding="utf-8") == token
    except OSError:
        sees_file = False
    torch, torch_gpus = _torch()
    several = topology.world_size > 1
    report = NodeReport(
        host=socket.gethostname() + (f" ({name})" if (name := os.environ.get("SLURMD_NODENAME")) else ""),
        rank=topology.rank,
        sees_file=sees_file,
        python=sys.executable,
        gpus=_gpus(),
        torch=torch,
        torch_gpus=torch_gpus,
        connection=exchange(topology) if several else "",
        collective=UNFINISHED if several else "",
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"node-{topology.rank}.json"
    # Before the sum as well: NCCL ends a process that waits in vain.
    write_text(path, json.dumps(asdict(report), sort_keys=True) + "\n")
    if several:
        report = replace(report, collective=_sum_over_processes(topology, torch_gpus))
        write_text(path, json.dumps(asdict(report), sort_keys=True) + "\n")


def read_report(path: Path) -> NodeReport:
    """The report of one task."""
    return NodeReport(**json.loads(path.read_text(encoding="utf-8")))


def exchange(topology: Topology, seconds: float = NETWORK_SECONDS) -> str:
    """Rank 0 listens, the others send it some megabytes; the rate in words, or `failed: ` and why."""
    try:
        if topology.is_first:
            return _listen(topology, seconds)
        return _send(topology, seconds)
    except OSError as error:
        return f"failed: {topology.address}:{topology.port}: {error}"


def _listen(topology: Topology, seconds: float) -> str:
    received = 0
    with socket.create_server(("", topology.port or 0)) as server:
        server.settimeout(seconds)
        for _ in range(topology.world_size - 1):
            connection, _ = server.accept()
            with connection:
                connection.settimeout(seconds)
                expected = MESSAGE_BYTES
                while expected and (block := connection.recv(min(2**16, expected))):
                    expected -= len(block)
                    received += len(block)
                connection.sendall(b"0" if expected else b"1")
    if received != MESSAGE_BYTES * (topology.world_size - 1):
        return f"failed: received {received} bytes of {MESSAGE_BYTES * (topology.world_size - 1)}"
    return f"received {received / 2**20:.0f} MiB at {topology.address}:{topology.port}"


def _send(topology: Topology, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection((topology.address or "", topology.port or 0), timeout=seconds)
            break
        except ConnectionRefusedError:
            # Rank 0 may not listen yet.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    with connection:
        begun = time.monotonic()
        connection.sendall(bytes(MESSAGE_BYTES))
        answer = connection.recv(1)
    if answer != b"1":
        return f"failed: {topology.address} did not receive all of it"
    return f"sent {MESSAGE_BYTES / 2**20:.0f} MiB at {MESSAGE_BYTES / 2**20 / (time.monotonic() - begun):.0f} MiB/s"


def _sum_over_processes(topology: Topology, gpus: int) -> str:
    """The first thing that a pretraining does: all processes meet and add up their ones."""
    try:
        import datetime

        import torch
        from torch import distributed
    except ImportError as error:
        return f"failed: {error}"
    backend = "nccl" if gpus else "gloo"
    try:
        distributed.init_process_group(
            backend,
            init_method=f"tcp://{topology.address}:{(topology.port or 0) + 1}",
            rank=topology.rank,
            world_size=topology.world_size,
            timeout=datetime.timedelta(seconds=NETWORK_SECONDS),
        )
        one = torch.ones(1, device=f"cuda:{topology.local_rank}" if gpus else "cpu")
        distributed.all_reduce(one)
        # NCCL only begins the sum: what fails, fails where it is read.
        total = int(one.item())
        distributed.destroy_process_group()
    except Exception as error:
        return f"failed: {backend}: {' '.join(str(error).split())[:300]}"
    return f"{backend}, {total} processes" if total == topology.world_size else f"failed: {backend}: sum is {total}"


def _gpus() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"failed: {error}"]
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("GPU ")]
    return lines if done.returncode == 0 else [f"failed: {' '.join((done.stdout + done.stderr).split())[:200]}"]


def _torch() -> tuple[str, int]:
    try:
        import torch
    except ImportError as error:
        return f"failed: {error}", 0
    return f"{torch.__version__}", torch.cuda.device_count() if torch.cuda.is_available() else 0
