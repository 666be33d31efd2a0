"""The logs of a job: the rule's own, and Slurm's, found from a result, from a Slurm job id, or from the job's name.

Which rule makes a file, and where it logs, are the patterns of the workflow itself, matched by Snakemake; no job is
planned for that. Where the Slurm plugin keeps logs and what it tells of a job are the plugin's layout:
`.snakemake/slurm_logs/rule_<rule>/<wildcards>/<job>.log`, the comment `rule_<rule>_wildcards_<wildcards>`, and a line
in the log of the run, `.snakemake/log/*.snakemake.log`.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.io import glob_wildcards

from hatchery.artifacts.links import links_to
from hatchery.errors import HatcheryError
from hatchery.experiment.project import Project
from hatchery.stages.registry import KEPT
from hatchery.workflow.external import Ask
from hatchery.workflow.planned_jobs import opened
from hatchery.workflow.result_store import KeptResults
from hatchery.workflow.slurm_text import pairs, table

SLURM_LOGS = Path(".snakemake/slurm_logs")
RUN_LOGS = Path(".snakemake/log")
_SUBMITTED = re.compile(r"submitted with SLURM jobid (\d+) \(log: (\S+)\)")


class LogError(HatcheryError):
    """No rule makes the file, or no job of that name or number is known."""


@dataclass(frozen=True)
class RuleLogs:
    """A rule and the wildcards of one of its jobs, with the logs that the rule declares."""

    rule: str
    # In the order of the Slurm plugin, which joins their values.
    wildcards: dict[str, str]
    logs: tuple[Path, ...]

    @property
    def joined(self) -> str:
        """The wildcards as the Slurm plugin writes them."""
        return "_".join(self.wildcards.values()).replace("/", "_")

    @property
    def slurm_folder(self) -> Path:
        """Where the Slurm plugin keeps the logs of all attempts."""
        return SLURM_LOGS / f"rule_{self.rule}" / self.joined


@dataclass(frozen=True)
class SlurmJob:
    """What is known of a job of Slurm."""

    number: str
    log: Path | None
    # `COMPLETED`, `FAILED`, `RUNNING`, ...; empty where Slurm does not answer.
    state: str = ""
    detail: str = ""


def workflow_rules() -> list[Any]:
    """The rules of the workflow in the current folder, as Snakemake reads them. Raises PlanError."""
    with opened(["--dry-run", "--workflow-profile", "none"]) as (_, api):
        return list(api._workflow.rules)


def kept_place(target: str) -> str:
    """Where a result, or what a job `<rule>/<experiment>/<model>/...` makes, is kept that experiments share.

    A link of an experiment says what it last was, the present configuration what it would be; else `target` itself.
    """
    rule, _, names = target.partition("/")
    kind = next((kind for kind, (maker, _) in KEPT.items() if maker.name == rule), None)
    experiment, _, rest = names.partition("/")
    readable = f"results/{experiment}/{kind}/{rest}" if kind and rest else target
    path = Path(readable)
    for folder in (path, *path.parents):
        if folder.is_symlink() and not (link := folder.readlink()).is_absolute():
            return os.path.normpath(folder.parent / link / path.relative_to(folder))
    try:
        kept = KeptResults(Project("config")).kept(os.path.normpath(readable))
    except HatcheryError:
        return target
    return target if kept == os.path.normpath(readable) else kept


def readable_places(job: "RuleLogs") -> list[str]:
    """The experiments' names of a result that is kept under an address, as their links tell."""
    kind = next((kind for kind, (maker, _) in KEPT.items() if maker.name == job.rule), None)
    if kind is None or not job.wildcards:
        return []
    folder = "models" if kind == "pretraining" else kind
    depth = "/*" * (1 + len(KEPT[kind][1].names))
    places = links_to("/".join(["results", folder, *job.wildcards.values()]), Path("results").glob(f"*/{kind}{depth}"))
    return [place.relative_to("results").as_posix() for place in places]


def of_file(path: str, rules: Iterable[Any]) -> RuleLogs:
    """The job that makes a file; a file beside a declared output, such as weights beside a manifest, is its job's.

    Raises LogError when no rule makes it.
    """
    wanted, rules = Path(path), list(rules)
    candidates = [wanted, *(folder / "manifest.json" for folder in (wanted, *wanted.parents))]
    for candidate in candidates:
        for rule in rules:
            if rule.is_producer(str(candidate)):
                return _logs(rule, dict(rule.get_wildcards(str(candidate))))
    raise LogError(f"{path}: no rule makes it; give a file below results/, a Slurm job id, or <rule>/<wildcard>/...")


def of_name(name: str, rules: Iterable[Any]) -> list[RuleLogs]:
    """The jobs called `<rule>` or `<rule>/<wildcard>/...` whose logs are there, or whose log that would be.

    Raises LogError for an unknown rule and for one without such logs.
    """
    rule = next((rule for rule in rules if rule.name == name.split("/")[0]), None)
    if rule is None:
        raise LogError(
            f"{name}: there is no rule {name.split('/')[0]!r}; there are: {', '.join(r.name for r in rules)}"
        )
    if "/" in name and rule.is_producer(f"logs/{name}.log"):
        return [_logs(rule, dict(rule.get_wildcards(f"logs/{name}.log")))]
    found = _written(rule)
    if not found:
        raise LogError(f"{name}: no job of this rule has written a log yet")
    return found


