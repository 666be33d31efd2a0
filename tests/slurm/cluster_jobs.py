"""Helpers for tests of Slurm and of Snakemake on the cluster: submit, look, wait, kill.

Every wait has a limit in seconds; its error names the expected condition and the observed state.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from projects import configure, make_project

from hatchery.training.run_folder import Owner, read_sign

# Check jobs after a second instead of the profile's twenty, because these jobs are short, and use the tests'
# interpreter instead of conda.
OPTIONS = ("--slurm-init-seconds-before-status-checks=1", "--software-deployment-method=env-modules")
STEPS, DISTURBED_AFTER = 300, 40
RUNS = tuple(f"ltg_bert-s{seed}" for seed in (1, 2, 3, 4))
MODELS = tuple(f"results/long/pretraining/{run}/manifest.json" for run in RUNS)


@dataclass(frozen=True)
class Queued:
    """A job in the queue; Snakemake's executor writes rule and wildcards into `comment`."""

    job_id: str
    state: str
    folder: str
    comment: str


@dataclass(frozen=True)
class Sent:
    """A job that has ended, from the accounting."""

    job_id: str
    submitted: datetime
    ended: datetime
    state: str
    comment: str


def environment() -> dict[str, str]:
    """Return an environment with this interpreter's folder first on PATH and no variable of a surrounding Slurm job."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH", "SRUN"))}
    return {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"}


def cluster_command(action: str) -> subprocess.CompletedProcess[str]:
    """Run `cluster.py ACTION` as a user would, so that the daemons are not children of this process."""
    program = str(Path(__file__).resolve().parent / "cluster.py")
    return subprocess.run([sys.executable, program, action], capture_output=True, text=True, check=False, timeout=300)


def ask(*command: str) -> str:
    """Return the output of a Slurm command; raise AssertionError if it fails or takes more than a minute."""
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, f"{' '.join(command)}: {result.stderr.strip()}"
    return result.stdout


def log_of(folder: Path, model: str) -> Path:
    """Return the log of the pretraining to which an experiment's link points."""
    return folder / "logs/pretrain" / f"{(folder / model).parent.resolve().name}.log"


def pretraining_in_mid_run(folder: Path, model: str) -> Owner | None:
    """Return the process that writes the run of `model` once some of its steps are done, otherwise None."""
    for path in folder.glob("results/checkpoints/*/metrics.jsonl"):
        sign = read_sign(path.with_name("lock"))
        if sign is not None and Path(sign.owner.output).resolve() == (folder / model).resolve():
            steps = path.read_text(encoding="utf-8").count("\n")
            assert steps < STEPS, f"{model} is finished already: too fast for this test"
            return sign.owner if steps >= DISTURBED_AFTER else None
    return None


def submit(folder: Path, script: str, *options: str) -> str:
    """Send a shell script with sbatch from `folder` (its output is slurm-<job>.out there); return the job's id."""
    path = folder / "job.sh"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    return ask("sbatch", "--parsable", f"--chdir={folder}", *options, str(path)).strip().split(";")[0]


def make_cluster_project(folder: Path, repository: Path) -> Path:
    """Make a project folder whose pretrainings take two nodes on the cluster, with the same bytes as on one machine.

    For equal bytes, one process has to compute the same halves of each batch as two processes.
    """
    make_project(folder, repository)
    shutil.copy(Path(__file__).with_name("long.yaml"), folder / "config/experiments/long.yaml")
    configure(folder, nodes=2)
    configure(folder, "compute", micro_batch_size=8, checkpoint_interval_steps=20)
    return folder


def shorten_demo(folder: Path) -> None:
    """Reduce the demo of a project folder to two models with one seed each and seconds of training in each stage."""
    path = folder / "config/experiments/demo.yaml"
    text = path.read_text(encoding="utf-8")
    for long, short in (
        ("steps: 700", "steps: 20"),
        ("batch_size: 32", "batch_size: 16"),
        ("evaluation_interval_steps: 175", "evaluation_interval_steps: 10"),
        ("evaluation_sequences: 256", "evaluation_sequences: 16"),
        ("epochs: 10", "epochs: 1"),
        ("  random: {model: ltg_demo_small, seeds: [42, 43, 44], pretraining: {steps: 0}}\n", ""),
        ("tests_against: random\n", ""),
    ):
        assert text.count(long) == 1, f"demo.yaml does not say `{long}` once: mend this helper"
        text = text.replace(long, short)
    path.write_text(text.replace(", seeds: [42, 43, 44]", ""), encoding="utf-8")


