"""The stages `finetune`, one pretrained model on one task over seeds and learning rates, and `finetune_tasks`.

`finetune` writes results.csv (one row per scored set, run and metric, values as fractions), predictions.parquet,
breakdown.csv where rows have facts, layer_weights.csv for probes, and the manifest. A run that collapsed is named in
the column `failed`, never dropped.

`finetune_tasks` takes several tasks in turn, in one process: starting one costs seconds, and with tiny models and few
rows more than the work. Every task keeps its own folder and manifest, exactly as `finetune` writes them; one whose
manifest already vouches for the same settings and inputs is left as it is, so nothing is computed twice when another
task of the job changes or fails.
"""

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import sha256_file
from hatchery.artifacts.manifests import MANIFEST, StageRun, input_digests, is_forced, is_made_from
from hatchery.errors import ConfigError, EvaluationError, HatcheryError
from hatchery.evaluation.finetuning.batches import EncodedData
from hatchery.evaluation.finetuning.run import train_run
from hatchery.evaluation.finetuning.run_results import (
    RunStore,
    breakdown_csv,
    layer_weights_csv,
    results_csv,
    runs_identity,
    write_predictions,
)
from hatchery.evaluation.finetuning.settings import FinetuneRuntime, FinetuneSettings
from hatchery.evaluation.finetuning.task_data import EncodedTask, encode_task, measures
from hatchery.evaluation.probing.encoding import EncodedSpans
from hatchery.evaluation.probing.frozen_layers import FrozenLayers, can_be_kept
from hatchery.evaluation.runtime import load_encoder, prepare_device
from hatchery.evaluation.tasks.task_rows import check_task
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.registry import ProbeOptions
from hatchery.runner import Job, Place, inputs_of, run_stage, stage
from hatchery.typed import build
from hatchery.vocabulary.word_lists import read_vocabulary


@stage(keep=True, source="source {}")
def finetune(
    job: Job,
    settings: FinetuneSettings,
    runtime: FinetuneRuntime,
    model: Path,
    source: Mapping[str, Path],
    vocabulary: Path | None,
    checkpoints: Place,
    run: StageRun,
) -> None:
    """Fine-tune the model of a pretraining manifest on the task of a source manifest.

    `source` are the source manifests of the task and of the tasks it is transferred to, by their names; `vocabulary`
    is the manifest of a built vocabulary, for tasks that keep only rows within one. Runs that are finished already, by
    a killed attempt or for other seeds and rates beside theirs, are taken from `checkpoints`. Raises EvaluationError
    for wrong data (file and line), ConfigError for wrong settings, and the errors of the model, tokenizer and source
    loaders.
    """
    for task_settings in (settings.task, *settings.transfer):
        check_task(task_settings)
    store = RunStore(checkpoints, runs_identity(job.settings, input_digests(job.inputs)))
    started = time.monotonic()
    device = prepare_device(runtime.device, runtime.threads)
    encoder, tokenizer = load_encoder(model)
    longest, asked = encoder.longest_input, settings.protocol.max_length
    if longest is not None and asked > longest:
        raise EvaluationError(f"{model}: max_length: got {asked}, expected at most {longest}, its longest input")
    words = None if vocabulary is None else read_vocabulary(vocabulary)
    task = encode_task(settings, source, words, tokenizer)
    run.measures |= measures(task)
    encoder = encoder.to(device)
    planned = [(seed, rate) for seed in settings.protocol.seeds for rate in settings.protocol.learning_rates]
    finished = {} if is_forced() else store.load(planned)
    resumed = len(finished)
    if resumed < len(planned):
        task = with_frozen_layers(settings, task, encoder, runtime.frozen_layers_mib, device)
    for seed, rate in planned:
        if (seed, rate) not in finished:
            finished[seed, rate] = train_run(settings, task, encoder, seed, rate, device)
            store.save(finished[seed, rate])
    results = [finished[key] for key in planned]
    write_text(run.add_output(run.folder / "results.csv"), results_csv(task.sets, results))
    write_predictions(run.add_output(run.folder / "predictions.parquet"), task.sets, results)
    if any(scored.task.facts for scored in task.sets):
        write_text(run.add_output(run.folder / "breakdown.csv"), breakdown_csv(task.sets, results))
    if settings.task.head.kind == "span_classification":
        write_text(run.add_output(run.folder / "layer_weights.csv"), layer_weights_csv(results))
    run.measures |= {
        "development_rows": results[0].n_development,
        "failed_runs": sum(bool(result.failed) for result in results),
    }
    run.volatile |= {
        "runs_resumed": resumed,
        "seconds_per_run": round((time.monotonic() - started) / max(1, len(results) - resumed), 3),
        "device": str(device),
        "threads": torch.get_num_threads(),
    }


