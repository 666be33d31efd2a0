"""The beginning and the end of a call of Snakemake: read configuration and targets, check them, show the results."""

import atexit
import contextlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

from snakemake.io import strip_wildcard_constraints

from hatchery.artifacts.checksums import verified_view
from hatchery.artifacts.links import check_roots, hold_root, link_roots
from hatchery.errors import ConfigError, HatcheryError
from hatchery.experiment.given_settings import given_settings
from hatchery.experiment.project import Project
from hatchery.experiment.raw_inputs import missing_sources, planned_sources
from hatchery.experiment.run_checks import unlearned_warnings
from hatchery.experiment.shipped import COPY, link_tables, open_project, shipped_for
from hatchery.sanitize import visible
from hatchery.workflow.pieces import PROFILE, endless_trainings
from hatchery.workflow.plan_checks import check_targets, collect_problems
from hatchery.workflow.registry import SHARED
from hatchery.workflow.rules import Rules, with_plain_errors
from hatchery.workflow.snakemake_call import is_real_run
from hatchery.workflow.software import is_own_environment
from hatchery.workflow.stale_results import watch_stale_results

DEFAULT_RULE = "all"
"""The rule that Snakemake builds without a target."""


# Options of calls that only inspect the workflow or repair its metadata.
_LOOKING = (
    "lint",
    "unlock",
    "list_rules",
    "list_target_rules",
    "cleanup_metadata",
    "print_compilation",
)


@dataclass(frozen=True)
class Request:
    """The targets, the name of the executor, and the options dry run, number of retries and forced reruns."""

    targets: tuple[str, ...]
    executor: str
    dry_run: bool
    retries: int = 0
    is_forced: bool = False


def read_request(argv: Sequence[str]) -> Request | None:
    """Parse the targets and options of a command line of Snakemake (`argv` begins with the program).

    Snakemake passes its targets to the workflow only after it has read the Snakefile. None if the line is not
    Snakemake's, or if it requests no output.
    """
    program = Path(argv[0]) if argv else Path()
    if program.name != "snakemake" and (program.name, program.parent.name) != ("__main__.py", "snakemake"):
        return None
    from snakemake.cli import parse_args

    # Snakemake has parsed the same line, and has reported its errors.
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            _, found = parse_args(list(argv[1:]))
        except (Exception, SystemExit):
            return None
    if any(getattr(found, name, None) for name in _LOOKING):
        return None
    dry_run = bool(found.dryrun) or found.executor == "dryrun"
    forced = bool(found.forceall or found.force or found.forcerun)
    return Request(tuple(found.targets or ()), found.executor or "local", dry_run, int(found.retries or 0), forced)


VARIABLE = "HATCHERY_CONFIGURATION"
COPIES = Path(".snakemake/configurations")
# Published values are matched with rows by name.
_ENDINGS = (".yaml", ".csv")


def frozen_configuration(folder: str | Path, is_main_process: bool, may_write: bool = True) -> Path:
    """Return the folder of the configuration: `folder` itself in the main process, its copy in a job.

    A job of a cluster reads the configuration hours after it was submitted, and has to use the configuration of that
    time. The main process writes a copy, named after its content, and passes its path to the jobs in an environment
    variable, which every cluster executor forwards. A job without the variable reads `folder`. A dry run has no jobs,
    and writes no copy. Raises ConfigError in a job whose copy was altered.
    """
    if not is_main_process:
        handed_on = os.environ.get(VARIABLE, "")
        if not handed_on or not Path(handed_on).is_dir():
            return Path(folder)
        if (found := _digest(_files_in(Path(handed_on)))) != Path(handed_on).name:
            raise ConfigError(
                f"{handed_on}: the configuration of this job was altered: expected the SHA-256 "
                f"{Path(handed_on).name}..., found {found}...; start the workflow again, which writes it anew"
            )
        return Path(handed_on)
    if not may_write:
        return Path(folder)
    files = _files(folder)
    name = _digest(files)
    copy = COPIES / name
    if copy.is_dir() and _digest(_files_in(copy)) != name:
        shutil.rmtree(copy)
    if not copy.is_dir():
        unfinished = COPIES / f"{name}.{os.getpid()}.partial"
        for path, text in files.items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / path).write_bytes(text)
        try:
            unfinished.rename(copy)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    os.environ[VARIABLE] = str(copy.resolve())
    return Path(folder)


