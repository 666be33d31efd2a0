"""Finds results whose modification times make Snakemake consider them up to date, although the inputs of the results
have changed.

Modification times are wrong if a clock was set back. Therefore, at the end of a Snakemake call, the inputs of all
finished results are compared with the checksums in the results' manifests. If inputs of a result have changed or are
missing, the result is reported, with the rules to run again. Final results, such as submissions, are read by no later
stage that would notice a wrong file. Therefore this module also reports a final result that was altered or belongs to
another experiment.
"""

import atexit
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hatchery.artifacts.checksums import checksums_of, sha256_file, verified_view
from hatchery.artifacts.manifests import MANIFEST, Manifest, read_manifest, volatile_facts
from hatchery.errors import HatcheryError, ManifestError
from hatchery.source_parts import digest_read
from hatchery.stage import stage_called
from hatchery.units import rough_duration
from hatchery.workflow.registry import STAGES

AHEAD_SECONDS = 300
"""Tolerated difference in seconds between the clocks of machines that share a file system."""
OTHER_CONTENT = "was made from other content"


def watch_stale_results(workflow: Any, dry_run: bool) -> None:
    """At the end of this Snakemake call, report results whose inputs have changed and results that were altered.

    If a result was altered, or the content of an input has changed since a finished result was made from the input, the
    call ends with status 1. The status of a dry run does not change.
    """
    if dry_run:
        atexit.register(report_stale_results, workflow)
        return
    execute = workflow.execute

    def execute_and_tell(*arguments: Any, **options: Any) -> None:
        try:
            execute(*arguments, **options)
        finally:
            is_wrong = report_stale_results(workflow)
        if is_wrong:
            sys.exit(1)

    workflow.execute = execute_and_tell


def report_stale_results(workflow: Any) -> bool:
    """Print warnings on results that are outdated although their modification times are recent, and on modification
    times in the future.

    Return True if a result was altered, or if an input of a result has other content than when the result was made.
    """
    try:
        dag = workflow.dag
        finished = set(dag.jobs) - set(dag.needrun_jobs(exclude_finished=False))
    except Exception:  # Stop here, because Snakemake has already reported why there is no job graph.
        return False
    lines = list(stale_lines(sorted(finished, key=lambda job: [str(output) for output in job.output])))
    for line in lines:
        print(f"warning: {line.text}", file=sys.stderr)
    return any(line.is_wrong for line in lines)


class StaleLine(NamedTuple):
    """A warning about a result whose inputs may have changed, or about a modification time in the future.

    `is_wrong` is True if the result is certainly outdated or altered. It is False if an input is missing, because users
    may remove inputs on purpose.
    """

    text: str
    is_wrong: bool


def stale_lines(finished: Iterable[Any]) -> Iterator[StaleLine]:
    """Yield warnings on outputs whose inputs have changed, on altered outputs, and on modification times in the future.
    `finished` are the jobs that Snakemake considers up to date.
    """
    stale: dict[str, str] = {}
    has_other_content = False
    altered: list[str] = []
    ahead: dict[str, tuple[float, str]] = {}
    digest_of, now = cache(sha256_file), time.time()
    for job in finished:
        # Check only stages, because the outputs of other rules are links to results of stages.
        for output in map(Path, job.output if stage_called(job.rule.name) in STAGES else ()):
            if not output.is_file():
                continue
            if (seconds := output.stat().st_mtime - now) > AHEAD_SECONDS:
                ahead.setdefault(job.rule.name, (seconds, str(output)))
            try:
                found = _verified_difference(output, digest_of)
            except ManifestError as error:
                altered.append(str(error))
                continue
            if found:
                stale.setdefault(job.rule.name, f"{output} {found}")
                has_other_content |= found.startswith(OTHER_CONTENT)
    if altered:
        more = f" ({len(altered) - 1} more results were altered)" if len(altered) > 1 else ""
        yield StaleLine(f"{altered[0]}{more}", True)
    if stale:
        first, *others = stale.values()
        more = f" (and results of {len(others)} more rules)" if others else ""
        again = "these results" if others else "this result"
        said = "wrongly considered up to date" if has_other_content else "considered up to date, but perhaps outdated"
        yield StaleLine(
            f"{said}: {first}{more}; to make {again} again, give the same command with --forcerun {' '.join(stale)}",
            has_other_content,
        )
    elif ahead:
        seconds, path = next(iter(ahead.values()))
        yield StaleLine(
            f"{path}: its modification time is {rough_duration(seconds)} ahead of this machine's clock, so Snakemake "
            "may wrongly consider the file up to date; to make the file again, give the same command with --forcerun "
            f"{' '.join(ahead)}",
            False,
        )


def _verified_difference(output: Path, digest_of: Callable[[Path], str]) -> str:
    """Return the difference between the input checksums in a manifest and the current inputs. If `output` is not a
    manifest, compare it only with its recorded checksum, if there is one, and return an empty text.

    Raises ManifestError for an altered output, and for an output of another experiment.
    """
    if output.name == MANIFEST:
        return _difference(read_manifest(output), digest_of)
    if checksums_of(output).is_file() and output != checksums_of(output):
        verified_view(output)
    return ""


def _difference(made: Manifest, digest_of: Callable[[Path], str]) -> str:
    """Return a description of the first input that differs from its checksum in the manifest `made`, or that is
    missing.

    Empty if all inputs are unchanged, or if the manifest does not list its inputs.
    """
    try:
        # Compare the paths that the stage has recorded. Snakemake's inputs may be other files: the manifest of a job
        # instead of the manifests of the job's tasks.
        for name, path in volatile_facts(made.path)["inputs"].items():
            if not Path(path).is_file():
                return f"was made from {path}, which no longer exists"
            recorded = made.inputs[name]
            if recorded != digest_of(Path(path)) and recorded != digest_read(made.settings, name, Path(path)):
                return f"{OTHER_CONTENT} of its input {name!r} than the file contains now"
    except (OSError, ValueError, KeyError, TypeError, HatcheryError):
        pass
    return ""
