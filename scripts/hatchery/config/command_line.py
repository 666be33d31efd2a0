"""What this call of Snakemake asks for, read with Snakemake's own parser: its targets and its executor.

While the Snakefile is read, Snakemake has not yet told the workflow what it is to make.
"""

import contextlib
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
