"""This call of Snakemake: its targets and its executor, and the configuration that its jobs read.

While the Snakefile is read, Snakemake has not yet told the workflow what it is to make, so its command line is read
with its own parser.

A job of a cluster reads the configuration when it starts, hours after it was sent, and it has to compute what was asked
for then. The main process keeps a copy, named after its content, and tells its jobs by their surroundings, which every
executor of one cluster hands on; a job that is not told reads what lies there.
"""

import contextlib
import io
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hatchery.errors import ConfigError

# Calls that look at the workflow or mend its records, and make nothing.
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
    """Targets as they were given, the name of the executor, and whether nothing is to be run."""

    targets: tuple[str, ...]
    executor: str
    dry_run: bool


def read_request(argv: Sequence[str]) -> Request | None:
    """What the command line `argv` (with the program in front) asks Snakemake to make.

    None where it is not Snakemake's, or where it asks for nothing to be made.
    """
    program = Path(argv[0]) if argv else Path()
    if program.name != "snakemake" and (program.name, program.parent.name) != ("__main__.py", "snakemake"):
        return None
    from snakemake.cli import parse_args

    # Snakemake has parsed the same words, and has said what there was to say.
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
    return Request(tuple(found.targets or ()), found.executor or "local", dry_run)


VARIABLE = "HATCHERY_CONFIGURATION"
COPIES = Path(".snakemake/configurations")
# Published rows are matched by their names.
_ENDINGS = (".yaml", ".csv")


def frozen_configuration(folder: str | Path, is_main_process: bool, is_real_run: bool = True) -> Path:
    """The folder to read the configuration from: `folder` itself in the main process, its copy in a job.

    A call that runs nothing has no jobs, and makes no copy. Raises ConfigError in a job whose copy was altered.
    """
    if not is_main_process:
        told = os.environ.get(VARIABLE, "")
        if not told or not Path(told).is_dir():
            return Path(folder)
        if (found := _digest(_files(told))) != Path(told).name:
            raise ConfigError(
                f"{told}: the configuration of this job was altered: expected the SHA-256 {Path(told).name}..., found "
                f"{found}...; start the workflow again, which writes it anew"
            )
        return Path(told)
    if not is_real_run:
        return Path(folder)
    files = _files(folder)
    name = _digest(files)
    copy = COPIES / name
    if copy.is_dir() and _digest(_files(copy)) != name:
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
    """The contents of the files of a configuration, by their places in it."""
    paths = sorted(path for ending in _ENDINGS for path in Path(folder).rglob(f"*{ending}"))
    return {path.relative_to(folder): path.read_bytes() for path in paths}


def _digest(files: Mapping[Path, bytes]) -> str:
    """What a copy of a configuration is called."""
    content = b"".join(f"{path} {len(text)}\n".encode() + text for path, text in files.items())
    return sha256(content).hexdigest()[:16]
