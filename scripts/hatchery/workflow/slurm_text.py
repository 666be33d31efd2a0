"""The texts that Slurm's commands print, read into values. Running them is not done here.

Source: the manual pages of scontrol, sacct and sacctmgr; units are Slurm's own (minutes of time, megabytes of memory).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hatchery.slurm_time import seconds_of

_PAIR = re.compile(r"(\S+?)=(.*?)(?=\s+\S+?=|\s*$)")


@dataclass(frozen=True)
class Partition:
    """A partition with the limits that a job has to fit; None means unlimited or unknown."""

    name: str
    state: str
    default: bool
    max_minutes: int | None
    max_nodes: int | None
    nodes: int
    preempt_mode: str
    accounts: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A node with what it has."""

    name: str
    partitions: tuple[str, ...]
    state: str
    processors: int
    memory_mb: int
    gpus: int
    gpu_models: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether it takes jobs, now or when it is free."""
        return not re.search(r"DOWN|DRAIN|FAIL|NOT_RESPONDING|FUTURE|POWERED_DOWN_FOREVER|\*", self.state)


def pairs(text: str) -> Iterator[dict[str, str]]:
    """`Key=value` records, separated by empty lines or, with `--oneliner`, one on a line."""
    for record in re.split(r"\n\s*\n|\n(?=\S)", text.strip()):
        found = dict(_PAIR.findall(" ".join(record.split())))
        if found:
            yield found


def partitions(text: str) -> list[Partition]:
    """The answer of `scontrol show partition --oneliner`."""
    return [
        Partition(
            name=record["PartitionName"],
            state=record.get("State", "UP"),
            default=record.get("Default") == "YES",
            max_minutes=_minutes(record.get("MaxTime", "")),
            max_nodes=_number(record.get("MaxNodes", "")),
            nodes=_number(record.get("TotalNodes", "")) or 0,
            preempt_mode=record.get("PreemptMode", "OFF"),
            accounts=_names(record.get("AllowAccounts", "ALL")),
        )
        for record in pairs(text)
        if "PartitionName" in record
    ]


def nodes(text: str) -> list[Node]:
    """The answer of `scontrol show node --oneliner`."""
    return [
        Node(
            name=record["NodeName"],
            partitions=_names(record.get("Partitions", "")),
            state=record.get("State", ""),
            processors=_number(record.get("CPUEfctv", "")) or _number(record.get("CPUTot", "")) or 0,
            memory_mb=_number(record.get("RealMemory", "")) or 0,
            gpus=sum(count for _, count in gres_gpus(record.get("Gres", ""))),
            gpu_models=tuple(model for model, _ in gres_gpus(record.get("Gres", "")) if model),
        )
        for record in pairs(text)
        if "NodeName" in record
    ]


def gres_gpus(text: str) -> list[tuple[str, int]]:
    """Model (may be empty) and number of each kind of GPU in a `gres` text such as `gpu:a100:4(S:0-1),lustre:1`."""
    kinds = []
    for part in re.sub(r"\([^)]*\)", "", text).split(","):
        fields = part.strip().split(":")
        if fields[0] != "gpu":
            continue
        count = fields[-1] if len(fields) > 1 and fields[-1].isdigit() else "1"
        model = fields[1] if len(fields) > 1 and not fields[1].isdigit() else ""
        kinds.append((model, int(count)))
    return kinds


def configuration(text: str) -> dict[str, str]:
    """The answer of `scontrol show config`: `Name = value` lines."""
    found = (re.match(r"(\w+)\s*=\s*(.*?)\s*$", line) for line in text.splitlines())
    return {match.group(1): match.group(2) for match in found if match}


def table(text: str) -> list[list[str]]:
    """Rows of `--parsable2 --noheader` output."""
    return [line.split("|") for line in text.splitlines() if line.strip()]


def _minutes(text: str) -> int | None:
    seconds = seconds_of(text)
    return None if seconds is None else seconds // 60


def _number(text: str) -> int | None:
    match = re.match(r"\d+", text)
    return int(match.group()) if match else None


def _names(text: str) -> tuple[str, ...]:
    return () if text in ("", "ALL", "(null)") else tuple(text.split(","))
