"""One-minute jobs that find out on the nodes themselves whether the workflow's jobs could work there.

One probe for each place (partition, account, ...) that jobs are sent to, with as little memory as a probe
needs. Probes still waiting when the patience is over are cancelled, and so are all when interrupted.
"""

import secrets
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hatchery.workflow import findings
from hatchery.workflow.external import Ask
from hatchery.workflow.findings import Finding
from hatchery.workflow.job_shapes import JobShape
from hatchery.workflow.node_report import NodeReport, read_report

PROBE_MINUTES = 3
PROBE_MEMORY_MB, GPU_PROBE_MEMORY_MB = 2000, 8000
"""Room for one process that imports torch; on a GPU its libraries and NCCL need what an evaluation asks for, too."""

_CONFIG = "the `cluster` block of config/config.yaml"
FOLDER = Path("results/.cluster_check")


@dataclass(frozen=True)
class Probe:
    """A probe: where it goes, what it asks for, and whose jobs it stands for."""

    name: str
    shape: JobShape
    rules: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its nodes report."""
        return FOLDER / self.name


def probes(shapes: Mapping[JobShape, Sequence[str]]) -> list[Probe]:
    """One probe for each place that jobs are sent to, with the largest number of nodes and GPUs asked for there."""
    places: dict[tuple[str | None, ...], tuple[JobShape, set[str]]] = {}
    for shape, rules in shapes.items():
        place = (shape.partition, shape.account, shape.qos, shape.constraint, shape.extra)
        largest, whose = places.get(place, (shape, set()))
        if (shape.nodes, shape.gpus_per_node) > (largest.nodes, largest.gpus_per_node):
            largest = shape
        places[place] = (largest, whose | set(rules))
    return [
        Probe(f"probe_{number}", shape, tuple(sorted(rules)))
        for number, (shape, rules) in enumerate(places.values(), start=1)
    ]


def sbatch_command(probe: Probe, python: str, token: str) -> list[str]:
    """The command that submits a probe: at most two nodes with one GPU each, which a busy cluster still has."""
    shape, nodes = probe.shape, min(2, probe.shape.nodes)
    run = [python, "scripts/report_node.py", "--folder", str(probe.folder), "--token", token]
    step = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--kill-on-bad-exit=1", *run]
    command = ["sbatch", "--parsable", "--job-name=hatchery_check", f"--output={probe.folder / 'job.log'}"]
    memory = GPU_PROBE_MEMORY_MB if shape.gpus_per_node else PROBE_MEMORY_MB
    command += ["--export=ALL", f"--time={PROBE_MINUTES}", f"--mem={memory}", f"--nodes={nodes}"]
    command += ["--ntasks-per-node=1", "--cpus-per-task=1"]
    for option, value in (
        ("partition", shape.partition),
        ("account", shape.account),
        ("qos", shape.qos),
        ("constraint", shape.constraint),
        ("gres", ":".join(filter(None, ["gpu", shape.gpu_model, "1"])) if shape.gpus_per_node else None),
    ):
        if value:
            command.append(f"--{option}={value}")
    return [*command, *shlex.split(shape.extra), f"--wrap={shlex.join(step)}"]


def run_probes(
    asked: Sequence[Probe], ask: Ask, patience_seconds: float, python: str, poll_seconds: float = 3.0
) -> list[Finding]:
    """Submit all probes, wait for them together, and judge what they report. Leaves no job and no file behind."""
    token = secrets.token_hex(8)
    found: list[Finding] = []
    waiting: dict[str, Probe] = {}
    try:
        for probe in asked:
            shutil.rmtree(probe.folder, ignore_errors=True)
            probe.folder.mkdir(parents=True)
            (probe.folder / "token").write_text(token, encoding="utf-8")
            answer = ask(sbatch_command(probe, python, token))
            if answer.problem:
                found.append(_refused(probe, answer.problem))
            else:
                waiting[answer.output.strip().split(";")[0]] = probe
        deadline = time.monotonic() + patience_seconds
        while waiting and time.monotonic() < deadline:
            time.sleep(poll_seconds)
            for job in [job for job in waiting if _ended(job, ask)]:
                found += judge(waiting.pop(job), job)
        for job, probe in waiting.items():
            state = ask(["squeue", "--noheader", f"--jobs={job}", "--format=%T %r"]).output.strip() or "unknown"
            found.append(
                findings.warning(
                    f"nodes of {where(probe)}",
                    f"the probe (job {job}) was not done after {patience_seconds:.0f} s: {state}",
                    "run the check again with a longer --wait when the cluster is less busy",
                )
            )
    finally:
        if waiting:
            ask(["scancel", *waiting])
        shutil.rmtree(FOLDER, ignore_errors=True)
    return found


def judge(probe: Probe, job: str, see_seconds: float = 20.0) -> list[Finding]:
    """Findings from the reports of an ended probe; waits a little for files to become visible."""
    expected = min(2, probe.shape.nodes)
    deadline = time.monotonic() + see_seconds
    while len(paths := sorted(probe.folder.glob("node-*.json"))) < expected and time.monotonic() < deadline:
        time.sleep(1.0)
    check = f"nodes of {where(probe)}"
    if len(paths) < expected:
        log = probe.folder / "job.log"
        said = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
        words = next((line.strip() for line in reversed(said) if line.strip()), "")
        return [
            findings.error(
                check,
                f"{len(paths)} of {expected} nodes reported here (job {job}): {words or 'no log came here either'}",
                "the checkout and results/ must lie on a file system that all nodes mount, and the environment too",
            )
        ]
    reports = [read_report(path) for path in paths]
    return [*_files(check, reports), *_programs(check, reports), *_gpus(probe, reports), *_network(probe, reports)]


def where(probe: Probe) -> str:
    """The partition in words."""
    parts = [f"partition {probe.shape.partition}" if probe.shape.partition else "the default partition"]
    if probe.shape.nodes > 1:
        parts.append("2 nodes")
    return ", ".join(parts)


def _files(check: str, reports: Sequence[NodeReport]) -> list[Finding]:
    blind = [report.host for report in reports if not report.sees_file]
    if blind:
        return [
            findings.error(
                check,
                f"{', '.join(blind)}: does not see what is written here",
                "put checkout and storage_root on shared storage",
            )
        ]
    hosts = ", ".join(report.host for report in reports)
    return [findings.ok(check, f"{hosts}: files are seen both ways")]


def _programs(check: str, reports: Sequence[NodeReport]) -> list[Finding]:
    broken = [report for report in reports if report.torch.startswith("failed")]
    if broken:
        return [
            findings.error(
                check,
                f"{broken[0].host}: {broken[0].python} cannot import torch: {broken[0].torch.removeprefix('failed: ')}",
                "start the check from the environment that the jobs will have (make cluster-check does)",
            )
        ]
    return [findings.ok(check, f"{reports[0].python} with torch {reports[0].torch}")]


def _gpus(probe: Probe, reports: Sequence[NodeReport]) -> list[Finding]:
    if not probe.shape.gpus_per_node:
        return []
    check = f"GPUs of {where(probe)}"
    for report in reports:
        failures = [line for line in report.gpus if line.startswith("failed")]
        if failures or not report.gpus:
            seen = (
                f"{report.host}: a job with one GPU sees none by nvidia-smi: {''.join(failures) or 'no such command'}"
            )
            return [findings.error(check, seen, f"check gpu_type in {_CONFIG}, or tell the administrators")]
        if not report.torch_gpus:
            seen = f"{report.host}: {report.gpus[0].split(' (UUID')[0]} is there, but torch {report.torch} finds no GPU"
            return [
                findings.error(check, seen, "torch and driver do not fit: install the environment for GPUs (README)")
            ]
    return [findings.ok(check, f"{reports[0].gpus[0].split(' (UUID')[0]}, seen by torch")]


def _network(probe: Probe, reports: Sequence[NodeReport]) -> list[Finding]:
    if probe.shape.nodes < 2:
        return []
    check = f"network of {where(probe)}"
    place = "(docs/cluster.md, Several GPUs and nodes)"
    # All connections first: without them no sum can succeed.
    for part, advice in (
        ("connection", f"nodes must reach each other on TCP ports 20000-29999 {place}"),
        ("collective", f"set NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME {place}"),
    ):
        for report in reports:
            said = getattr(report, part)
            if said.startswith("failed"):
                return [findings.error(check, f"{report.host}: {said.removeprefix('failed: ')}", advice)]
    return [findings.ok(check, f"{reports[-1].connection}; {reports[0].collective}")]


def _ended(job: str, ask: Ask) -> bool:
    answer = ask(["squeue", "--noheader", f"--jobs={job}", "--states=all", "--format=%T"])
    state = answer.output.strip().split("\n")[0].strip()
    if answer.problem:
        # A job that has left the queue is an invalid id for squeue; a controller that is busy says something else.
        return "invalid job id" in answer.problem.lower()
    return state not in (
        "PENDING",
        "RUNNING",
        "CONFIGURING",
        "COMPLETING",
        "SUSPENDED",
        "REQUEUED",
    )


def _refused(probe: Probe, problem: str) -> Finding:
    return findings.error(
        f"nodes of {where(probe)}",
        f"sbatch refuses a one-minute job: {problem}",
        f"check partition, account, qos and gpu_type in {_CONFIG}",
    )
