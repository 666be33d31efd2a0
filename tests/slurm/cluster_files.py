"""The files of the test cluster: their paths and contents, and which files may be overwritten.

Slurm's own files must be in /etc/slurm, because Snakemake's executor removes SLURM_CONF from the environment of every
job. They are written only if no file exists or the file starts with `MARKER`, so a real cluster's settings are safe.
"""

import os
import secrets
import socket
import stat
from pathlib import Path

MARKER = "# Written by tests/slurm/cluster.py of Hatchery; removed and replaced without asking."
SETTINGS = Path("/etc/slurm")
STATE = Path("/var/lib/hatchery-slurm")
HOSTS = Path("/etc/hosts")
HOSTS_MARK = "# Hatchery's test cluster"
TEMPLATES = Path(__file__).resolve().parent / "templates"

CLUSTER = "hatchery"
ACCOUNT = "testers"
NODES = ("n1", "n2")
CPUS_PER_NODE = 64
MEMORY_PER_NODE_MB = 512_000
GPUS_PER_NODE = 8
KILL_WAIT_SECONDS = 10
# These ports are below the rendezvous ports of training jobs and below the ephemeral ports.
CONTROLLER_PORT, ACCOUNTING_PORT, DATABASE_PORT, FIRST_NODE_PORT = 16817, 16819, 16306, 16821


class ClusterError(Exception):
    """The test cluster cannot be installed, started or stopped; the message says why and what to do."""


def _node_lines() -> str:
    return "\n".join(
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={FIRST_NODE_PORT + index} "
        f"CPUs={CPUS_PER_NODE} RealMemory={MEMORY_PER_NODE_MB} Gres=gpu:fake:{GPUS_PER_NODE} State=UNKNOWN"
        for index, name in enumerate(NODES)
    )


def _make_devices() -> str:
    """Make one character device (a second /dev/null) per GPU, because Slurm numbers GPUs by their devices."""
    lines = []
    for index in range(GPUS_PER_NODE):
        path = STATE / f"gpu{index}"
        if not path.exists():
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        lines.append(str(path))
    return f"NodeName={','.join(NODES)} Name=gpu Type=fake File={STATE}/gpu[0-{GPUS_PER_NODE - 1}]"


def foreign_files() -> list[Path]:
    """Return settings in /etc/slurm that this module did not write and would have to overwrite."""
    paths = [SETTINGS / name for name in ("slurm.conf", "slurmdbd.conf", "gres.conf")]
    return [path for path in paths if path.exists() and not path.read_text(encoding="utf-8").startswith(MARKER)]


def refuse_foreign_files() -> None:
    """Raise ClusterError if /etc/slurm contains somebody else's settings."""
    foreign = foreign_files()
    if foreign:
        raise ClusterError(
            f"{foreign[0]} was not written by the test cluster: this machine seems to belong to a real one. "
            "Run the tests elsewhere, or move the file away."
        )


def write_files() -> None:
    """Write all settings, a key for munge, and the names of the nodes in /etc/hosts.

    Raises ClusterError if /etc/slurm contains somebody else's settings.
    """
    refuse_foreign_files()
    STATE.mkdir(mode=0o755, parents=True, exist_ok=True)
    for folder in ("log", "controller", *(f"spool.{node}" for node in NODES)):
        (STATE / folder).mkdir(exist_ok=True)
    SETTINGS.mkdir(exist_ok=True)
    key = STATE / "munge.key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
    values = {
        "cluster": CLUSTER,
        "hostname": socket.gethostname().split(".")[0],
        "state": str(STATE),
        "controller_port": CONTROLLER_PORT,
        "accounting_port": ACCOUNTING_PORT,
        "database_port": DATABASE_PORT,
        "kill_wait_seconds": KILL_WAIT_SECONDS,
        "nodes": _node_lines(),
        "devices": _make_devices(),
        "password": secrets.token_hex(16),
    }
    _write(SETTINGS / "slurm.conf", "slurm.conf", values)
    _write(SETTINGS / "gres.conf", "gres.conf", values)
    _write(SETTINGS / "slurmdbd.conf", "slurmdbd.conf", values, mode=0o600)
    _write(STATE / "grants.sql", "grants.sql", values, first_line="")
    name_nodes()


def _write(path: Path, template: str, values: dict[str, object], mode: int = 0o644, first_line: str = MARKER) -> None:
    text = (TEMPLATES / template).read_text(encoding="utf-8").format(**values)
    path.unlink(missing_ok=True)
    path.touch(mode=mode)
    path.write_text(f"{first_line}\n{text}" if first_line else text, encoding="utf-8")


def remove_files() -> None:
    """Remove the files of `write_files` from /etc; state and logs stay."""
    for name in ("slurm.conf", "slurmdbd.conf", "gres.conf"):
        path = SETTINGS / name
        if path.exists() and path.read_text(encoding="utf-8").startswith(MARKER):
            path.unlink()
    forget_nodes()


def name_nodes() -> None:
    """Let the names of the nodes resolve to this machine, as they do on a real cluster."""
    forget_nodes()
    with HOSTS.open("a", encoding="utf-8") as handle:
        handle.write(f"127.0.0.1 {' '.join(NODES)} {HOSTS_MARK}\n")


def forget_nodes() -> None:
    """Remove the nodes' names, in place because in containers /etc/hosts is a mount that cannot be replaced."""
    lines = HOSTS.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if HOSTS_MARK not in line]
    if kept != lines:
        HOSTS.write_text("".join(kept), encoding="utf-8")
