"""One pretrained model on one task over seeds and learning rates.

It writes results.csv (one row per scored set, run and metric, values as fractions), predictions.parquet,
breakdown.csv where rows have facts, layer_weights.csv for probes, and the manifest. A run that collapsed is named in
the column `failed`, never dropped.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun, input_digests, is_forced
from hatchery.errors import EvaluationError
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
from hatchery.evaluation.tasks.checks import check_task
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.span_classifier import ProbeOptions
from hatchery.runner import Job, Place
from hatchery.typed import build
from hatchery.vocabulary.word_lists import read_vocabulary


def finetune_on_task(
    job: Job,
    settings: FinetuneSettings,
    runtime: FinetuneRuntime,
    model: Path,
    source: Mapping[str, Path],
    vocabulary: Path | None,
    checkpoints: Place,
    run: StageRun,
) -> None:
    """Fine-tune a model on a task; see the stage `finetune`."""
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
