"""Outputs that were deleted or cut since they were made: noticed when the workflow is planned, and made again.

Snakemake looks at declared outputs only, and at those in the middle of a finished chain not at all. So every rule gets
an input function that names no input: it compares what the outputs' manifest lists with what is there, by existence
and size, and has the job run again where something is lost. It reads no data, and deletes and writes nothing.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import HatcheryError, MisplacedError
from hatchery.raw.raw_source import FETCHED, open_source
from hatchery.workflow.rules import plainly

SOURCES = Path("resources/sources")


def watch_rules(workflow: Any, leads_elsewhere: Callable[[str], bool]) -> None:
    """Have every rule of a Snakemake workflow run again where its outputs are lost; call it after the last rule.

    `leads_elsewhere` tells an output that is a link to another result than it should be.
    """
    for rule in workflow.rules:
        if rule.output:
            rule.set_input(plainly(_watcher(workflow, rule, leads_elsewhere)))


def _watcher(workflow: Any, rule: Any, leads_elsewhere: Callable[[str], bool]) -> Callable[[Any], list[str]]:
    def nothing(wildcards: Any) -> list[str]:
        outputs = [str(pattern.apply_wildcards(wildcards)) for pattern in rule.output]
        benchmark = rule.benchmark and Path(str(rule.benchmark.apply_wildcards(wildcards)))
        lost = lost_output([Path(path) for path in outputs], was_made=bool(benchmark) and benchmark.is_file())
        if lost is not None and workflow.dag.forcefiles.isdisjoint(outputs):
            print(f"{lost}: gone or cut off since it was made; it is made again", file=sys.stderr)
            workflow.dag.forcefiles.update(outputs)
        elif any(leads_elsewhere(path) for path in outputs):
            workflow.dag.forcefiles.update(outputs)
        return []

    return nothing


def lost_output(outputs: Sequence[Path], was_made: bool) -> Path | None:
    """The first file that is missing or has another size than its manifest says, of a job with these outputs.

    `was_made` says that the job has been done before. A result that is gone with its manifest is not lost: folders are
    deleted on purpose, for example of corpora that nothing needs any more. Raises MisplacedError for a result that lies
    in the folder of another one: what to do is for the user to say.
    """
    manifests = [path for path in outputs if path.name == "manifest.json" or _is_source(path)]
    if not all(path.is_file() for path in manifests) or not (manifests or was_made):
        return None
    missing = (path for path in outputs if not path.is_file())
    return next(missing, None) or next((lost for path in manifests for lost in _lost_files(path)), None)


def _is_source(path: Path) -> bool:
    return path.parent == SOURCES and not path.name.endswith(".location.json")


def _lost_files(manifest: Path) -> Iterable[Path]:
    try:
        if _is_source(manifest):
            source = open_source(manifest)
            # Of other raw files their owner knows whether they are to be there.
            fetched = source.kind == "folder" and (source.root / FETCHED).is_file()
            listed = {source.root / name: size for name, (size, _) in source.files.items()} if fetched else {}
        else:
            listed = {output.path: output.bytes for output in read_manifest(manifest).outputs}
    except MisplacedError:
        raise
    except HatcheryError:
        return [manifest]
    return (path for path, size in listed.items() if not _has_size(path, size))


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.is_file() and path.stat().st_size == size
    except OSError:
        return False
