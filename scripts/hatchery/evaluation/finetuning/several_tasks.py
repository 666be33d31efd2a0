"""The stage `finetune_tasks`: one pretrained model on several tasks in turn, in one process.

Starting a process costs seconds, and with tiny models and few rows more than the work. Every task keeps its own folder
and manifest, exactly as the stage `finetune` writes them; one whose manifest already vouches for the same settings and
inputs is left as it is, so nothing is computed twice when another task of the job changes or fails.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hatchery.errors import ConfigError, EvaluationError, HatcheryError
from hatchery.evaluation.finetuning.stage import finetune, stage_inputs
from hatchery.storage.checksums import sha256_file
from hatchery.storage.manifests import MANIFEST, is_made_from, stage_run


def finetune_tasks(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    model: Path,
    sources: Mapping[str, Path],
    vocabularies: Mapping[str, Path],
    checkpoints: Path,
    folders: Mapping[str, Path],
    output: Path,
) -> None:
    """Fine-tune the model on every task of `settings["tasks"]`; write into `folders[task]` for each, then `output`.

    `settings["tasks"]` maps names of tasks to settings of the stage `finetune`. `sources` are the source manifests of
    all tasks and of those that models are transferred to; `vocabularies` are manifests by task. A task that fails does
    not stop the others. Raises EvaluationError in the end with the first message and the names of all that failed, and
    ConfigError for a task without a source.
    """
    tasks: Mapping[str, Mapping[str, Any]] = settings["tasks"]
    chosen = {name: _sources_of(name, task, sources) for name, task in tasks.items()}
    inputs = {"model": model, **{f"source {name}": path for name, path in sources.items()}}
    inputs |= {f"vocabulary {name}": path for name, path in vocabularies.items()}
    with stage_run(output, settings, inputs) as run:
        errors: dict[str, HatcheryError] = {}
        reused = 0
        for name, task in tasks.items():
            manifest = folders[name] / MANIFEST
            own = chosen[name], vocabularies.get(name)
            if is_made_from(manifest, task, stage_inputs(model, *own)):
                reused += 1
                continue
            try:
                finetune(task, runtime, model, *own, checkpoints, manifest)
            except HatcheryError as error:
                print(f"{name}: {error}", file=sys.stderr)
                errors[name] = error
        if errors:
            failed, first = ", ".join(errors), next(iter(errors.values()))
            raise EvaluationError(f"{len(errors)} of {len(tasks)} tasks failed ({failed}); the first: {first}")
        run.measures["tasks"] = {name: sha256_file(folders[name] / MANIFEST) for name in tasks}
        run.volatile["tasks_reused"] = reused


def _sources_of(name: str, task: Mapping[str, Any], sources: Mapping[str, Path]) -> dict[str, Path]:
    names = [name, *(other["name"] for other in task["transfer"])]
    missing = [other for other in names if other not in sources]
    if missing:
        raise ConfigError(f"the command line: --source {missing[0]}=PATH is missing, which the task {name!r} needs")
    return {other: sources[other] for other in names}
