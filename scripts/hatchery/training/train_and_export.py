"""Train a model on token shards and export it, in one process or several.

The folder of unfinished runs, `--checkpoints`, contains a folder for each run. The name of this folder is the digest of
the run's settings and input manifests. So a killed run finds its folder again, and a run with changed settings gets a
new folder. The run's folder is removed after the export, because a later run must not resume from the state of a
finished run.
"""

import copy
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from hatchery.artifacts.atomic import write_bytes, write_json, write_text
from hatchery.artifacts.manifests import StageRun, input_digests, is_made_from, read_manifest, reuse_complete, stage_run
from hatchery.corpora.word_counting import WHITE_SPACE, word_count_of
from hatchery.errors import ConfigError
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.layer_weighting import layer_weight_table
from hatchery.modeling.store import save_model
from hatchery.runner import Job, verify_inputs
from hatchery.tokenization.documents import TRAINING_SPLIT
from hatchery.training.checkpoints import checkpoint_folder, verify_checkpoint
from hatchery.training.continuation import (
    RAW_WEIGHTS_FOLDER,
    check_initial_config,
    check_initial_model,
    initial_measures,
    keep_training_state,
    milestone_folder,
    words_before,
)
from hatchery.training.distillation import check_teachers, teacher_configurations
from hatchery.training.ensemble import check_ensembles, save_members
from hatchery.training.inputs import Inputs
from hatchery.training.milestones import MILESTONES_FOLDER, step_name
from hatchery.training.objectives import objective_of
from hatchery.training.own_model import OwnModel, save_own_model
from hatchery.training.processes import (
    COLLECTIVE_TIMEOUT,
    announce,
    await_announcement,
    named_in_errors,
    rendezvous,
)
from hatchery.training.run import Trained, spent_budget, train_run
from hatchery.training.run_folder import Owner, locked_run_folder, remove_run_folder, run_folder_name
from hatchery.training.run_parts import NOTHING_GIVEN, Given, run_config
from hatchery.training.runtime_settings import RuntimeSettings, runtime_settings
from hatchery.training.settings import PretrainSettings
from hatchery.training.time_budget import timed_budget
from hatchery.training.topology import Topology, read_topology
from hatchery.training.weight_average import load_evaluated_model
from hatchery.training.word_budget import Spending, read_spending, write_spending

# Maximum time that several processes wait for a run folder owned by another process of the same run: enough time for
# the owner to finish its step and save a checkpoint.
PATIENCE = timedelta(minutes=10)
# Messages of the first process, which owns the run folder, to the other processes.
TRAIN, FINISHED = "train", "finished"


def train_and_export(
    job: Job,
    settings: PretrainSettings,
    runtime: Mapping[str, Any],
    inputs: Inputs,
    checkpoints: Path,
    name: str,
    given: Given = NOTHING_GIVEN,
) -> None:
    """Train a language model, and export it next to the manifest of `job`. With 0 steps, the model is only initialised.

    Only the first process writes files. `name` is the run's name in progress lines and sinks; an empty name uses the
    output folder's name. Raises ConfigError for impossible settings, ManifestError and TokenizationError for unusable
    inputs, TrainingError if training cannot continue, and TrainingInterrupted after a request to stop.
    """
    options = runtime_settings(runtime, settings)
    if (inputs.counts is not None) != (settings.output_bias.counts == "larger_corpus"):
        wanted = settings.output_bias.counts
        raise ConfigError(
            f"counts: got {inputs.counts}, but `pretraining.output_bias.counts` is {wanted}; expected token shards if "
            "this setting is `larger_corpus`, and None for any other value of this setting"
        )
    _check_inputs(inputs)
    check_ensembles(settings.ensemble, inputs)
    check_initial_model(settings, inputs.initial, inputs.tokenizer)
    if inputs.initial is not None:
        # Check before the creation of the run folder, so that a mismatch leaves no folder.
        shards = objective_of(settings.objective).open(inputs.tokens, TRAINING_SPLIT)
        config = run_config(settings, shards.vocabulary_size, shards.special)
        check_initial_config(config, settings.objective.causal, inputs.initial)
    check_teachers(settings, inputs)
    topology = read_topology(os.environ)
    folder = checkpoints / run_folder_name(job.settings, input_digests(inputs.by_name))
    with named_in_errors(topology):
        _pretrain_in_folder(job, settings, options, inputs, topology, folder, name or job.output.parent.name, given)


