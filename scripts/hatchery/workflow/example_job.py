"""The text that `make show` prints: a rule, and one job of this rule.

The Snakefile builds the rule from the record of its stage. The text is only printed; no job is run.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake.io import strip_wildcard_constraints

from hatchery.errors import PlanError
from hatchery.rendering.setting_texts import flatten
from hatchery.settings.problems import nearest
from hatchery.workflow.planned_jobs import dag_of, opened, wildcards_of
from hatchery.workflow.registry import STAGES

if TYPE_CHECKING:
    from hatchery.workflow.rules import Rules

_MOST_PATHS = 5


def example_text(rule: str, targets: Sequence[str]) -> str:
    """Return a rule as text, followed by inputs, settings and command of its first job in the plan for `targets`.

    Raises PlanError if the rule does not exist or the plan has no job of the rule, and the errors of `opened`.
    """
    with opened(["--dry-run", "--", *targets]) as (parsed, api):
        api.dag(dag_settings=dag_of(parsed, everything=True)).execute_workflow(executor="dryrun")
        workflow = api._workflow
        rules = [each.name for each in workflow.rules if each.output]
        if rule not in rules:
            raise PlanError(f"RULE: got {rule!r}, expected a rule{nearest(rule, rules)}")
        jobs = sorted((job for job in workflow.dag.jobs if job.rule.name == rule), key=lambda job: str(job.output))
        if not jobs:
            problem = f"RULE: {' '.join(targets)} needs no job of {rule!r}"
            raise PlanError(
                f"{problem}; add EXPERIMENT=name or TARGET=file, an experiment or a file whose plan contains a job of "
                "this rule"
            )
        return f"{rule_text(jobs[0].rule)}\n{_text(jobs[0], len(jobs), workflow.globals['RULES'])}"


def rule_text(rule: Any) -> str:
    """Return a rule in Snakemake's language; values that depend on the job are written as `...`."""
    resources = {key: each.raw for key, each in rule.resources.items()}
    directives: dict[str, dict[str, Any]] = {
        "input": {"": ...} if rule.input else {},
        "output": _named(rule.output),
        "log": _named(rule.log),
        "benchmark": {"": rule.benchmark} if rule.benchmark else {},
        "wildcard_constraints": rule.wildcard_constraints,
        "priority": {"": rule.priority} if rule.priority else {},
        "localrule": {"": True} if rule.name in rule.workflow._localrules else {},
        "conda": {"": f"envs/{Path(str(rule.conda_env)).name}"},
        "threads": {"": resources["_cores"]},
        "resources": {key: each for key, each in resources.items() if key not in ("_cores", "_nodes", "tmpdir")},
        "params": dict(rule.params.items()),
        "shell": {"": rule.shellcmd},
    }
    lines = [f"rule {rule.name}:"]
    for name, values in directives.items():
        if values:
            lines.append(f"    {name}:")
            lines += [f"        {key}{'=' if key else ''}{_literal(value)}," for key, value in values.items()]
    return "".join(f"{line}\n" for line in lines)


def _named(paths: Any) -> dict[str, Any]:
    return dict(paths.items()) or dict.fromkeys([""], *paths)


def _literal(value: Any) -> str:
    if callable(value) or value in (None, ...):
        return "..."
    if isinstance(value, list):
        return f"[{', '.join(_literal(str(each)) for each in value)}]"
    return f'"{strip_wildcard_constraints(value)}"' if isinstance(value, str) else str(value)


def _text(job: Any, number: int, rules: "Rules") -> str:
    stage = job.rule.name
    inputs = rules.inputs_by_argument(stage, job.wildcards) if stage in STAGES else {"the result": str(job.input)}
    # If the outputs of a rule have no names, their indices are the keys.
    outputs = dict(job.output.items()) or dict(enumerate(job.output))
    resources = {key: value for key, value in job.resources.items() if not key.startswith("_") and key != "tmpdir"}
    settings = flatten(json.loads(job.params.get("settings") or "{}"))
    parts = {
        "reads": [line for name, paths in inputs.items() for line in _paths(name, paths)] or ["nothing"],
        "writes": [f"{name}: {path}" if isinstance(name, str) else str(path) for name, path in outputs.items()],
        "settings": [f"{key}: {value}" for key, value in settings.items()],
        "requests": [f"threads: {job.threads}", *(f"{key}: {value}" for key, value in resources.items())],
        "environment": [Path(str(job.rule.conda_env)).name],
        "command": [str(job.shellcmd)],
    }
    text = "".join(f"{part}\n" + "".join(f"  {line}\n" for line in lines) for part, lines in parts.items())
    return f"{stage} {' '.join(rules.jobs.names_of_wildcards(wildcards_of(job)))} (one job of {number})\n{text}"


def _paths(name: str, paths: object) -> list[str]:
    if isinstance(paths, str):
        return [f"{name}: {paths}"]
    if isinstance(paths, Mapping):
        lines = [f"{key}: {path}" for key, path in paths.items()]
    else:
        lines = [str(path) for path in paths] if isinstance(paths, Sequence) else []
    rest = len(lines) - _MOST_PATHS
    shown = [*lines[:_MOST_PATHS], f"and {rest:,} more"] if rest > 1 else lines
    return [f"{name}:{'' if shown else ' none'}", *(f"  {line}" for line in shown)]