def of_comment(comment: str, rules: Iterable[Any]) -> list[RuleLogs]:
    """The jobs that the comment of a Slurm job may name: joined wildcards are told apart by the logs that are there."""
    rule_name, _, joined = comment.removeprefix("rule_").partition("_wildcards_")
    rule = next((rule for rule in rules if rule.name == rule_name), None)
    if rule is None:
        return []
    return [job for job in _written(rule) if job.joined == joined]


def _logs(rule: Any, wildcards: dict[str, str]) -> RuleLogs:
    # The plugin joins wildcards in the order in which the first output names them.
    order = list(dict.fromkeys(re.findall(r"\{(\w+)", str(next(iter(rule.output), "")))))
    ordered = {name: wildcards[name] for name in order if name in wildcards}
    logs = tuple(Path(str(log.apply_wildcards(wildcards))) for log in rule.log)
    return RuleLogs(rule.name, {**ordered, **wildcards}, logs)


def _written(rule: Any) -> list[RuleLogs]:
    """Jobs of a rule whose first log is there, the latest first."""
    if not rule.log:
        return []
    pattern = str(next(iter(rule.log)))
    values = glob_wildcards(pattern)
    jobs = [_logs(rule, dict(zip(values._fields, row, strict=True))) for row in zip(*values, strict=True)]
    if not values._fields and Path(pattern).exists():
        jobs = [_logs(rule, {})]
    return sorted(jobs, key=lambda job: -job.logs[0].stat().st_mtime)


def submissions(run_logs: Path = RUN_LOGS) -> dict[str, Path]:
    """Slurm job id -> path of its log, as the runs of Snakemake in this folder have told; the log may be gone."""
    found: dict[str, Path] = {}
    for path in sorted(run_logs.glob("*.snakemake.log")):
        for number, log in _SUBMITTED.findall(path.read_text(encoding="utf-8", errors="replace")):
            found[number] = Path(log.removesuffix(")."))
    return found


def attempts(job: RuleLogs, told: dict[str, Path]) -> list[str]:
    """Slurm job ids of all known attempts of a job, the latest last."""
    tail = job.slurm_folder.parts[-2:] if job.joined else job.slurm_folder.parts[-1:]
    from_runs = {number for number, log in told.items() if log.parts[:-1][-len(tail) :] == tail}
    from_files = {path.stem for path in job.slurm_folder.glob("*.log")} if job.slurm_folder.is_dir() else set()
    return sorted((number for number in from_runs | from_files if number.isdigit()), key=int)


def slurm_job(number: str, ask: Ask, told: dict[str, Path]) -> tuple[SlurmJob, str]:
    """What Slurm says of a job, and its comment (empty where unknown).

    Raises LogError when neither Slurm nor a run of Snakemake in this folder knows the number.
    """
    log = told.get(number) or next(iter(sorted(SLURM_LOGS.glob(f"**/{number}.log"))), None)
    comment = _comment_of(log) if log is not None else ""
    state = detail = ""
    answer = ask(
        [
            *("sacct", "--allocations", "--noheader", "--parsable2", f"--jobs={number}"),
            "--format=State,ExitCode,Elapsed,NodeList,Comment",
        ]
    )
    rows = [] if answer.problem else table(answer.output)
    if rows:
        # A requeued job has one row; duplicates are asked for by an option that is not given.
        state, code, elapsed, nodes, told_comment = (rows[-1] + [""] * 5)[:5]
        detail = f"exit code {code}, {elapsed}, on {nodes or 'no node yet'}"
        comment = comment or told_comment
    else:
        shown = ask(["scontrol", "show", "job", number, "--oneliner"])
        record = next(iter(pairs(shown.output)), {}) if not shown.problem else {}
        state = record.get("JobState", "")
        detail = (
            f"exit code {record['ExitCode']}, {record.get('RunTime', '')}, on {record.get('NodeList', '')}"
            if state
            else ""
        )
        comment = comment or record.get("Comment", "")
        log = log or (Path(record["StdOut"]) if "StdOut" in record else None)
    if not state and log is None:
        raise LogError(f"{number}: neither Slurm nor a run of Snakemake in this folder knows a job of this number")
    return SlurmJob(number, log, state, detail), comment


def _comment_of(log: Path) -> str:
    """The comment that belongs to the path of a Slurm log."""
    folders = log.parent.parts
    if len(folders) > 1 and folders[-2].startswith("rule_"):
        return f"{folders[-2]}_wildcards_{folders[-1]}"
    return folders[-1] if folders and folders[-1].startswith("rule_") else ""


def last_lines(path: Path, count: int) -> Sequence[str]:
    """The last lines of a log; of a progress line that overwrites itself, its last state."""
    # Without translation of newlines, which would make a carriage return one.
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        text = file.read().replace("\r\n", "\n")
    return [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.rstrip().split("\n")][-count:]
