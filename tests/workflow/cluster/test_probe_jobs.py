"""Probes ask for little, leave nothing behind, and tell what nodes cannot do; the exchange really runs."""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hatchery.artifacts.atomic import write_text
from hatchery.training.topology import FIRST_PORT, PORTS, Topology
from hatchery.workflow import node_report
from hatchery.workflow.external import Answer, ask
from hatchery.workflow.findings import Level
from hatchery.workflow.job_shapes import JobShape
from hatchery.workflow.node_report import exchange, read_report, report_node
from hatchery.workflow.probe_jobs import FOLDER, Probe, probes, run_probes, sbatch_command

GPU_JOB = JobShape("gpu", "lab", 4, 8, 64, 512_000, 8, "a100", 2880, extra="--requeue --reservation=r1")
SMALL_JOB = JobShape(None, None, 1, 1, 2, 4000, 0, "", 60)
REPORT = {"host": "n1", "rank": 0, "sees_file": True, "python": "python", "torch": "2.13", "torch_gpus": 0}


class Cluster:
    """Runs what a probe would run on its nodes by writing their reports at submission."""

    def __init__(self, reports: Sequence[dict[str, Any]], state: str = "") -> None:
        self.reports, self.state, self.cancelled = reports, state, []  # type: ignore[var-annotated]

    def __call__(self, command: Sequence[str]) -> Answer:
        import json

        if command[0] == "sbatch":
            for report in self.reports:
                write_text(FOLDER / "probe_1" / f"node-{report['rank']}.json", json.dumps(report))
            return Answer("77;cluster\n")
        if command[0] == "scancel":
            self.cancelled = list(command[1:])
            return Answer("")
        return Answer(self.state + "\n") if self.state else Answer("", "squeue: Invalid job id specified")


def run(cluster: Cluster, shape: JobShape, patience: float = 5.0) -> list[tuple[Level, str]]:
    found = run_probes(probes({shape: ["pretrain"]}), cluster, patience, "python", poll_seconds=0.01)
    assert not FOLDER.exists()
    return [(finding.level, finding.seen) for finding in found]


def test_a_probe_asks_for_two_nodes_and_one_gpu_at_most() -> None:
    line = " ".join(sbatch_command(Probe("probe_1", GPU_JOB, ("pretrain",)), "/env/bin/python", "token"))
    for option in ("--nodes=2 ", "--gres=gpu:a100:1", "--partition=gpu", "--account=lab", "--time=3 ", "--mem=8000 "):
        assert option in line
    assert "--requeue --reservation=r1 --wrap=srun --nodes=2 --ntasks=2" in line
    small = sbatch_command(Probe("probe_2", SMALL_JOB, ("encode",)), "python", "token")
    assert "--mem=2000" in small and not any("gres" in word for word in small)


def test_jobs_for_one_place_share_a_probe_with_the_largest_shape() -> None:
    one = JobShape("gpu", "lab", 1, 1, 2, 4000, 1, "a100", 60, extra="--requeue --reservation=r1")
    assert probes({one: ["finetune"], GPU_JOB: ["pretrain"], SMALL_JOB: ["encode"]}) == [
        Probe("probe_1", GPU_JOB, ("finetune", "pretrain")),
        Probe("probe_2", SMALL_JOB, ("encode",)),
    ]


def test_what_nodes_report_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [level for level, _ in run(Cluster([REPORT]), SMALL_JOB)] == [Level.OK, Level.OK]
    blind = run(Cluster([{**REPORT, "sees_file": False}]), SMALL_JOB)
    assert (Level.ERROR, "n1: does not see what is written here") in blind
    broken = run(Cluster([{**REPORT, "torch": "failed: No module named 'torch'"}]), SMALL_JOB)
    assert any(level is Level.ERROR and "cannot import torch" in seen for level, seen in broken)


