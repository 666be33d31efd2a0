"""Run a stage for several items (suites or tasks of one model) in turn, in one process.

Starting a process takes seconds, longer than the evaluation itself for tiny models and few rows. Every item has its own
folder and manifest, exactly as the stage writes them. An item whose manifest has the same settings and inputs is
skipped, so nothing is computed twice if another item of the job changes or fails.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import MANIFEST, StageRun, is_made_from
from hatchery.errors import EvaluationError, HatcheryError
from hatchery.runner import inputs_of, run_stage
from hatchery.source_parts import digests_read


def run_each(
    stage: Callable[..., None],
    items: Mapping[str, Mapping[str, Any]],
    inputs: Mapping[str, Mapping[str, Any]],
    folders: Mapping[str, Path],
    run: StageRun,
    what: str,
    **given: Any,
) -> None:
    """Run `stage` for every item, with its settings in `items`, its `inputs`, and its folder.

    `what` is the plural of the items in messages and measures; `given` are arguments of the stage that all items share.
    The other items still run if one fails; EvaluationError is then raised at the end with the first message and the
    names of all failed items.
    """
    errors: dict[str, HatcheryError] = {}
    reused = 0
    for name, settings in items.items():
        manifest = folders[name] / MANIFEST
        if is_made_from(manifest, settings, digests_read(settings, inputs_of(stage, inputs[name]))):
            reused += 1
            continue
        try:
            run_stage(stage, settings, manifest, **given, **inputs[name])
        except HatcheryError as error:
            print(f"{name}: {error}", file=sys.stderr)
            errors[name] = error
    if errors:
        failed, first = ", ".join(errors), next(iter(errors.values()))
        raise EvaluationError(f"{len(errors)} of {len(items)} {what} failed ({failed}); the first error: {first}")
    run.measures[what] = {name: sha256_file(folders[name] / MANIFEST) for name in items}
    run.volatile[f"{what}_reused"] = reused
