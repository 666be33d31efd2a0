"""Whether the partitions and accounts that are asked for exist, and can hold every shape of job of the plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from hatchery.workflow import findings
from hatchery.workflow.external import Ask
from hatchery.workflow.findings import Finding
from hatchery.workflow.job_shapes import JobShape
from hatchery.workflow.slurm_text import Node, Partition, nodes, partitions, table

_CONFIG = "the `cluster` block of config/config.yaml"


def check_partitions(
    ask: Ask, shapes: Mapping[JobShape, Sequence[str]], cluster: Mapping[str, str], executor: Mapping[str, Any]
) -> list[Finding]:
    """Existence, state, limits, fitting nodes and preemption of every partition that jobs go to."""
    shown, listed = (
        ask(["scontrol", "show", "partition", "--oneliner"]),
        ask(["scontrol", "show", "node", "--oneliner"]),
    )
    if shown.problem or listed.problem:
        return [findings.error("partitions", shown.problem or listed.problem, "ask the administrators")]
    known, everywhere = partitions(shown.output), nodes(listed.output)
    found = []
    for name in dict.fromkeys(shape.partition for shape in shapes):
        asked = {shape: rules for shape, rules in shapes.items() if shape.partition == name}
        chosen = [partition for partition in known if (partition.default if name is None else partition.name == name)]
        if not chosen:
            found.append(_no_partition(name, known, sorted({rule for rules in asked.values() for rule in rules})))
            continue
        here = [node for node in everywhere if chosen[0].name in node.partitions]
        found += check_partition(chosen[0], here, asked)
        options = [option for shape in asked for option in shape.extra.split()]
        requeued = "--no-requeue" not in options and not executor.get("no_requeue")
        if cluster.get("JobRequeue") == "0":
            requeued = executor.get("requeue") or all("--requeue" in shape.extra.split() for shape in asked)
        found += check_preemption(chosen[0], cluster, bool(requeued))
    return found


def check_partition(
    partition: Partition, here: Sequence[Node], asked: Mapping[JobShape, Sequence[str]]
) -> list[Finding]:
    """Whether one partition, with the nodes in it, can hold the shapes of job that are sent to it."""
    check = f"partition {partition.name}"
    if partition.state != "UP":
        return [
            findings.error(check, f"its state is {partition.state}", "wait, or name another partition in the config")
        ]
    found = []
    for shape, rules in asked.items():
        whose = ", ".join(rules)
        if partition.max_minutes is not None and (shape.minutes or 0) > partition.max_minutes:
            found.append(
                findings.error(
                    check,
                    f"{whose}: asks for {shape.minutes} minutes, the partition allows {partition.max_minutes}",
                    f"lower the minutes in {_CONFIG} (pretraining goes on from its checkpoint in the next attempt)",
                )
            )
        if partition.max_nodes is not None and shape.nodes > partition.max_nodes:
            found.append(
                findings.error(
                    check,
                    f"{whose}: asks for {shape.nodes} nodes, the partition allows {partition.max_nodes}",
                    _lower("nodes"),
                )
            )
        found += _fitting_nodes(check, whose, shape, here)
    if not found:
        count = "1 shape" if len(asked) == 1 else f"{len(asked)} shapes"
        found.append(findings.ok(check, f"up, {len(here)} nodes, holds {count} of job"))
    return found


def _fitting_nodes(check: str, whose: str, shape: JobShape, here: Sequence[Node]) -> list[Finding]:
    fitting = [node for node in here if _holds(node, shape)]
    if len(fitting) < shape.nodes:
        largest = ", ".join(
            [
                f"{max((node.processors for node in here), default=0)} processors",
                f"{max((node.memory_mb for node in here), default=0):,} MB",
                f"{max((node.gpus for node in here), default=0)} GPUs",
            ]
        )
        return [
            findings.error(
                check,
                f"{whose}: asks for {shape}; {len(fitting)} of {len(here)} nodes are large enough (largest: {largest})",
                _lower("GPUs, threads or memory") + ", or name another partition",
            )
        ]
    usable = [node for node in fitting if node.usable]
    if len(usable) < shape.nodes:
        states = ", ".join(sorted({f"{node.name} is {node.state}" for node in fitting if not node.usable}))
        return [
            findings.warning(check, f"{whose}: nodes are out of service now: {states}", "jobs wait until they are back")
        ]
    return []


def _holds(node: Node, shape: JobShape) -> bool:
    model = not shape.gpu_model or not node.gpu_models or shape.gpu_model in node.gpu_models
    return (
        node.processors >= shape.processors_per_node
        and node.memory_mb >= shape.memory_mb
        and node.gpus >= shape.gpus_per_node
        and model
    )


def check_preemption(partition: Partition, cluster: Mapping[str, str], requeued: bool) -> list[Finding]:
    """What happens to a job that gives way to another one: requeued it goes on, cancelled Snakemake waits for ever."""
    if cluster.get("PreemptType", "preempt/none") in ("preempt/none", "(null)"):
        return []
    check = f"preemption {partition.name}"
    modes = {mode.strip().upper() for mode in partition.preempt_mode.split(",")}
    if "CANCEL" in modes:
        return [
            findings.warning(
                check,
                "preempted jobs are cancelled here (PreemptMode=CANCEL), and Snakemake waits for ever for them",
                "name a partition that requeues; else stop Snakemake by Ctrl-C when a job is PREEMPTED and start again",
            )
        ]
    if "REQUEUE" in modes and not requeued:
        return [
            findings.warning(
                check,
                "jobs ask not to be requeued, so preempted ones are lost and Snakemake waits for ever for them",
                f"set `requeue: true` in {_CONFIG}",
            )
        ]
    return [findings.ok(check, f"PreemptMode {partition.preempt_mode}")]


def check_accounts(ask: Ask, shapes: Mapping[JobShape, Sequence[str]], user: str) -> list[Finding]:
    """Whether the user may charge the accounts that are asked for."""
    wanted = sorted({shape.account for shape in shapes if shape.account})
    answer = ask(
        ["sacctmgr", "--noheader", "--parsable2", "show", "associations", f"user={user}", "format=account,partition"]
    )
    rows = [] if answer.problem else table(answer.output)
    known = sorted({row[0] for row in rows if row and row[0]})
    if answer.problem or not known:
        if not wanted:
            return [findings.ok("account", "none is asked for, and none is known of you")]
        why = answer.problem or f"Slurm lists no account of {user}"
        return [findings.warning("account", f"{', '.join(wanted)}: cannot be checked: {why}", "ask the administrators")]
    unknown = [name for name in wanted if name.lower() not in (account.lower() for account in known)]
    if unknown:
        return [
            findings.error(
                "account",
                f"{', '.join(unknown)}: not yours; yours are {', '.join(known)}",
                f"name one of them in {_CONFIG}",
            )
        ]
    if not wanted and len(known) > 1:
        return [
            findings.warning(
                "account",
                f"none is asked for; you have {', '.join(known)}, and Snakemake would take that of your latest job",
                f"name one of them in {_CONFIG}",
            )
        ]
    return [findings.ok("account", f"{', '.join(wanted) or 'the default'} (yours: {', '.join(known)})")]


def _no_partition(name: str | None, known: Sequence[Partition], rules: Sequence[str]) -> Finding:
    names = ", ".join(partition.name for partition in known) or "none"
    seen = f"partition {name!r} does not exist" if name else "no partition is asked for and the cluster has no default"
    return findings.error(
        "partitions", f"{', '.join(rules)}: {seen}; there are: {names}", f"name one of them in {_CONFIG}"
    )


def _lower(what: str) -> str:
    return f"ask for fewer {what} in {_CONFIG}"
