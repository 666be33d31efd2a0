"""What Snakemake takes for up to date although it is not: it goes by dates, and dates lie where a clock was set back.

A manifest says of what content a result was made. That is compared for everything that a call found finished, behind
its end: a result whose inputs are others by now, or gone, is named with the rules that make it anew. Nobody may read a
last result, such as a submission, before it is sent, so that it was altered or belongs to another experiment is
reported here, too.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import checksums_of, sha256_file, verified_view
from hatchery.artifacts.manifests import MANIFEST, read_manifest, volatile_facts
from hatchery.errors import HatcheryError, ManifestError
from hatchery.source_parts import digest_read
from hatchery.units import rough_duration
from hatchery.workflow.registry import STAGES

AHEAD_SECONDS = 300
"""Clocks of machines that share a file system differ by less."""


def tell_stale_results(workflow: Any) -> None:
    """The end of a call: a line for what was taken for up to date and is not, and one for dates ahead of the clock."""
    try:
        dag = workflow.dag
        finished = set(dag.jobs) - set(dag.needrun_jobs(exclude_finished=False))
    except Exception:  # there is no plan, and why was said
        return
    for line in stale_lines(sorted(finished, key=lambda job: [str(output) for output in job.output])):
        print(f"warning: {line}", file=sys.stderr)


def stale_lines(finished: Iterable[Any]) -> Iterator[str]:
    """The lines for jobs of Snakemake that it did not run."""
    stale: dict[str, str] = {}
    altered: list[str] = []
    ahead: dict[str, tuple[float, str]] = {}
    digest_of, now = cache(sha256_file), time.time()
    for job in finished:
        # Other rules show the results of stages at other places.
        for output in map(Path, job.output if job.rule.name in STAGES else ()):
            if not output.is_file():
                continue
            if (seconds := output.stat().st_mtime - now) > AHEAD_SECONDS:
                ahead.setdefault(job.rule.name, (seconds, str(output)))
            try:
                _verify(output)
            except ManifestError as error:
                altered.append(str(error))
                continue
            if output.name == MANIFEST and (found := _difference(output, digest_of)):
                stale.setdefault(job.rule.name, f"{output} {found}")
    if altered:
        more = f" ({len(altered) - 1} more results were altered)" if len(altered) > 1 else ""
        yield f"{altered[0]}{more}"
    if stale:
        first, *others = stale.values()
        more = f" (and results of {len(others)} more rules)" if others else ""
        yield (
            f"not up to date, whatever is said of it: {first}{more}; to make it anew: the same command with "
            f"--forcerun {' '.join(stale)}"
        )
    elif ahead:
        seconds, path = next(iter(ahead.values()))
        yield (
            f"{path} is dated {rough_duration(seconds)} ahead of this machine's clock; Snakemake goes by dates, so it "
            "may take such files for up to date when they are not; to make them anew: the same command with "
            f"--forcerun {' '.join(ahead)}"
        )


def _verify(output: Path) -> None:
    """Raise ManifestError for an altered manifest or view, and for one of another experiment."""
    if output.name == MANIFEST:
        read_manifest(output)
    elif checksums_of(output).is_file() and output != checksums_of(output):
        verified_view(output)


def _difference(manifest: Path, digest_of: Callable[[Path], str]) -> str:
    """How what a manifest was made from differs from what is there; empty where it does not, or is nobody's to say."""
    try:
        made = json.loads(manifest.read_text(encoding="utf-8"))
        # Where they were read from. What Snakemake calls the job's inputs may stand for others, as the manifest of a
        # job does for the tasks that it fine-tuned.
        for name, path in volatile_facts(manifest)["inputs"].items():
            if not Path(path).is_file():
                return f"was made from {path}, which is gone"
            recorded = made["inputs"][name]
            if recorded != digest_of(Path(path)) and recorded != digest_read(made["settings"], name, Path(path)):
                return f"was made from other content of its input {name!r} than there is now"
    except (OSError, ValueError, KeyError, TypeError, HatcheryError):
        pass
    return ""
