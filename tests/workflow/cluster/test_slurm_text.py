"""Slurm's texts are read as Slurm 22.05 printed them on a cluster of two nodes, and as the manual pages say."""

import pytest

from hatchery.workflow.slurm_text import Partition, configuration, gres_gpus, nodes, pairs, partitions, table

PARTITIONS = """\
PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=NONE \
DisableRootJobs=NO ExclusiveUser=NO GraceTime=10 Hidden=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO \
MaxCPUsPerNode=UNLIMITED Nodes=n[1-2] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO \
OverTimeLimit=NONE PreemptMode=REQUEUE State=UP TotalCPUs=128 TotalNodes=2 SelectTypeParameters=NONE JobDefaults=(null)
PartitionName=gpu AllowGroups=ALL AllowAccounts=lab,testers Default=NO MaxNodes=4 MaxTime=2-00:00:00 Nodes=g[1-8] \
PreemptMode=GANG,CANCEL State=DRAIN TotalCPUs=512 TotalNodes=8
"""

NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUEfctv=62 CPUTot=64 CPULoad=4.13 AvailableFeatures=(null) \
ActiveFeatures=(null) Gres=gpu:8 NodeAddr=127.0.0.1 NodeHostName=vm Version=22.05.8 OS=Linux 6.1.0 #1 SMP Debian 6.1 \
RealMemory=256000 AllocMem=0 FreeMem=5022 Sockets=64 Boards=1 State=IDLE ThreadsPerCore=1 Partitions=main,urgent \
BootTime=2026-11-21T09:34:01 CfgTRES=cpu=64,mem=250G,billing=64,gres/gpu=8 Reason=Not responding [root@2026]
NodeName=g1 CPUTot=128 Gres=gpu:a100:4(S:0-1),lustre:1 RealMemory=500000 State=DOWN* Partitions=gpu
"""


def test_partitions_are_read_with_their_limits() -> None:
    assert partitions(PARTITIONS) == [
        Partition("main", "UP", True, None, None, 2, "REQUEUE", ()),
        Partition("gpu", "DRAIN", False, 2880, 4, 8, "GANG,CANCEL", ("lab", "testers")),
    ]


def test_nodes_are_read_in_spite_of_values_with_spaces() -> None:
    first, second = nodes(NODES)
    assert (first.name, first.processors, first.memory_mb, first.gpus) == ("n1", 62, 256000, 8)
    assert first.partitions == ("main", "urgent")
    assert first.usable
    assert (second.processors, second.gpus, second.gpu_models) == (128, 4, ("a100",))
    assert not second.usable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu:8", [("", 8)]),
        ("gpu", [("", 1)]),
        ("gpu:a100:4(S:0-1),lustre:1", [("a100", 4)]),
        ("gpu:a100:2,gpu:v100:2", [("a100", 2), ("v100", 2)]),
        ("(null)", []),
        ("gpu:tesla_t4", [("tesla_t4", 1)]),
    ],
)
def test_gpus_are_counted_by_model(text: str, expected: list[tuple[str, int]]) -> None:
    assert gres_gpus(text) == expected


def test_the_configuration_is_read_by_name() -> None:
    text = "Configuration data as of 2026-11-21T15:11:24\nClusterName             = hatchery\nMinJobAge  = 300 sec\n"
    assert configuration(text) == {"ClusterName": "hatchery", "MinJobAge": "300 sec"}


def test_a_record_over_several_lines_is_one_record() -> None:
    text = "JobId=7 JobName=x\n   JobState=RUNNING Comment=rule_a\n\nJobId=8 JobName=y\n   JobState=PENDING\n"
    assert [record["JobState"] for record in pairs(text)] == ["RUNNING", "PENDING"]


def test_rows_of_a_table_keep_empty_fields() -> None:
    assert table("root|\ntesters|main\n\n") == [["root", ""], ["testers", "main"]]
