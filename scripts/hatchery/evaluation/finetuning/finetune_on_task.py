"""Fine-tune one pretrained model on one task, over seeds and learning rates.

`score` computes the result from a model, a task and settings. The stage `finetune` opens the model and the task, stores
finished runs, and writes the tables. A run whose predictions collapsed stays in the tables; the column `failed` names
the collapse.
"""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from hatchery.artifacts.manifests import StageRun, is_forced
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.draws import derived_seed, generator, hold_out
from hatchery.evaluation.finetuning.batches import EncodedData, NotFiniteError, Predicted, predict
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.finetuning.loop import Development, step_count, train_model
from hatchery.evaluation.finetuning.measurements import RESULTS_FILE, WEIGHTS_FILE
from hatchery.evaluation.finetuning.run_results import (
    PREDICTIONS_FILE,
    RunResult,
    RunStore,
    SetResult,
    breakdown_frame,
    layer_weights_frame,
    predictions_json,
    predictions_of,
    results_frame,
    runs_identity,
)
from hatchery.evaluation.finetuning.scored_sets import ScoredSet
from hatchery.evaluation.finetuning.task_data import EncodedTask, encode_task, measures
from hatchery.evaluation.metrics.scored import metric_called
from hatchery.evaluation.probing.encoding import EncodedSpans
from hatchery.evaluation.probing.frozen_layers import FrozenLayers, can_be_kept
from hatchery.evaluation.runtime import load_encoder, prepare_device
from hatchery.evaluation.scores import Scores, Table
from hatchery.evaluation.tasks.checks import check_task
from hatchery.evaluation.tasks.settings import FinetuneRuntime, FinetuneSettings
from hatchery.evaluation.ways_of_scoring import Edition
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.registry import HEADS, build_task_model, read_pooling
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanClassifier
from hatchery.modeling.heads.task_model import HeadContext, TaskModel
from hatchery.modeling.output_bias import marginal_bias, set_output_bias_
from hatchery.progress import Progress
from hatchery.raw.registration import RawSource, open_source
from hatchery.runner import Job, OutputPath
from hatchery.settings.base import Compilation
from hatchery.training.compilation import chosen_compilation, compile_layers_
from hatchery.typed import build
from hatchery.vocabulary.word_lists import read_vocabulary

FINETUNING_COMPILED_FROM_STEPS = 5000
"""Number of optimiser steps, over all seeds and learning rates, from which compiling saves time (inferred): fine-tuning
steps are so short that a GPU waits for its host, and compiling saves some milliseconds per step."""


def finetune_on_task(
    job: Job,
    settings: FinetuneSettings,
    runtime: FinetuneRuntime,
    model: Path,
    source: Mapping[str, Path],
    vocabulary: Path | None,
    checkpoints: OutputPath,
    run: StageRun,
) -> None:
    """Fine-tune a model on a task; see the stage `finetune`."""
    store = RunStore(checkpoints, runs_identity(job.settings, job.digests))
    device = prepare_device(runtime.device, runtime.threads)
    encoder, tokenizer = load_encoder(model, template=settings.protocol.has_template)
    words = None if vocabulary is None else read_vocabulary(vocabulary)
    sources = {name: open_source(path) for name, path in source.items()}
    task = readable_task(settings, sources, words, encoder, tokenizer, str(model))
    score(encoder.to(device), task, settings, runtime, device, store).write(run)


def evaluate(request: Request) -> Answer:
    """Fine-tune and score a model on a task whose files are the data of `request`. Raises the errors of the stage
    `finetune`."""
    settings = request.built(FinetuneSettings)
    if settings.task.vocabulary is not None:
        raise ConfigError(
            f"{request.name}: the task keeps only rows within a vocabulary, and only the workflow builds "
            "vocabularies; choose another task, or run this task in an experiment"
        )
    encoder, tokenizer = request.model.encoder(settings.protocol.has_template)
    sources = {settings.task.name: request.source()}
    task = readable_task(settings, sources, None, encoder, tokenizer, request.model.where)
    runtime = FinetuneRuntime(device=request.runtime.device)
    return Answer(score(encoder.to(request.device), task, settings, runtime, request.device), settings)


def readable_task(
    settings: FinetuneSettings,
    sources: Mapping[str, RawSource],
    vocabulary: frozenset[str] | None,
    encoder: Encoder,
    tokenizer: TextTokenizer,
    where: str,
) -> EncodedTask:
    """Read and encode a task for a model; `where` names the model in messages.

    Raises ConfigError for conflicting settings, EvaluationError if `max_length` exceeds the model's longest input, and
    the errors of `encode_task`.
    """
    for task_settings in (settings.task, *settings.transfer):
        check_task(task_settings)
    longest, asked = encoder.longest_input, settings.protocol.max_length
    if longest is not None and asked > longest:
        raise EvaluationError(
            f"{where}: max_length: got {asked}, expected at most {longest}, the longest input of the model"
        )
    return encode_task(settings, sources, vocabulary, tokenizer)


