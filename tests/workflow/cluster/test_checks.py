"""Each check names what is wrong and what to do, from recorded answers of Slurm."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hatchery.workflow.check_controller import check_accounting, check_commands, check_controller, check_place
from hatchery.workflow.check_disk import SPARE_BYTES, check_disk, check_file_system, file_system
from hatchery.workflow.check_partitions import check_accounts, check_partitions
from hatchery.workflow.check_software import check_conda, check_software, made_environment
from hatchery.workflow.cost_estimate import RunCost
from hatchery.workflow.external import Answer
from hatchery.workflow.findings import Finding, Level, failed, findings_text
from hatchery.workflow.job_shapes import JobShape

PARTITIONS = (
    "PartitionName=main Default=YES MaxNodes=2 MaxTime=1-00:00:00 PreemptMode=CANCEL State=UP TotalNodes=2\n"
    "PartitionName=shut Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED PreemptMode=OFF State=DOWN TotalNodes=1\n"
)
NODES = (
    "NodeName=n1 CPUTot=16 Gres=gpu:a100:4 RealMemory=64000 State=IDLE Partitions=main\n"
    "NodeName=n2 CPUTot=16 Gres=gpu:a100:4 RealMemory=64000 State=DOWN* Partitions=main\n"
)


class Recorded:
    """Answers a command by the longest recorded beginning of it."""

    def __init__(self, **answers: str | Answer) -> None:
        self.answers = {"scontrol show partition": PARTITIONS, "scontrol show node": NODES}
        self.answers |= {name.replace("_", " "): answer for name, answer in answers.items()}  # type: ignore[misc]

    def __call__(self, command: Any) -> Answer:
        line = " ".join(command)
        start = max((start for start in self.answers if line.startswith(start)), key=len, default=None)
        answer: str | Answer = Answer("", f"{command[0]}: not recorded") if start is None else self.answers[start]
        return Answer(answer) if isinstance(answer, str) else answer


def shape(**changes: Any) -> JobShape:
    values = {"partition": None, "account": None, "nodes": 1, "tasks_per_node": 1, "processors_per_node": 2}
    values |= {"memory_mb": 8000, "gpus_per_node": 0, "gpu_model": "", "minutes": 60}
    return JobShape(**{**values, **changes})


def told(findings: list[Finding], level: Level) -> list[str]:
    return [finding.seen for finding in findings if finding.level is level]


def partition_findings(asked: JobShape, **cluster: str) -> list[Finding]:
    return check_partitions(Recorded(), {asked: ["pretrain"]}, cluster, {})


def test_a_job_that_fits_is_ok() -> None:
    found = partition_findings(shape(gpus_per_node=4, gpu_model="a100", processors_per_node=16))
    assert [finding.level for finding in found] == [Level.OK]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"partition": "nope"}, "partition 'nope' does not exist; there are: main, shut"),
        ({"partition": "shut"}, "its state is DOWN"),
        ({"minutes": 1441}, "asks for 1441 minutes, the partition allows 1440"),
        ({"nodes": 3}, "asks for 3 nodes, the partition allows 2"),
        ({"memory_mb": 64001}, "0 of 2 nodes are large enough (largest: 16 processors, 64,000 MB, 4 GPUs)"),
        ({"processors_per_node": 17}, "0 of 2 nodes are large enough"),
        ({"gpus_per_node": 8}, "1 x (2 processors, 8,000 MB, 8 GPUs)"),
        ({"gpus_per_node": 1, "gpu_model": "h100"}, "(h100)); 0 of 2 nodes"),
    ],
)
def test_what_a_partition_cannot_give_is_an_error(changes: dict[str, Any], words: str) -> None:
    found = partition_findings(shape(**changes))
    assert failed(found)
    assert any(words in seen for seen in told(found, Level.ERROR)), found
    assert all(finding.advice for finding in found if finding.level is Level.ERROR)


def test_a_node_out_of_service_is_a_warning_only_if_it_is_needed() -> None:
    assert told(partition_findings(shape(nodes=2)), Level.WARNING) == [
        "pretrain: nodes are out of service now: n2 is DOWN*"
    ]
    assert not told(partition_findings(shape(nodes=1)), Level.WARNING)


def test_preemption_that_cancels_is_a_warning() -> None:
    found = partition_findings(shape(), PreemptType="preempt/partition_prio")
    assert "PreemptMode=CANCEL" in told(found, Level.WARNING)[0]
    assert not told(partition_findings(shape(), PreemptType="preempt/none"), Level.WARNING)


def test_jobs_that_refuse_to_be_requeued_are_a_warning() -> None:
    requeuing = PARTITIONS.replace("PreemptMode=CANCEL", "PreemptMode=REQUEUE")
    cluster = {"PreemptType": "preempt/qos", "JobRequeue": "1"}
    for extra, warned in (("--requeue", False), ("", False), ("--no-requeue", True)):
        asked = {shape(extra=extra): ["pretrain"]}
        found = check_partitions(Recorded(scontrol_show_partition=requeuing), asked, cluster, {})
        assert bool(told(found, Level.WARNING)) is warned, extra


def test_an_account_that_is_not_the_users_is_an_error() -> None:
    ask = Recorded(sacctmgr="lab|\ntesters|\n")
    assert not failed(check_accounts(ask, {shape(account="Lab"): ["a"]}, "me"))
    found = check_accounts(ask, {shape(account="others"): ["a"]}, "me")
    assert told(found, Level.ERROR) == ["others: not yours; yours are lab, testers"]
    assert told(check_accounts(ask, {shape(): ["a"]}, "me"), Level.WARNING)


def test_sacct_without_storage_is_an_error_because_runs_would_hang() -> None:
    none = {"AccountingStorageType": "accounting_storage/none", "MinJobAge": "300 sec"}
    stored = {"AccountingStorageType": "accounting_storage/slurmdbd"}
    found = check_accounting(Recorded(sacct=""), none, {"status_command": "sacct"})
    assert failed(found)
    assert "slurm-status-command: squeue" in found[0].advice
    broken = Recorded(sacct=Answer("", "sacct ended with status 1"))
    assert failed(check_accounting(broken, stored, {"status_command": "sacct"}))
    assert not failed(check_accounting(Recorded(sacct=""), stored, {"status_command": "sacct"}))
    assert not failed(check_accounting(broken, none, {"status_command": "squeue"}))


def test_squeue_forgets_jobs_before_they_are_asked_for() -> None:
    cluster = {"AccountingStorageType": "accounting_storage/none", "MinJobAge": "30 sec"}
    settings = {"status_command": "squeue", "init_seconds_before_status_checks": 20}
    found = check_accounting(Recorded(sacct=""), cluster, settings)
    assert failed(found)
    assert "to 10 or less" in found[0].advice


def test_a_controller_that_does_not_answer_is_an_error() -> None:
    found, settings = check_controller(Recorded(scontrol_show_config=Answer("", "scontrol gave no answer within 30 s")))
    assert told(found, Level.ERROR) == ["scontrol gave no answer within 30 s"]
    assert settings == {}


def test_missing_commands_are_named() -> None:
    assert told(check_commands(lambda name: None if name in ("sbatch", "srun") else name), Level.ERROR) == [
        "not on PATH: sbatch, srun"
    ]
    assert told(check_commands(lambda name: None if name == "sacct" else name), Level.WARNING)


def test_a_shell_inside_a_job_is_warned() -> None:
    assert told(check_place({"SLURM_JOB_ID": "7"}), Level.WARNING)
    assert not told(check_place({}), Level.WARNING)


def test_free_disk_is_compared_with_the_estimate(tmp_path: Path) -> None:
    cost = cast(RunCost, SimpleNamespace(run_folder_bytes=30, model_bytes=2, export_bytes=1))
    need_at_once, need_in_turn = 2 * 33 + SPARE_BYTES, 30 + 2 * 3
    for free, level in (
        (need_at_once, Level.OK),
        (need_at_once - 1, Level.WARNING),
        (need_in_turn, Level.WARNING),
        (need_in_turn - 1, Level.ERROR),
    ):
        found = check_disk([cost, cost], tmp_path / "results" / "later", lambda _, free=free: free)
        assert [finding.level for finding in found] == [level], free


def test_a_local_file_system_is_a_warning(tmp_path: Path) -> None:
    mounts = f"/dev/sda1 / ext4 rw 0 0\nserver:/home {tmp_path.parent} nfs4 rw 0 0\n"
    assert file_system(tmp_path, mounts) == ("nfs4", str(tmp_path.parent))
    assert told(check_file_system(tmp_path, mounts), Level.OK)
    assert told(check_file_system(tmp_path, "/dev/sda1 / ext4 rw 0 0\n"), Level.WARNING)


def test_a_conda_environment_counts_when_it_is_complete_and_of_this_definition(tmp_path: Path) -> None:
    definition, prefix = tmp_path / "pretraining.yaml", tmp_path / "conda"
    definition.write_text("dependencies: [python=3.11]\n")
    prefix.mkdir()
    (prefix / "0123_.yaml").write_text("dependencies: [python=3.11]\n")
    assert made_environment(definition, prefix) is None
    found = check_conda([definition], prefix, "results/x", lambda name: name)
    assert "--conda-create-envs-only results/x" in found[0].advice
    (prefix / "0123_.env_setup_done").touch()
    assert made_environment(definition, prefix) == prefix / "0123_"
    definition.write_text("dependencies: [python=3.12]\n")
    assert made_environment(definition, prefix) is None
    assert failed(check_conda([definition], prefix, "results/x", lambda name: None))


def test_without_conda_the_software_of_this_shell_is_looked_at(tmp_path: Path) -> None:
    plan: Any = SimpleNamespace(deployment=frozenset({"conda"}), conda_prefix=tmp_path, environments=frozenset())
    without = check_software(plan, "results/x", lambda name: "/env/bin/python" if name == "python" else None)
    assert told(without, Level.OK) == ["jobs run in the environment of this shell (/env/bin/python)"]
    assert told(check_software(plan, "results/x", lambda name: name), Level.OK)[0].startswith("all environments")
    plan.deployment = frozenset({"conda", "apptainer"})
    assert failed(check_software(plan, "results/x", lambda name: "/bin/it" if name == "apptainer" else None))


def test_the_text_shows_level_advice_and_counts() -> None:
    text = findings_text([Finding(Level.OK, "disk", "room"), Finding(Level.ERROR, "account", "none", "name one")])
    assert text.splitlines() == [
        "ok       disk     room",
        "error    account  none",
        "                  -> name one",
        "",
        "1 ok, 0 skipped, 0 warning, 1 error",
    ]
