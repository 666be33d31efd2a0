"""The beginning and the end of a call of Snakemake: the configuration, what was asked for, and what is shown then."""

import atexit
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from snakemake.io import strip_wildcard_constraints

from hatchery.artifacts.checksums import vouched
from hatchery.artifacts.links import check_roots, link_roots
from hatchery.errors import ConfigError, HatcheryError
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources, planned_sources
from hatchery.experiment.text_limits import epochs_to_tell
from hatchery.sanitize import visible
from hatchery.workflow.invocation import read_request
from hatchery.workflow.plan_checks import check_targets, collect_problems
from hatchery.workflow.registry import SHARED
from hatchery.workflow.rules import Rules, with_plain_errors
from hatchery.workflow.software import require_slurm

DEFAULT_RULE = "all"
"""The rule of plain `snakemake`."""


@with_plain_errors
def open_workflow(
    folder: str | Path, overrides: Mapping[str, Any], is_main_process: bool = True, is_real_run: bool = False
) -> Rules:
    """What the rules take of the project that is configured in `folder`.

    The main configuration is checked at once, experiments when they are asked for. Only a real run makes anything. In
    the process of one job of a cluster, calls are written as they are asked for.
    """
    project = Project(folder, overrides)
    told = (link_roots if is_real_run else check_roots)(project.config.storage_root)
    print("".join(f"{line}\n" for line in told), end="", file=sys.stderr)
    rules = Rules(project, is_main_process)
    if not is_main_process:
        rules.jobs.write_calls()
    return rules


@with_plain_errors
def check_request(rules: Rules, workflow: Any) -> None:
    """Stop this call of Snakemake, before it plans, for everything that is known to be wrong with what it asks for.

    A dry run ends with a list of the raw data that is missing. Says which corpora surely have less text than their
    trainings read. Raises ConfigError with one line for each problem.
    """
    request = read_request(sys.argv) if workflow.is_main_process else None
    if request is None:
        return
    require_slurm(request.executor, request.dry_run)
    targets = [target for target in request.targets if target != DEFAULT_RULE]
    if not request.targets or len(targets) < len(request.targets):
        targets += rules.default_pages()
    outputs = [strip_wildcard_constraints(str(output)) for rule in workflow.rules for output in rule.output]
    kinds = {output: SHARED if "{kind}" in output else ("-",) for output in outputs}
    patterns = [output.replace("{kind}", kind) for output in outputs for kind in kinds[output]]
    made = {target: _is_made(target, workflow) for target in targets}
    project = rules.project
    asked, problems = check_targets(targets, patterns, [rule.name for rule in workflow.rules], made, project)
    collect_problems(project, asked, problems)
    problems.raise_any()
    if request.dry_run:
        atexit.register(list_missing_data, project, workflow)
    parts = [part for kind, name in asked if kind in ("experiment", "study") for part in project.parts(name)]
    for line in epochs_to_tell(dict.fromkeys(parts), project):
        print(f"note: {line}", file=sys.stderr)


@with_plain_errors
def require_raw_data(project: Project, dag: Any) -> None:
    """Raise ConfigError with one line for each raw input that the planned jobs need and that cannot be had."""
    if lines := missing_sources(project, planned_sources(dag)):
        raise ConfigError("\n".join(lines))


@with_plain_errors
def show_results(project: Project) -> None:
    """Print the tables of the experiments and studies that this invocation looked at; a study's stand for all."""
    studies = [name for kind, name in project.checked if kind == "study"]
    read = {part for study in studies for part in project.parts(study)}
    experiments = [name for kind, name in project.checked if kind == "experiment"]
    named = [name for name in experiments if name not in read] + studies
    paths = [Path(f"results/{name}/summary.txt") for name in named]
    show_summaries([path for path in paths if path.is_file()], sys.stderr)


def list_missing_data(project: Project, workflow: Any) -> None:
    """The end of a dry run: what its jobs would lack."""
    try:
        lines = missing_sources(project, planned_sources(workflow.dag))
    except Exception:  # there is no plan, and why was said
        return
    for line in lines:
        print(f"missing: {line}", file=sys.stderr)


def _is_made(target: str, workflow: Any) -> bool:
    """Whether Snakemake can do something with a target: a rule's name, a file that a rule makes or that is there."""
    return (
        workflow.is_rule(target) or Path(target).is_file() or any(rule.is_producer(target) for rule in workflow.rules)
    )


def show_summaries(paths: Iterable[str | Path], stream: TextIO) -> None:
    """Print every `summary.txt` in `paths`, in the given order, to `stream`.

    A file that cannot be read, or is not what its checksum says, is told in one line instead of raised: this runs after
    the work is done, and must not turn a finished workflow into a failed one. Characters that the stream cannot show
    become question marks, those that would steer a terminal U+FFFD.
    """
    for path in paths:
        try:
            text = vouched(path).read_text(encoding="utf-8")
        except (HatcheryError, OSError, UnicodeDecodeError) as error:
            text = f"(no summary to show: {path}: {error})\n"
        encoding = getattr(stream, "encoding", None) or "utf-8"
        text = visible(text)
        stream.write("\n" + text.encode(encoding, errors="replace").decode(encoding))
    stream.flush()