def _pretrain_in_folder(
    job: Job,
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    folder: Path,
    name: str,
    given: Given,
) -> None:
    store, output = rendezvous(topology), job.output
    if not topology.is_first:
        if await_announcement(store, PATIENCE + COLLECTIVE_TIMEOUT) == TRAIN:
            spending = read_spending(folder)
            planned, steps_to_keep = with_planned_steps(settings, spending), checkpoint_steps(spending)
            train_run(planned, options, inputs, topology, store, folder, output, name, None, steps_to_keep, given)
        return
    # Several processes wait only a limited time for the run folder, because they hold a cluster's GPUs. A single
    # process waits without limit.
    patience = None if topology.world_size == 1 else PATIENCE.total_seconds()
    with locked_run_folder(folder, Owner.of_this_process(output), patience) as lease:
        is_finished = lease.waited and is_made_from(output, job.settings, job.digests)
        if is_finished:
            finished = f"{output}: another process, which owned the run folder, has finished this training"
            print(finished, file=sys.stderr, flush=True)
        # The run may be finished without a record of its end, if Snakemake or Slurm's daemon was killed.
        if is_finished or reuse_complete(output, job.settings, job.digests):
            announce(store, FINISHED, topology)
            # Checkpoints remain if a process was killed after its export, before it removed its run folder.
            remove_run_folder(folder)
            return
        spending = read_spending(folder)
        if settings.budget is not None and spending is None:
            if settings.words_budget is None:
                spending = timed_budget(settings, options, inputs, topology, name, given)
            else:
                spending = spent_budget(settings, inputs)
            write_spending(folder, spending)
        if spending is not None:
            seen = f"; the model will then have seen {spending.words_seen:,} words" if spending.words_seen else ""
            planned_steps = f"the `budget` allows {spending.steps:,} steps{seen}"
            print(f"{name}: {planned_steps}", file=sys.stderr, flush=True)
        announce(store, TRAIN, topology)
        with stage_run(output, job.settings, job.inputs, keep=True) as run:
            planned = with_planned_steps(settings, spending)
            steps_to_keep = checkpoint_steps(spending)
            trained = train_run(
                planned, options, inputs, topology, store, folder, output, name, lease, steps_to_keep, given
            )
            lease.verify()
            _export(run, planned, trained, inputs, output.parent, spending)
            # Verify the inputs here, before the manifest is written: the stage runner verifies inputs only after the
            # manifest is written.
            verify_inputs(inputs.by_name.values())
        remove_run_folder(folder)


def with_planned_steps(settings: PretrainSettings, spending: Spending | None) -> PretrainSettings:
    """Return the settings with the number of steps that spend the run's budget, `spending.steps`; unchanged settings if
    `spending` is None (no budget).
    """
    return settings if spending is None else settings.with_steps(spending.steps)


def checkpoint_steps(spending: Spending | None) -> frozenset[int]:
    """Return the steps after which the checkpoints of word milestones are saved; empty if `spending` is None."""
    return frozenset() if spending is None else spending.kept_steps


