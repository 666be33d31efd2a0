"""The stage `finetune`: one pretrained model on one task, repeated over seeds and learning rates.

Writes results.csv (one row per scored set, run and metric, values as fractions), predictions.parquet, breakdown.csv
where rows have facts, layer_weights.csv for probes, and the manifest. A run that collapsed is named in the column
`failed`, never dropped.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hatchery.evaluation.finetuning.data import EncodedData
from hatchery.evaluation.finetuning.outputs import breakdown_csv, layer_weights_csv, results_csv, write_predictions
from hatchery.evaluation.finetuning.run import train_run
from hatchery.evaluation.finetuning.run_results import RunStore, runs_identity
from hatchery.evaluation.finetuning.settings import FinetuneRuntime, FinetuneSettings, finetune_settings
from hatchery.evaluation.finetuning.task_data import EncodedTask, encode_task, measures
from hatchery.evaluation.pretrained import load_pretrained
from hatchery.evaluation.probing.encoding import EncodedSpans
from hatchery.evaluation.probing.frozen_layers import FrozenLayers, can_be_kept
from hatchery.evaluation.runtime import prepare_device
from hatchery.evaluation.tasks.reading import check_task
from hatchery.modeling.heads.registry import ProbeOptions
from hatchery.modeling.layered_encoder import LayeredEncoder
from hatchery.storage.atomic import write_text
from hatchery.storage.manifests import input_digests, is_forced, stage_run, take_finished
from hatchery.typed import build
from hatchery.vocabulary.word_lists import read_vocabulary


def finetune(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    model: Path,
    sources: Mapping[str, Path],
    vocabulary: Path | None,
    checkpoints: Path,
    output: Path,
) -> None:
    """Fine-tune the model of a pretraining manifest on the task of a source manifest; write beside `output`.

    `sources` are the source manifests of the task and of the tasks it is transferred to, by their names; `vocabulary`
    is the manifest of a built vocabulary, for tasks that keep only rows within one. Runs that are finished already, by
    a killed attempt or for other seeds and rates beside theirs, are taken from `checkpoints`. Raises EvaluationError
    for wrong data (file and line), ConfigError for wrong settings, and the errors of the model, tokenizer and source
    loaders.
    """
    typed = finetune_settings(settings)
    for task_settings in (typed.task, *typed.transfer):
        check_task(task_settings)
    options = build(FinetuneRuntime, runtime, "runtime")
    inputs = stage_inputs(model, sources, vocabulary)
    if take_finished(output, settings, inputs):
        return
    store = RunStore(checkpoints, runs_identity(settings, input_digests(inputs)))
    with stage_run(output, settings, inputs, keep=True) as run:
        started = time.monotonic()
        device = prepare_device(options.device, options.threads)
        network, tokenizer = load_pretrained(model)
        words = None if vocabulary is None else read_vocabulary(vocabulary)
        task = encode_task(typed, sources, words, tokenizer)
        run.measures |= measures(task)
        encoder = network.encoder.to(device)
        planned = [(seed, rate) for seed in typed.protocol.seeds for rate in typed.protocol.learning_rates]
        finished = {} if is_forced() else store.load(planned)
        resumed = len(finished)
        if resumed < len(planned):
            task = with_frozen_layers(typed, task, encoder, options.frozen_layers_mib, device)
        for seed, rate in planned:
            if (seed, rate) not in finished:
                finished[seed, rate] = train_run(typed, task, encoder, seed, rate, device)
                store.save(finished[seed, rate])
        results = [finished[key] for key in planned]
        write_text(run.add_output(run.folder / "results.csv"), results_csv(task.sets, results))
        write_predictions(run.add_output(run.folder / "predictions.parquet"), task.sets, results)
        if any(scored.task.facts for scored in task.sets):
            write_text(run.add_output(run.folder / "breakdown.csv"), breakdown_csv(task.sets, results))
        if typed.task.head.kind == "span_classification":
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


def stage_inputs(model: Path, sources: Mapping[str, Path], vocabulary: Path | None) -> dict[str, Path]:
    """The inputs of the stage by the names under which its manifest has them."""
    inputs = {"model": model, **{f"source {name}": path for name, path in sources.items()}}
    return inputs if vocabulary is None else {**inputs, "vocabulary": vocabulary}


def with_frozen_layers(
    settings: FinetuneSettings, task: EncodedTask, encoder: LayeredEncoder, mib: int, device: torch.device
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