def test_gpus_and_network_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gpus = {"gpus": ["GPU 0: NVIDIA A100 (UUID: GPU-1)"], "torch_gpus": 1}
    good = [{**REPORT, **gpus, "rank": rank, "connection": "sent", "collective": "nccl, 2"} for rank in (0, 1)]
    assert {level for level, _ in run(Cluster(good), GPU_JOB)} == {Level.OK}
    for change, words in (
        ({"gpus": []}, "sees none by nvidia-smi"),
        ({"torch_gpus": 0}, "torch 2.13 finds no GPU"),
        ({"connection": "failed: n1:20001: timed out"}, "n1:20001: timed out"),
        ({"collective": "failed: nccl: unhandled system error"}, "nccl: unhandled system error"),
    ):
        found = run(Cluster([good[0], {**good[1], **change}]), GPU_JOB)
        assert any(level is Level.ERROR and words in seen for level, seen in found), words


def test_a_probe_that_waits_is_cancelled_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cluster = Cluster([], state="PENDING")
    (level, seen), *others = run(cluster, SMALL_JOB, patience=0.05)
    assert not others
    assert level is Level.WARNING
    assert "job 77" in seen
    assert cluster.cancelled == ["77"]


def test_a_controller_that_is_busy_for_a_while_ends_no_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    busy = [Answer("", "squeue: Unable to contact slurm controller (connect failure)")] * 3
    cluster = Cluster([REPORT])

    def answers(command: Sequence[str]) -> Answer:
        return busy.pop() if command[0] == "squeue" and busy else cluster(command)

    found = run_probes(probes({SMALL_JOB: ["encode"]}), answers, 5.0, "python", poll_seconds=0.01)
    assert (busy, cluster.cancelled) == ([], [])
    assert {finding.level for finding in found} == {Level.OK}


def test_a_refused_probe_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stub = tmp_path / "bin" / "sbatch"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}{os.pathsep}{os.environ['PATH']}")
    found = run_probes(probes({GPU_JOB: ["pretrain"]}), ask, 1.0, "python")
    assert "invalid partition specified: gpu" in found[0].seen
    assert found[0].level is Level.ERROR


def test_nodes_exchange_megabytes_and_a_closed_port_is_told() -> None:
    port = FIRST_PORT + os.getpid() % PORTS
    topologies = [Topology(rank, 2, 0, "127.0.0.1", port) for rank in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda topology: exchange(topology, 20.0), topologies)
    assert first == f"received 16 MiB at 127.0.0.1:{port}"
    assert second.startswith("sent 16 MiB")
    assert exchange(topologies[1], 0.3).startswith(f"failed: 127.0.0.1:{port}: ")


def test_a_report_tells_whether_the_file_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    (tmp_path / "token").write_text("abc")
    report_node(tmp_path, "abc")
    report = read_report(tmp_path / "node-0.json")
    assert (report.sees_file, report.python, report.connection) == (True, sys.executable, "")
    report_node(tmp_path, "other")
    assert not read_report(tmp_path / "node-0.json").sees_file


def test_a_task_that_dies_while_it_adds_up_has_told_the_rest_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> str:
        raise SystemExit("NCCL ends the process")

    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setattr(node_report, "exchange", lambda topology: "sent")
    monkeypatch.setattr(node_report, "_sum_over_processes", die)
    with pytest.raises(SystemExit):
        report_node(tmp_path, "abc")
    report = read_report(tmp_path / "node-1.json")
    assert report.connection == "sent"
    assert report.collective == "failed: ended while the processes added up a number"


def test_a_command_that_does_not_answer_is_given_up() -> None:
    assert ask(["sleep", "30"], timeout=0.2) == Answer("", "sleep gave no answer within 0.2 s")
    assert ask(["no-such-command-here"]).problem.endswith("there is no such command on PATH")
    assert ask(["sh", "-c", "echo why >&2; exit 3"]).problem == "sh ended with status 3: why"