def _export(
    run: StageRun,
    settings: PretrainSettings,
    trained: Trained,
    inputs: Inputs,
    folder: Path,
    spending: Spending | None,
) -> None:
    model, record = trained.model, trained.record
    tokenizer = read_manifest(inputs.tokenizer).file("tokenizer.json").read_bytes()
    for path in _save(folder, model):
        run.add_output(path)
    write_bytes(folder / "tokenizer.json", tokenizer)
    write_text(folder / "metrics.jsonl", record.metrics_text())
    names = ["tokenizer.json", "metrics.jsonl"]
    weights = layer_weight_table(model)
    if weights:
        write_json(folder / "layer_weights.json", {"rows": [row._asdict() for row in weights]})
        names.append("layer_weights.json")
    for name in names:
        run.add_output(folder / name)
    if settings.keep_training_state and settings.steps:
        for path in keep_training_state(record.checkpoints.folder, record.position.step, folder):
            run.add_output(path)
    if trained.raw_weights:
        model.load_state_dict(trained.raw_weights)
        for path in _save(folder / RAW_WEIGHTS_FOLDER, model):
            run.add_output(path)
    run.measures["steps"] = record.position.step
    run.measures["tokens"] = record.position.tokens
    if record.position.words is not None:
        run.measures["words"] = record.position.words
        rule = word_count_of(read_manifest(inputs.tokens).measures)
        if rule != WHITE_SPACE:
            run.measures["word_count"] = rule
        if inputs.initial is not None:
            before = words_before(settings, inputs.initial)
            run.measures["words_seen"] = None if before is None else before + record.position.words
    if spending is not None:
        run.measures["planned_steps"] = spending.steps
        run.measures["marks"] = {name: asdict(mark) for name, mark in spending.marks.items()}
    run.measures["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    if trained.examples:
        run.measures["examples"] = dict(trained.examples)
    if inputs.initial is not None:
        run.measures["initial_model"] = initial_measures(settings, inputs.initial)
    if settings.learns_from_teachers:
        run.measures["teachers"] = teacher_configurations(inputs)
    if trained.stopping is not None:
        run.measures["early_stopping"] = trained.stopping.measures(record.position.step, settings.steps)
    if trained.output_layer:
        run.measures["output_layer"] = trained.output_layer
    # The manifest lists no checksum of the speed file, because speed depends on the machine.
    write_text(folder / "speed.jsonl", record.speed_text())
    run.volatile_files.append(folder / "speed.jsonl")
    marks = {} if spending is None else {name: mark.step for name, mark in spending.marks.items()}
    run.volatile["milestones"] = _export_milestones(trained, marks, tokenizer, folder / MILESTONES_FOLDER)
    for milestone in (*map(step_name, settings.milestones), *marks):
        # The manifest lists these milestones, because other runs may start from them. If the run ended early, later
        # milestones do not exist.
        for path in sorted(milestone_folder(folder, milestone).glob("*")):
            run.add_output(path)
    run.volatile["compile"] = trained.compilation
    run.volatile["tokens_per_second"] = round(record.tokens_per_second(), 1)
    run.volatile["training_seconds"] = round(record.training_seconds(), 3)
    run.volatile["loader_wait_seconds"] = round(trained.loader_wait_seconds, 3)
    run.volatile["resumed_from_step"] = record.resumed_from.step
    if settings.ensemble:
        save_members(run, folder, inputs.members)


def _export_milestones(trained: Trained, marks: Mapping[str, int], tokenizer: bytes, folder: Path) -> list[int]:
    """Export the models of the milestones from their checkpoints, each with its tokenizer, into `folder`; return the
    steps of the exported models.

    `marks` maps names of word milestones to steps; all other milestones are exported as step_<number>. Two word
    milestones may have the same step.
    """
    shutil.rmtree(folder, ignore_errors=True)
    by_step = {step_name(step): step for step in trained.record.checkpoints.milestones if step not in marks.values()}
    kept = []
    for name, step in {**by_step, **marks}.items():
        checkpoint = checkpoint_folder(trained.record.checkpoints.folder, step)
        if not checkpoint.is_dir():
            # Skip a milestone without a file: it was added to the settings after the run had passed its step, or the
            # run ended before this step.
            print(
                f"warning: milestone {name}: the checkpoint is missing, so the model of this milestone is not exported",
                file=sys.stderr,
            )
            continue
        verify_checkpoint(checkpoint)
        model = copy.deepcopy(trained.model).to("cpu")
        load_evaluated_model(checkpoint, model)
        _save(folder / name, model)
        write_bytes(folder / name / "tokenizer.json", tokenizer)
        kept.append(step)
    return kept


def _save(folder: Path, model: LanguageModel | OwnModel) -> list[Path]:
    return save_own_model(folder, model) if isinstance(model, OwnModel) else save_model(folder, model)


def _check_inputs(inputs: Inputs) -> None:
    tokens, tokenizer = read_manifest(inputs.tokens), read_manifest(inputs.tokenizer)
    if tokens.inputs.get("tokenizer") != tokenizer.digest:
        raise ConfigError(
            f"{inputs.tokens}: the shards were encoded with another tokenizer than {inputs.tokenizer}; encode the "
            "corpus with this tokenizer"
        )