def queued(folder: Path, rule: str = "") -> list[Queued]:
    """Return jobs from `folder` that wait, run or are about to end; with `rule`, only those of one rule."""
    lines = ask("squeue", "--noheader", "--format=%i|%T|%Z|%k").splitlines()
    jobs = [Queued(*line.split("|", 3)) for line in lines]
    return [job for job in jobs if Path(job.folder).resolve() == folder.resolve() and rule in job.comment]


def sent(folder: Path) -> list[Sent]:
    """Return all ended jobs from `folder`, by the accounting; a requeued job counts once for each start."""
    fields = "--format=JobIDRaw,Submit,End,State,WorkDir,Comment"
    lines = ask("sacct", "-nPX", "--duplicates", "--starttime=now-3hours", fields).splitlines()
    found = []
    for job_id, submitted, ended, ending, where, comment in (line.split("|", 5) for line in lines):
        if Path(where).resolve() == folder.resolve() and ended != "Unknown":
            times = (datetime.fromisoformat(submitted), datetime.fromisoformat(ended))
            found.append(Sent(job_id, *times, ending.split(" ")[0], comment))
    return found


def restarts(job_id: str) -> int:
    """Return how often Slurm requeued a job that is queued or ended at most some minutes ago."""
    found = re.search(r"Restarts=(\d+)", ask("scontrol", "show", "job", job_id))
    assert found, f"scontrol knows no job {job_id}"
    return int(found[1])


def state(job_id: str) -> str:
    """Return a job's state in the accounting, such as COMPLETED or TIMEOUT; empty if it is unknown."""
    lines = ask("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job_id}", "--format=State").split("\n")
    return lines[0].split(" ")[0]


def wait_for(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    """Return as soon as `condition` holds; after `seconds`, raise AssertionError with `what` and the queue."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            seen = ask("squeue", "--noheader", "--states=all", "--format=%i %T %R %k")
            raise AssertionError(f"not within {seconds:.0f} s: {what}; the last jobs: {'; '.join(seen.splitlines())}")
        time.sleep(0.3)


def wait_for_state(job_id: str, *states: str, seconds: float = 120) -> str:
    """Wait until a job is in one of `states` by the accounting; return that state."""
    wait_for(lambda: state(job_id) in states, f"job {job_id} {' or '.join(states)}", seconds)
    return state(job_id)


def cancel(folder: Path) -> None:
    """Cancel all jobs that were sent from `folder` and wait until they are gone."""
    for job in queued(folder):
        subprocess.run(["scancel", job.job_id], env=environment(), check=False, timeout=60)
    wait_for(lambda: not queued(folder), f"no more jobs of {folder}")


def rank_process(job_id: str, rank: int, command: str) -> int | None:
    """Return the process id of a rank in a job's newest step whose command line contains `command`, or None."""
    wanted = (f"SLURM_JOB_ID={job_id}", f"SLURM_PROCID={rank}")
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: -int(path.name)):
        try:
            surroundings = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if all(entry in surroundings for entry in wanted) and "python" in words[0] and command in " ".join(words):
            return int(folder.name)
    return None


def step_daemons(job_id: str, step: str) -> list[int]:
    """Return the process ids of the slurmstepd of a job's step, such as `batch` or `0`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if title.strip().startswith(f"slurmstepd: [{job_id}.{step}"):
                found.append(int(folder.name))
    return found


def snakemake_on_slurm(folder: Path, *arguments: str, seconds: int = 900) -> subprocess.CompletedProcess[str]:
    """Run `snakemake --profile slurm ARGUMENTS` in `folder`; interrupt it (which cancels its jobs) after `seconds`."""
    log = folder / "snakemake_alone.out"
    with _snakemake(folder, log, arguments) as process, contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return subprocess.CompletedProcess(process.args, process.returncode, log.read_text(encoding="utf-8"), "")


def snakemake_in_background(folder: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run Snakemake on Slurm during the block; its output is in `folder`/snakemake.out, and it ends with the block."""
    return _snakemake(folder, folder / "snakemake.out", arguments)


@contextmanager
def _snakemake(folder: Path, log: Path, arguments: tuple[str, ...]) -> Iterator[subprocess.Popen[str]]:
    # Neither process nor job stays behind, even if a test is interrupted in the block.
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            slurm_command(arguments),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()
            cancel(folder)


def slurm_command(arguments: tuple[str, ...]) -> list[str]:
    """Return the words of `snakemake --profile slurm ARGUMENTS`."""
    return [sys.executable, "-m", "snakemake", "--profile", "slurm", *OPTIONS, *arguments]
