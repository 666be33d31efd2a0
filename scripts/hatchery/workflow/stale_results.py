"""Results that Snakemake considers up to date by their dates, although their inputs have changed.

Dates are wrong after a clock was set back. A manifest records the checksums of a result's inputs. At the end of a
call, the inputs of all finished results are compared with them. A result whose inputs have changed or are missing is
reported with the rules that make it again. No later stage reads a final result, such as a submission, so a final
result that was altered or belongs to another experiment is reported here, too.
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
"""Tolerated difference, in seconds, between the clocks of machines that share a file system."""
OTHER_CONTENT = "was made from other content"


def watch_stale_results(workflow: Any, dry_run: bool) -> None:
    """Report stale results at the end of this call; a real run with results of other inputs ends with status 1."""
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
    """Print a line for outdated results with up-to-date dates, and one for dates ahead of the clock.

    Return True if a result was altered, or made from inputs with other content.
    """
    try:
        dag = workflow.dag
        finished = set(dag.jobs) - set(dag.needrun_jobs(exclude_finished=False))
    except Exception:  # without a plan, Snakemake has reported the reason
        return False
    lines = list(stale_lines(sorted(finished, key=lambda job: [str(output) for output in job.output])))
    for line in lines:
        print(f"warning: {line.text}", file=sys.stderr)
    return any(line.is_wrong for line in lines)


class StaleLine(NamedTuple):
    """A warning, and whether results are certainly wrong: missing inputs may have been removed on purpose."""

    text: str
    is_wrong: bool


def stale_lines(finished: Iterable[Any]) -> Iterator[StaleLine]:
    """Yield the lines for jobs that Snakemake did not run."""
    stale: dict[str, str] = {}
    has_other_content = False
    altered: list[str] = []
    ahead: dict[str, tuple[float, str]] = {}
    digest_of, now = cache(sha256_file), time.time()
    for job in finished:
        # Other rules link the results of stages at other places.
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
        text = f"wrongly taken for up to date: {first}{more}; to make it again: the same command with --forcerun"
        yield StaleLine(f"{text} {' '.join(stale)}", has_other_content)
    elif ahead:
        seconds, path = next(iter(ahead.values()))
        yield StaleLine(
            f"{path} is dated {rough_duration(seconds)} ahead of this machine's clock; Snakemake compares dates, so it "
            "may take such files for up to date when they are not; to make them again: the same command with "
            f"--forcerun {' '.join(ahead)}",
            False,
        )


def _verified_difference(output: Path, digest_of: Callable[[Path], str]) -> str:
    """Return the difference between a result and its inputs, as `_difference` does; empty for views.

    Raises ManifestError for an altered manifest or view, and for one of another experiment.
    """
    if output.name == MANIFEST:
        return _difference(read_manifest(output), digest_of)
    if checksums_of(output).is_file() and output != checksums_of(output):
        verified_view(output)
    return ""


def _difference(made: Manifest, digest_of: Callable[[Path], str]) -> str:
    """Return how the recorded inputs of a result differ from the present files; empty if equal or not recorded."""
    try:
        # The recorded paths are compared, because Snakemake's inputs of the job may represent other files: the manifest
        # of a job represents the tasks that the job fine-tuned.
        for name, path in volatile_facts(made.path)["inputs"].items():
            if not Path(path).is_file():
                return f"was made from {path}, which is gone"
            recorded = made.inputs[name]
            if recorded != digest_of(Path(path)) and recorded != digest_read(made.settings, name, Path(path)):
                return f"{OTHER_CONTENT} of its input {name!r} than there is now"
    except (OSError, ValueError, KeyError, TypeError, HatcheryError):
        pass
    return ""