def with_frozen_layers(
    settings: FinetuneSettings, task: EncodedTask, encoder: Encoder, mib: int, device: torch.device
) -> EncodedTask:
    """The task with the layers of a frozen encoder in place of its ids, computed once for all runs; else as it is."""
    head = settings.task.head
    if mib == 0 or not can_be_kept(head):
        return task
    options = build(ProbeOptions, head.options, f"head.{head.kind}")
    layers = FrozenLayers(encoder, options.layer_reading, mib, device)

    def wrapped(data: EncodedData) -> EncodedData:
        return layers.wrap(data) if isinstance(data, EncodedSpans) else data

    train = replace(task.train, data=wrapped(task.train.data))
    return replace(task, train=train, sets=tuple(replace(found, data=wrapped(found.data)) for found in task.sets))


@stage(source="source {}", vocabulary="vocabulary {}")
def finetune_tasks(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    model: Path,
    source: Mapping[str, Path],
    vocabulary: Mapping[str, Path],
    checkpoints: Place,
    results: Place,
    folder: Mapping[str, Place],
    run: StageRun,
) -> None:
    """Fine-tune the model on every task of `settings["tasks"]`, each into its `folder` below `results`.

    `settings["tasks"]` maps names of tasks to settings of the stage `finetune`. `source` are the source manifests of
    all tasks and of those that models are transferred to; `vocabulary` are manifests by task. A task that fails does
    not stop the others. Raises EvaluationError in the end with the first message and the names of all that failed, and
    ConfigError for a task without a source.
    """
    tasks: Mapping[str, Mapping[str, Any]] = settings["tasks"]
    given = {name: _inputs_of(name, task, model, source, vocabulary) for name, task in tasks.items()}
    errors: dict[str, HatcheryError] = {}
    reused = 0
    for name, task in tasks.items():
        manifest = results / folder[name] / MANIFEST
        if is_made_from(manifest, task, inputs_of(finetune, given[name])):
            reused += 1
            continue
        try:
            run_stage(finetune, task, manifest, runtime=runtime, checkpoints=checkpoints, **given[name])
        except HatcheryError as error:
            print(f"{name}: {error}", file=sys.stderr)
            errors[name] = error
    if errors:
        failed, first = ", ".join(errors), next(iter(errors.values()))
        raise EvaluationError(f"{len(errors)} of {len(tasks)} tasks failed ({failed}); the first: {first}")
    run.measures["tasks"] = {name: sha256_file(results / folder[name] / MANIFEST) for name in tasks}
    run.volatile["tasks_reused"] = reused


def _inputs_of(
    name: str,
    task: Mapping[str, Any],
    model: Path,
    sources: Mapping[str, Path],
    vocabularies: Mapping[str, Path],
) -> dict[str, Any]:
    """What `finetune` is given for one of the tasks."""
    names = [name, *(other["name"] for other in task["transfer"])]
    missing = [other for other in names if other not in sources]
    if missing:
        raise ConfigError(f"the command line: --source {missing[0]}=PATH is missing, which the task {name!r} needs")
    source = {other: sources[other] for other in names}
    return {"model": model, "source": source, "vocabulary": vocabularies.get(name)}
