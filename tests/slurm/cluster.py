"""A real Slurm of two nodes with accounting on one machine: `python tests/slurm/cluster.py install|start|stop|status`.

Made of Debian's packages, without systemd: munged, mariadbd, slurmdbd, slurmctld and two slurmd, with state, sockets
and ports of their own. Needs root. `stop` ends every process that the cluster or its jobs started.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cluster_files import (
    ACCOUNT,
    CLUSTER,
    DATABASE_PORT,
    NODES,
    STATE,
    ClusterError,
    foreign_files,
    name_nodes,
    refuse_foreign_files,
    remove_files,
    write_files,
)

PACKAGES = ("slurm-wlm", "slurmdbd", "slurm-client", "munge", "mariadb-server")
COMMANDS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "mariadb-install-db", "sbatch", "sacctmgr")
# The environment of every daemon contains this variable, and so does every step of a slurmd; `stop` finds them by it.
MARK = "HATCHERY_TEST_CLUSTER"
DAEMONS = ("munged", "mariadbd", "slurmdbd", "slurmctld", *(f"slurmd.{node}" for node in NODES))
START_SECONDS = 120.0


def unavailable() -> str:
    """Return in one sentence why no test cluster can run here; empty if one can run."""
    if not sys.platform.startswith("linux"):
        return "the test cluster needs Linux"
    if os.geteuid() != 0:
        return "the test cluster needs root"
    missing = [name for name in COMMANDS if shutil.which(name, path=_search_path()) is None]
    if missing:
        return f"{missing[0]} is missing: run `python tests/slurm/cluster.py install` (Debian's {' '.join(PACKAGES)})"
    if foreign_files():
        return f"{foreign_files()[0]} belongs to another cluster"
    return ""


def install() -> None:
    """Install Debian's packages. Their services stay off: only `start` of this file starts daemons."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    refuse_foreign_files()
    for command in (["apt-get", "update"], ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]):
        if subprocess.run(command, env=environment, check=False).returncode != 0:
            raise ClusterError(f"`{' '.join(command)}` failed: see above")


def start() -> None:
    """Start the cluster and return when both nodes are idle; a running cluster is kept.

    Raises ClusterError if the cluster cannot run here or a daemon does not come up, with the end of its log.
    """
    reason = unavailable()
    if reason:
        raise ClusterError(reason)
    if is_up():
        name_nodes()
        return
    stop()
    write_files()
    _start_munge()
    _start_database()
    _start("slurmdbd", ["slurmdbd", "-D"])
    _wait("slurmdbd", lambda: _succeeds("sacctmgr", "--noheader", "show", "cluster"))
    _add_account()
    _start("slurmctld", ["slurmctld", "-D"])
    for node in NODES:
        _start(f"slurmd.{node}", ["slurmd", "-D", "-N", node])
    _wait("slurmctld", is_up)


def stop() -> None:
    """Cancel all jobs, end all daemons and all processes of jobs, and remove the settings from /etc."""
    if _pid("slurmctld") is not None and _succeeds("scontrol", "ping"):
        subprocess.run(["scancel", "--full", "--user=root"], env=_environment(), check=False, timeout=60)
        _until(lambda: not _output("squeue", "--noheader").strip(), seconds=20)
    # Stop Slurm first, in reverse order of the start, because the accounting must outlive the daemons that write to it.
    for name in reversed(DAEMONS):
        _terminate(name)
    for pid in leftovers():
        _kill(pid, signal.SIGKILL)
    _until(lambda: not leftovers(), seconds=10)
    remove_files()


def forget_jobs() -> None:
    """Empty the accounting of a stopped cluster, because jobs of earlier sessions may have had the same folders."""
    shutil.rmtree(STATE / "database", ignore_errors=True)


def status() -> dict[str, str]:
    """Return the state of each daemon and node, such as {"slurmctld": "runs (pid 4711)", "n1": "idle"}."""
    pids = {name: _pid(name) for name in DAEMONS}
    found = {name: "off" if pid is None else f"runs (pid {pid})" for name, pid in pids.items()}
    return {**found, **{node: node_states().get(node, "unknown") for node in NODES}}


def node_states() -> dict[str, str]:
    """Return the state of every node in Slurm's words (`idle`, `mixed`, `down`); empty if no controller answers."""
    if _pid("slurmctld") is None:
        return {}
    lines = _output("sinfo", "--noheader", "--Node", "--format=%N %T", "--partition=main").splitlines()
    return {name: state for name, _, state in (line.partition(" ") for line in lines)}


def is_up() -> bool:
    """Return whether all daemons run and every node takes jobs."""
    if any(_pid(name) is None for name in DAEMONS):
        return False
    states = node_states()
    return all(states.get(node) in ("idle", "mixed", "allocated", "completing") for node in NODES)


