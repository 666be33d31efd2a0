"""The beginning and the end of a Snakemake call: check the configuration and the targets, and print the summaries."""

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
from hatchery.experiment.preferences import preference_warnings
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
"""Name of the rule that Snakemake builds if no target is given."""


# Options with which Snakemake makes no results, but inspects the workflow or repairs its metadata.
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
    """The request on Snakemake's command line: targets, executor, dry run, number of retries, and forced reruns."""

    targets: tuple[str, ...]
    executor: str
    dry_run: bool
    retries: int = 0
    is_forced: bool = False


def read_request(argv: Sequence[str]) -> Request | None:
    """Return the targets and options in `argv`, the command line of Snakemake, which begins with the program.

    The command line is parsed here because Snakemake passes the targets to the workflow only after it has read the
    Snakefile. Return None if the command line belongs to another program, is invalid, or requests no run (such as
    `--list-rules` or `--unlock`).
    """
    program = Path(argv[0]) if argv else Path()
    if program.name != "snakemake" and (program.name, program.parent.name) != ("__main__.py", "snakemake"):
        return None
    from snakemake.cli import parse_args

    # Suppress errors and warnings, because Snakemake has already parsed this command line and reported them.
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
# Suffixes of the files in a configuration folder: `.yaml` for settings, and `.csv` for published values.
_ENDINGS = (".yaml", ".csv")