def _files(folder: str | Path) -> dict[Path, bytes]:
    """Return the contents of the files of a configuration, by path; including shipped files of another folder."""
    found = _files_in(Path(folder))
    shipped = shipped_for(Path(folder))
    if shipped is not None and shipped.name != COPY:
        found |= {Path(COPY) / path: text for path, text in _files_in(shipped).items()}
    return found


def _files_in(folder: Path) -> dict[Path, bytes]:
    paths = (Path(place) / name for place, _, names in os.walk(folder, followlinks=True) for name in names)
    return {path.relative_to(folder): path.read_bytes() for path in sorted(paths) if path.suffix in _ENDINGS}


def _digest(files: Mapping[Path, bytes]) -> str:
    """Return the name of a copy of a configuration."""
    content = b"".join(f"{path} {len(text)}\n".encode() + text for path, text in sorted(files.items()))
    return sha256(content).hexdigest()[:16]


@with_plain_errors
def open_workflow(folder: str | Path, call: Any = None, is_main_process: bool = True, may_write: bool = False) -> Rules:
    """Return the rules of the project that is configured in `folder`.

    `call` holds settings from Snakemake's command line (`ConfigSettings`). The main configuration is checked at once,
    experiments when they are first used. Only a call with `may_write` writes files, except for links to shipped
    tables. In the process of one job of a cluster, calls are written when they are requested.
    """
    if is_main_process:
        link_tables(Path(folder))
    project = open_project(folder, () if call is None else given_settings(call.configfiles, call.config_args or ()))
    notes = (link_roots if may_write else check_roots)(project.config.storage_root)
    print("".join(f"{line}\n" for line in notes), end="", file=sys.stderr)
    if may_write:
        hold_root(project.config.storage_root)
    rules = Rules(project, is_main_process)
    if not is_main_process:
        rules.jobs.write_calls()
    return rules


@with_plain_errors
def check_request(rules: Rules, workflow: Any) -> None:
    """Stop this call of Snakemake before planning if its targets have known problems.

    A dry run ends with a list of the missing raw data. Raises ConfigError with one line for each problem.
    """
    request = read_request(sys.argv) if workflow.is_main_process else None
    if request is None:
        return
    require_slurm(request.executor, request.dry_run)
    targets = [target for target in request.targets if target != DEFAULT_RULE]
    if (not request.targets or len(targets) < len(request.targets)) and not is_module(workflow):
        targets += rules.default_pages()
    outputs = [strip_wildcard_constraints(str(output)) for rule in workflow.rules for output in rule.output]
    kinds = {output: SHARED if "{kind}" in output else ("-",) for output in outputs}
    patterns = [output.replace("{kind}", kind) for output in outputs for kind in kinds[output]]
    made = {target: _is_made(target, workflow) for target in targets}
    if is_module(workflow):
        # Targets of the outer workflow, which may still follow in its Snakefile.
        targets = [target for target in targets if made[target]]
    project = rules.project
    asked, problems = check_targets(targets, patterns, [rule.name for rule in workflow.rules], made, project)
    notes_on_data = collect_problems(project, asked, problems, is_own_environment(workflow.deployment_settings))
    problems.raise_any()
    watch_stale_results(workflow, request.dry_run)
    if request.dry_run:
        atexit.register(list_missing_data, project, workflow)
    named = (part for kind, name in asked if kind in ("experiment", "study") for part in project.members(name))
    parts = list(dict.fromkeys(named))
    notes = [*unlearned_warnings(parts, project), *notes_on_data]
    if request.executor == PROFILE:
        notes += endless_trainings(parts, rules.resources, request.retries)
    for line in notes:
        print(f"note: {line}", file=sys.stderr)