def leftovers() -> list[int]:
    """Return the running processes of the cluster: daemons, steps, and every process below a step."""
    marked, parents = set(), {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            state, parent = stat.rsplit(")", 1)[1].split()[:2]
            if state == "Z":
                continue
            parents[int(folder.name)] = int(parent)
            if f"{MARK}=".encode() in (folder / "environ").read_bytes():
                marked.add(int(folder.name))
        except OSError:
            continue
    found = set(marked)
    while True:
        below = {pid for pid, parent in parents.items() if parent in found and pid not in found}
        if not below:
            return sorted(found)
        found |= below


def _start_munge() -> None:
    _start(
        "munged",
        [
            *("munged", "--foreground", "--force", f"--key-file={STATE}/munge.key", f"--socket={STATE}/munge.socket"),
            *(f"--pid-file={STATE}/munge.pid", f"--log-file={STATE}/log/munge.log", f"--seed-file={STATE}/munge.seed"),
        ],
    )
    _wait("munged", lambda: _succeeds("munge", f"--socket={STATE}/munge.socket", "--no-input"))


def _start_database() -> None:
    data = STATE / "database"
    if not (data / "mysql").is_dir():
        shutil.rmtree(data, ignore_errors=True)
        _must(
            *("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        )
    _start(
        "mariadbd",
        [
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={STATE}/database.socket"),
            *("--bind-address=127.0.0.1", f"--port={DATABASE_PORT}", "--skip-name-resolve"),
            *(f"--init-file={STATE}/grants.sql", f"--pid-file={STATE}/database.pid"),
            # slurmdbd asks for the first settings. No write waits for the disk, because no data outlives a test.
            *("--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0"),
        ],
    )
    _wait("mariadbd", lambda: _succeeds("mariadb-admin", "--no-defaults", f"--socket={STATE}/database.socket", "ping"))


def _add_account() -> None:
    for entity in (
        ("cluster", CLUSTER),
        ("account", ACCOUNT, f"cluster={CLUSTER}"),
        ("user", "root", f"account={ACCOUNT}", f"cluster={CLUSTER}"),
    ):
        # The command exits with 1 if the entity exists already, so the result is checked below.
        subprocess.run(
            ["sacctmgr", "--immediate", "add", *entity], env=_environment(), capture_output=True, check=False
        )
    listed = _output("sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=cluster,account,user")
    if f"{CLUSTER}|{ACCOUNT}|root" not in listed.split():
        raise ClusterError(f"account {ACCOUNT} was not made in the accounting: it holds {listed.split()}")


def _start(name: str, command: list[str]) -> None:
    with (STATE / f"log/{name}.out").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=_environment(),
            cwd=STATE,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (STATE / f"{name}.started").write_text(str(process.pid), encoding="utf-8")


def _pid(name: str) -> int | None:
    """Return the process id of a running daemon of this cluster, or None if it does not run."""
    try:
        pid = int((STATE / f"{name}.started").read_text(encoding="utf-8"))
        marked = f"{MARK}=".encode() in Path(f"/proc/{pid}/environ").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()[0]
    except (OSError, ValueError):
        return None
    return pid if marked and state != "Z" else None


def _terminate(name: str) -> None:
    pid = _pid(name)
    if pid is not None:
        _kill(pid, signal.SIGTERM)
        if not _until(lambda: _pid(name) is None, seconds=15):
            _kill(pid, signal.SIGKILL)
            _until(lambda: _pid(name) is None, seconds=5)
    (STATE / f"{name}.started").unlink(missing_ok=True)


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def _wait(name: str, condition: Callable[[], bool]) -> None:
    if not _until(condition, START_SECONDS):
        logs = [path for path in (STATE / f"log/{name}.log", STATE / f"log/{name}.out") if path.is_file()]
        ends = [line for path in logs for line in path.read_text(errors="replace").splitlines()[-8:]]
        raise ClusterError(f"{name} did not come up within {START_SECONDS:.0f} s; its log ends: {' / '.join(ends)}")


def _search_path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH"))}
    return {**kept, "PATH": _search_path(), MARK: str(STATE)}


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, env=_environment(), capture_output=True, check=False, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _output(*command: str) -> str:
    try:
        result = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return ""
    return result.stdout


def _must(*command: str) -> None:
    result = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {(result.stderr or result.stdout).strip()}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("install", "start", "stop", "status"))
    action = parser.parse_args().action
    try:
        {"install": install, "start": start, "stop": stop, "status": lambda: None}[action]()
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if action != "install":
        print("\n".join(f"{name:14} {state}" for name, state in status().items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
