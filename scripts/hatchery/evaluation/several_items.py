"""Run a stage for several items (suites or tasks of one model), one after another, in one process.

Starting a process takes seconds, which is longer than the evaluation of a tiny model on few rows. Every item has its
own folder and manifest, exactly as if the stage ran alone. If an item's manifest shows that the item was already
evaluated with the current settings and inputs, the item is skipped. So if one item changes or fails, the next run of
the job does not compute the other items again.
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
    """Run `stage` once for each item, with the item's settings (`items`), inputs (`inputs`) and folder (`folders`).

    `what` is the plural noun for the items ("suites", "tasks") in messages and as a key of the job's manifest; `given`
    are arguments of the stage that all items share. If an item fails, the other items still run. At the end,
    EvaluationError is raised with the first error message and the names of all failed items.
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