def score(
    encoder: Encoder,
    task: EncodedTask,
    settings: FinetuneSettings,
    runtime: FinetuneRuntime,
    device: torch.device,
    store: RunStore | None = None,
) -> Scores:
    """Train and score a model for each seed and learning rate; `encoder`, on `device`, stays unchanged.

    The tables are results.csv (metrics are fractions or correlations) and predictions.parquet. For probes, there is
    also layer_weights.csv. If the task, or another task on which the model is scored, has the setting `facts`, there is
    also breakdown.csv. If `store` is set, finished runs are stored. Stored runs are reused unless the user forces the
    job (`is_forced`). Raises the errors of `train_run`.
    """
    started, facts = time.monotonic(), dict[str, Any](measures(task))
    planned = [(seed, rate) for seed in settings.protocol.seeds for rate in settings.protocol.learning_rates]
    finished = {} if store is None or is_forced() else store.load(planned)
    resumed = len(finished)
    # Steps of runs that an earlier attempt of the job finished are also counted. Every attempt then makes the same
    # choice about compilation.
    steps = len(planned) * step_count(len(task.groups), settings.protocol)
    compilation = chosen_compilation(runtime.compile, device, steps >= FINETUNING_COMPILED_FROM_STEPS)
    if resumed < len(planned):
        task = with_frozen_layers(settings, task, encoder, runtime.frozen_layers_mib, device)
    for seed, rate in planned:
        if (seed, rate) not in finished:
            finished[seed, rate] = train_run(settings, task, encoder, seed, rate, device, compilation)
            if store is not None:
                store.save(finished[seed, rate])
    results = [finished[key] for key in planned]
    tables: dict[str, Table] = {
        RESULTS_FILE: results_frame(task.sets, results),
        "predictions.parquet": predictions_of(task.sets, results),
    }
    texts = {}
    writes = settings.protocol.has_template and settings.protocol.track is None
    predicted = results[0].sets[task.sets[0].name].answers
    # The server's format has one class or choice for each row, but no numbers and no sets of labels.
    if writes and predicted and predicted.predictions.dtype.kind == "i":
        texts[PREDICTIONS_FILE] = predictions_json(settings.task, predicted)
    if any(scored.task.facts for scored in task.sets):
        tables["breakdown.csv"] = breakdown_frame(task.sets, results)
    head = settings.task.head
    if head.kind == "span_classification":
        tables[WEIGHTS_FILE] = layer_weights_frame(results)
    if (pooling := read_pooling(head.kind, encoder, head.options)) is not None:
        facts["pooling"] = pooling
    facts |= {
        "development_rows": results[0].n_development,
        "failed_runs": sum(bool(result.failed) for result in results),
    }
    speed = {
        "runs_resumed": resumed,
        "seconds_per_run": round((time.monotonic() - started) / max(1, len(results) - resumed), 3),
        "device": str(device),
        "compile": compilation,
        "threads": torch.get_num_threads(),
    }
    return Scores(tables, facts, texts, speed)


def with_frozen_layers(
    settings: FinetuneSettings, task: EncodedTask, encoder: Encoder, mib: int, device: torch.device
) -> EncodedTask:
    """In a task on sentences with spans, replace the token ids by the hidden states of a frozen encoder, which are
    computed once for all runs.

    `mib` limits the memory for these states, in MiB. States that do not fit are computed again in every batch. The task
    is returned unchanged if `mib` is 0, or if the head is not a probe on a frozen encoder.
    """
    head = settings.task.head
    if mib == 0 or not can_be_kept(head):
        return task
    options = build(ProbeOptions, head.options, f"head.{head.kind}")
    layers = FrozenLayers(encoder, options.layer_reading, mib, device)

    def wrapped(data: EncodedData) -> EncodedData:
        return layers.wrap(data) if isinstance(data, EncodedSpans) else data

    train = replace(task.train, data=wrapped(task.train.data))
    return replace(task, train=train, sets=tuple(replace(found, data=wrapped(found.data)) for found in task.sets))