def frozen_configuration(folder: str | Path, is_main_process: bool, may_write: bool = True) -> Path:
    """Return the folder of the configuration: `folder` in the main process, a copy of `folder` in the process of a job.

    A cluster job may start hours after its submission, but must use the configuration of the time of its submission.
    Therefore the main process writes a copy, which is named by the digest of its content. An environment variable,
    which all cluster executors forward, contains the path of the copy. In a job without this variable, or if the copy
    is missing, `folder` is returned. A dry run starts no jobs, so it writes no copy. Raises ConfigError in a job if the
    copy was altered.
    """
    if not is_main_process:
        handed_on = os.environ.get(VARIABLE, "")
        if not handed_on or not Path(handed_on).is_dir():
            return Path(folder)
        if (found := _digest(_files_in(Path(handed_on)))) != Path(handed_on).name:
            raise ConfigError(
                f"{handed_on}: the configuration of this job was altered: expected the SHA-256 "
                f"{Path(handed_on).name}..., got {found}...; start the workflow again, which writes a new copy"
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
        except OSError:  # Another process has written the same copy.
            shutil.rmtree(unfinished)
    os.environ[VARIABLE] = str(copy.resolve())
    return Path(folder)


def _files(folder: str | Path) -> dict[Path, bytes]:
    """Return the contents of the files of a configuration by path.

    Hatchery reads files that are missing in `folder` from its shipped configuration, if there is one. In this case, the
    files of the shipped configuration are included.
    """
    found = _files_in(Path(folder))
    shipped = shipped_for(Path(folder))
    if shipped is not None and shipped.name != COPY:
        found |= {Path(COPY) / path: text for path, text in _files_in(shipped).items()}
    return found


def _files_in(folder: Path) -> dict[Path, bytes]:
    paths = (Path(place) / name for place, _, names in os.walk(folder, followlinks=True) for name in names)
    return {path.relative_to(folder): path.read_bytes() for path in sorted(paths) if path.suffix in _ENDINGS}


def _digest(files: Mapping[Path, bytes]) -> str:
    """Return the digest of a configuration's files. The copy of the configuration is named by this digest."""
    content = b"".join(f"{path} {len(text)}\n".encode() + text for path, text in sorted(files.items()))
    return sha256(content).hexdigest()[:16]


@with_plain_errors
def open_workflow(folder: str | Path, call: Any = None, is_main_process: bool = True, may_write: bool = False) -> Rules:
    """Return the rules of the project that is configured in `folder`.

    `call` contains settings from Snakemake's command line (`ConfigSettings`). The main configuration is checked
    immediately, and each experiment when it is first used. If `may_write` is false, only two kinds of files are
    written: links to shipped tables and, in the process of a single cluster job, specifications of jobs.
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
    """Check the targets before planning. In a dry run, also register a function that lists missing raw data at the end.

    Raises ConfigError with one line per problem.
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
        # If another Snakefile includes Hatchery as a module, check only the targets that Hatchery can build, because
        # that Snakefile may define rules for the other targets later.
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
    notes = [*unlearned_warnings(parts, project), *preference_warnings(parts, project), *notes_on_data]
    if request.executor == PROFILE:
        notes += endless_trainings(parts, rules.resources, request.retries)
    for line in notes:
        print(f"note: {line}", file=sys.stderr)


def is_module(workflow: Any) -> bool:
    """Return True if Hatchery's Snakefile is read as a module of another workflow."""
    return not workflow.modifier.is_main_snakefile()


@with_plain_errors
def begin_in_module(rules: Rules, workflow: Any) -> None:
    """Write the specifications of jobs, and the links to results, while jobs are planned. This function is called only
    if Hatchery is a module of another workflow, because Snakemake does not call a module's `onstart`. If Hatchery is
    not a module, `onstart` writes the specifications and links.

    Raises ConfigError if the module has a `prefix`. Snakemake would add the prefix to its own paths, but not to the
    paths in the specifications.
    """
    if workflow.modifier.modify_path("results/demo", "output") != "results/demo":
        raise ConfigError("module: got `prefix` or `replace_prefix`, expected neither; use --directory instead")
    request = read_request(sys.argv) if is_real_run(workflow) else None
    if request is not None:
        rules.start(request.is_forced)


@with_plain_errors
def require_raw_data(project: Project, dag: Any) -> None:
    """Raise ConfigError if planned jobs need raw inputs that are not available; the error has one line for each raw
    input.
    """
    if lines := missing_sources(project, planned_sources(dag)):
        raise ConfigError("\n".join(lines))


@with_plain_errors
def show_results(project: Project) -> None:
    """Print the summaries of the experiments and studies that this call of Snakemake requested.

    If a study was requested, its summary is printed instead of the summaries of its experiments.
    """
    studies = [name for kind, name in project.checked if kind == "study"]
    read = {part for study in studies for part in project.members(study)}
    experiments = [name for kind, name in project.checked if kind == "experiment"]
    named = [name for name in experiments if name not in read] + studies
    paths = [Path(f"results/{name}/summary.txt") for name in named]
    show_summaries([path for path in paths if path.is_file()], sys.stderr)


def list_missing_data(project: Project, workflow: Any) -> None:
    """Print, at the end of a dry run, the raw data that planned jobs need but that is not available."""
    try:
        lines = missing_sources(project, planned_sources(workflow.dag))
    except Exception:  # Stop here, because Snakemake has already reported why there is no job graph.
        return
    for line in lines:
        print(f"missing: {line}", file=sys.stderr)


COMMANDS = ("sbatch", "squeue")
"""Commands of Slurm with which the executor submits and monitors jobs."""


def require_slurm(executor: str, dry_run: bool) -> None:
    """Raise ConfigError if jobs would be submitted to Slurm, but Slurm's commands are not installed on this machine."""
    missing = missing_commands()
    if executor == "slurm" and missing and not dry_run:
        raise ConfigError(
            f"--profile slurm: this machine has {missing}, so it cannot submit jobs to Slurm; run the command on a "
            "login node of the cluster, add -n to only see the plan, or omit --profile slurm to run on this machine"
        )


def missing_commands(commands: Sequence[str] = COMMANDS) -> str:
    """Return a text with the Slurm commands that this machine lacks, such as `no sbatch and no squeue`.

    Empty if this machine has all commands.
    """
    return " and ".join(f"no {command}" for command in commands if shutil.which(command) is None)


def _is_made(target: str, workflow: Any) -> bool:
    """Return True if a target is a rule, the output of a rule, or an existing file."""
    return (
        workflow.is_rule(target) or Path(target).is_file() or any(rule.is_producer(target) for rule in workflow.rules)
    )


def show_summaries(paths: Iterable[str | Path], stream: TextIO) -> None:
    """Write the text of each `summary.txt` in `paths` to `stream`.

    If a file cannot be read or its checksum differs, one line of text reports this problem. No error is raised, because
    all jobs have already finished. Characters that the stream cannot encode are replaced by question marks, and control
    characters by U+FFFD.
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