def is_module(workflow: Any) -> bool:
    """Return True if the Snakefile being read is a module of another workflow."""
    return not workflow.modifier.is_main_snakefile()


@with_plain_errors
def begin_in_module(rules: Rules, workflow: Any) -> None:
    """Run the steps of `onstart` for a module, because Snakemake does not call a module's `onstart`.

    Calls and links are written while jobs are planned. Raises ConfigError for a `prefix`, because Snakemake would then
    use other paths than the calls.
    """
    if workflow.modifier.modify_path("results/demo", "output") != "results/demo":
        raise ConfigError("module: got `prefix` or `replace_prefix`, expected neither; use --directory instead")
    request = read_request(sys.argv) if is_real_run(workflow) else None
    if request is not None:
        rules.start(request.is_forced)


@with_plain_errors
def require_raw_data(project: Project, dag: Any) -> None:
    """Raise ConfigError with one line for each raw input that the planned jobs need and that is not available."""
    if lines := missing_sources(project, planned_sources(dag)):
        raise ConfigError("\n".join(lines))


@with_plain_errors
def show_results(project: Project) -> None:
    """Print the tables of the experiments and studies of this invocation.

    A study's tables replace those of its experiments.
    """
    studies = [name for kind, name in project.checked if kind == "study"]
    read = {part for study in studies for part in project.members(study)}
    experiments = [name for kind, name in project.checked if kind == "experiment"]
    named = [name for name in experiments if name not in read] + studies
    paths = [Path(f"results/{name}/summary.txt") for name in named]
    show_summaries([path for path in paths if path.is_file()], sys.stderr)


def list_missing_data(project: Project, workflow: Any) -> None:
    """Print the raw data that the jobs of a dry run would lack, at its end."""
    try:
        lines = missing_sources(project, planned_sources(workflow.dag))
    except Exception:  # there is no plan, and the reason was reported
        return
    for line in lines:
        print(f"missing: {line}", file=sys.stderr)


COMMANDS = ("sbatch", "squeue")
"""Commands that the executor calls to submit and monitor jobs."""


def require_slurm(executor: str, dry_run: bool) -> None:
    """Raise ConfigError if jobs are to be submitted to Slurm from a machine without it; a dry run submits no jobs."""
    missing = missing_commands()
    if executor == "slurm" and missing and not dry_run:
        raise ConfigError(
            f"--profile slurm: this machine has {missing}, so it cannot send jobs to Slurm; call "
            "it on a login node of the cluster, add -n to see the plan only, or leave --profile slurm out to run here"
        )


def missing_commands(commands: Sequence[str] = COMMANDS) -> str:
    """Return the missing Slurm commands of this machine, as in `no sbatch and no squeue`; empty if there are all."""
    return " and ".join(f"no {command}" for command in commands if shutil.which(command) is None)


def _is_made(target: str, workflow: Any) -> bool:
    """Return True if Snakemake accepts a target: the name of a rule, an output of a rule, or an existing file."""
    return (
        workflow.is_rule(target) or Path(target).is_file() or any(rule.is_producer(target) for rule in workflow.rules)
    )


def show_summaries(paths: Iterable[str | Path], stream: TextIO) -> None:
    """Print every `summary.txt` in `paths`, in the given order, to `stream`.

    A file that cannot be read, or whose checksum differs, is reported in one line. No error is raised, because this
    runs after the work has finished. Characters that the stream cannot show become question marks, those that would
    control a terminal U+FFFD.
    """
    for path in paths:
        try:
            text = verified_view(path).read_text(encoding="utf-8")
        except (HatcheryError, OSError, UnicodeDecodeError) as error:
            text = f"(no summary to show: {path}: {error})\n"
        encoding = getattr(stream, "encoding", None) or "utf-8"
        text = visible(text)
        stream.write("\n" + text.encode(encoding, errors="replace").decode(encoding))
    stream.flush()