def train_run(
    settings: FinetuneSettings,
    task: EncodedTask,
    encoder: Encoder,
    seed: int,
    learning_rate: float,
    device: torch.device,
    compilation: Compilation = "off",
) -> RunResult:
    """Train and score one model; `encoder`, on `device`, stays unchanged. If the run diverges, its result has no
    scores, and no error is raised.

    If `compilation` is "layers", the layers are compiled for training; the runs of a process share the compiled code.
    """
    protocol = settings.protocol
    kept, development_set = split(settings, task, seed)
    train = task.train.data.subset(kept)
    model = make_model(settings, task, encoder, train, seed).to(device)
    if compilation == "layers":
        compile_layers_(model, any_length=True)
    development, n_development = None, 0
    if development_set is not None:
        development = Development(development_set.data, development_value(settings, development_set))
        n_development = len(development_set.data.lengths)
    label = f"{settings.task.name}, seed {seed}, learning rate {learning_rate:g}"
    try:
        with Progress(step_count(len(kept), protocol), label, "steps") as progress:
            trained = train_model(model, train, development, protocol, learning_rate, seed, device, progress.update)
        sets = score_sets(model, task.sets, device, protocol.edition)
    except NotFiniteError:
        failed = {found.name: SetResult(dict.fromkeys(found.task.metrics), "nan", None) for found in task.sets}
        return RunResult(seed, learning_rate, None, None, len(kept), n_development, failed)
    weights = model.layer_weights().tolist() if isinstance(model, SpanClassifier) else []
    best_step, value = trained.best_step, trained.development_value
    return RunResult(seed, learning_rate, best_step, value, len(kept), n_development, sets, weights)


def split(settings: FinetuneSettings, task: EncodedTask, seed: int) -> tuple[list[int], ScoredSet | None]:
    """Return the indices of the training items, and the development data on which the best step is selected.

    The protocol's setting `selection` determines the development data. If it is "held_out", they are training items
    that are held out, drawn with `seed`. If it is "scored", they are all rows of the task's first scored set, including
    rows that enter no metric (docs/papers/babylm-evaluation.md, "Official fine-tuning"). If it is "last", there are no
    development data (None).
    """
    kept, protocol = list(range(len(task.groups))), settings.protocol
    if protocol.selection == "scored":
        return kept, task.sets[0]
    if protocol.selection == "last":
        return kept, None
    random = generator(seed, "development rows")
    kept, held = hold_out(task.groups, protocol.development_fraction, random, settings.task.name)
    return kept, task.train.subset(held)


def development_value(settings: FinetuneSettings, development: ScoredSet) -> Callable[[Predicted], float]:
    """Return the function that computes the selection metric from the predictions for the development data."""
    metric = metric_called(settings.protocol.selection_metric or settings.task.metrics[0])
    # If `official` is true, only the scored rows select the epoch, as in BabyLM's trainer. Otherwise all rows select
    # it.
    all_rows = not settings.protocol.official
    return lambda predicted: metric(development.scored(predicted, all_rows=all_rows))


def make_model(
    settings: FinetuneSettings, task: EncodedTask, encoder: Encoder, train: EncodedData, seed: int
) -> TaskModel:
    """Return the task model before its first step. If the encoder is trained, the task model has a copy of `encoder`,
    because training changes weights in place.

    Raises EvaluationError for a training row whose label is not a label of the task.
    """
    head, protocol = settings.task.head, settings.protocol
    options: Any = build(HEADS[head.kind].options, head.options, f"head.{head.kind}")
    own = copy.deepcopy(encoder) if options.encoder_mode == "trained" else encoder
    keeps = protocol.edition != 2023
    context = HeadContext(task.n_labels, protocol.dropout, derived_seed(seed, "head"), task.pad_id, keeps)
    model = build_task_model(head.kind, own, context, head.options)
    labels = train.labels
    if labels.dtype.kind == "i" and labels.ndim == 1 and labels.min() < 0:
        raise EvaluationError(
            f"{settings.task.name}: a training row has a label that is not among the labels of the task"
        )
    if protocol.output_bias == "prior" and (link := model.target.link) is not None:
        set_output_bias_(model.output_layer, marginal_bias(link, labels, model.output_layer.out_features))
    return model


def score_sets(
    model: TaskModel, sets: Sequence[ScoredSet], device: torch.device, edition: Edition = 2023
) -> dict[str, SetResult]:
    """Return the predictions and metrics of each scored set, by the set's name. Sets with the same rows are predicted
    once. Raises NotFiniteError for a score that is not finite.
    """
    predicted: dict[int, Predicted] = {}
    results = {}
    for scored in sets:
        if id(scored.data) not in predicted:
            predicted[id(scored.data)] = predict(model, scored.data, device, edition)
        answers = scored.answers(predicted[id(scored.data)])
        results[scored.name] = SetResult(dict(scored.values(answers)), scored.failure(answers), answers)
    return results
