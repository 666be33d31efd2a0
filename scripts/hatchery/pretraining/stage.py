"""The `pretrain` stage: from token shards to an exported model, in one process or many.

The run folder lies under `--checkpoints` and is named by the digest of the settings and the input manifests, so a
killed run is found again and a changed one is not. It is removed only after the export is complete: from then on the
manifest is the result, and a run that starts anew must not pick up the finished state of an older one.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch.distributed

from hatchery.errors import ConfigError
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import model_config, with_token_ids
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.language_model import LanguageModel, build_language_model
from hatchery.modeling.layer_weighting import layer_weight_table
from hatchery.modeling.store import save_model
from hatchery.pretraining.batches import TrainingBatches
from hatchery.pretraining.continuation import (
    check_initial_config,
    check_initial_model,
    initial_checkpoint,
    initial_measures,
    keep_training_state,
    load_initial_,
)
from hatchery.pretraining.data_order import training_phases
from hatchery.pretraining.development import DevelopmentSet
from hatchery.pretraining.divergences import PROBED_SEQUENCES, DivergenceProbe, unigram_of_run
from hatchery.pretraining.early_stopping import EarlyStopping
from hatchery.pretraining.engine import Engine
from hatchery.pretraining.examples import TRAINING_SPLIT, development_examples, examples_maker
from hatchery.pretraining.loader import BatchLoader
from hatchery.pretraining.loop import train
from hatchery.pretraining.output_bias import prepare_output_
from hatchery.pretraining.parameter_groups import build_optimizer
from hatchery.pretraining.precision import resolve_precision
from hatchery.pretraining.processes import (
    COLLECTIVE_TIMEOUT,
    hear,
    meet,
    named_in_errors,
    prepare_device,
    process_group,
    select_device,
    tell,
)
from hatchery.pretraining.record import RunRecord
from hatchery.pretraining.settings import PretrainSettings, RuntimeSettings, pretrain_settings, runtime_settings
from hatchery.pretraining.topology import Topology, read_topology
from hatchery.runs.checkpoints import checkpoint_folder, checkpoint_step, load_model, verify_checkpoint
from hatchery.runs.folder import locked_run_folder, remove_run_folder
from hatchery.runs.interruption import Deadline
from hatchery.runs.lease import Owner, RunLease
from hatchery.storage.atomic import write_bytes, write_json, write_text
from hatchery.storage.checksums import digest
from hatchery.storage.manifests import StageRun, is_made_from, read_manifest, stage_run, take_finished
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.token_reader import TokenShards

# Where TensorBoard and trackio write, beside the model.
SINKS_FOLDER = "sinks"
# How long several processes wait for a run folder that another run of theirs still owns: enough for it to finish its
# step and save a checkpoint, which it is asked for.
PATIENCE = timedelta(minutes=10)
# What the first process tells the others once it owns the run folder.
TRAIN, FINISHED = "train", "finished"


@dataclass(frozen=True)
class Inputs:
    """The manifests that a run reads."""

    tokens: Path
    tokenizer: Path
    # The model that training starts from, if not from random weights.
    initial: Path | None = None

    @property
    def by_name(self) -> dict[str, Path]:
        """The manifests by the names that the exported model's manifest gives them."""
        named = {"tokens": self.tokens, "tokenizer": self.tokenizer}
        return named if self.initial is None else {**named, "initial_model": self.initial}


@dataclass(frozen=True)
class Trained:
    """What a run ends with in each process."""

    model: LanguageModel
    record: RunRecord
    # Norms and divergences of the output layer at step 0, where the settings ask for them.
    output_layer: dict[str, Any]
    # How long the training stood still for batches.
    loader_wait_seconds: float = 0.0
    # None where the run has to do all its steps.
    stopping: EarlyStopping | None = None


def pretrain(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    tokens: Path,
    tokenizer: Path,
    checkpoints: Path,
    output: Path,
    initial: Path | None = None,
    name: str = "",
) -> None:
    """Train (or with 0 steps only initialise) a masked language model and export it beside the manifest `output`.

    `initial` is the manifest of the model to start from, where the settings ask for one. Only the first process writes.
    Progress and sinks call the run `name`, by default as its folder. Raises ConfigError for impossible settings,
    ManifestError and TokenizationError for unusable inputs, TrainingError when training cannot go on, and
    TrainingInterrupted after SIGTERM or Ctrl-C.
    """
    typed = pretrain_settings(settings)
    options = runtime_settings(runtime, typed.optimizer.name)
    inputs = Inputs(tokens, tokenizer, initial)
    _check_inputs(inputs)
    check_initial_model(typed, initial, tokenizer)
    if initial is not None:
        # Before a folder of the run is made.
        shards = TokenShards.open(tokens, TRAINING_SPLIT)
        check_initial_config(_model_config(typed, shards.vocabulary_size, shards.special), initial)
    topology = read_topology(os.environ)
    identity = {"settings": dict(settings), "inputs": [read_manifest(path).digest for path in inputs.by_name.values()]}
    folder = checkpoints / digest(identity)
    with named_in_errors(topology):
        _pretrain_in_folder(typed, options, inputs, topology, folder, output, settings, name or output.parent.name)


def _pretrain_in_folder(
    typed: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    folder: Path,
    output: Path,
    settings: Mapping[str, Any],
    name: str,
) -> None:
    store = meet(topology)
    if not topology.is_first:
        if hear(store, PATIENCE + COLLECTIVE_TIMEOUT) == TRAIN:
            _train(typed, options, inputs, topology, store, folder, output, name)
        return
    # Processes that wait hold GPUs of a cluster, so there is an end to it; one alone takes little by waiting.
    patience = None if topology.world_size == 1 else PATIENCE.total_seconds()
    with locked_run_folder(folder, Owner.here(output), patience) as lease:
        met = lease.waited and is_made_from(output, settings, inputs.by_name)
        if met:
            print(f"{output}: finished by the process that was waited for", file=sys.stderr, flush=True)
        # Or by one whose end nobody noted, because Snakemake or the daemon of Slurm was killed.
        if met or take_finished(output, settings, inputs.by_name):
            tell(store, FINISHED, topology)
            return
        tell(store, TRAIN, topology)
        with stage_run(output, settings, inputs.by_name, keep=True) as run:
            trained = _train(typed, options, inputs, topology, store, folder, output, name, lease)
            lease.verify()
            _export(run, typed, trained, inputs, output.parent)
        remove_run_folder(folder)


def build_model(settings: PretrainSettings, vocabulary_size: int, special: SpecialTokens) -> LanguageModel:
    """The model of a run with its initial weights, which depend on the seed alone."""
    model = build_language_model(_model_config(settings, vocabulary_size, special))
    initialise_(model, settings.seed)
    return model


def _model_config(settings: PretrainSettings, vocabulary_size: int, special: SpecialTokens) -> ModelConfig:
    values = {**settings.model_values, "vocab_size": vocabulary_size}
    return model_config(with_token_ids(values, special), "pretrain.model")


def _train(
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    store: torch.distributed.Store,
    folder: Path,
    output: Path,
    name: str,
    lease: RunLease | None = None,
) -> Trained:
    shards = TokenShards.open(inputs.tokens, TRAINING_SPLIT)
    model = build_model(settings, shards.vocabulary_size, shards.special)
    if inputs.initial is not None:
        load_initial_(model, inputs.initial)
    examples_of_length = examples_maker(shards, settings.objective)
    first_examples = partial(examples_of_length, settings.sequence_length)
    show = topology.is_first
    # Before the checkpoint is read: a resumed run keeps the bias that it has learned.
    start = prepare_output_(model, settings.output_bias, first_examples, shards, settings.seed, show)
    device = select_device(options.device, topology)
    precision = resolve_precision(settings.precision, device)
    sinks = output.parent / SINKS_FOLDER
    record = RunRecord(folder, topology, settings.steps, name, options, device, precision, sinks, lease)
    if settings.steps == 0:
        return Trained(model, record, start)
    # All stop together, so one of them has to know; thousands would ask Slurm's controller at once.
    deadline = None
    if topology.is_first:
        deadline = Deadline.from_environment(os.environ, options.time_limit_minutes, options.grace_seconds)
    prepare_device(device, options.threads)
    loader = BatchLoader(
        TrainingBatches(
            training_phases(settings), settings.seed, topology, options.micro_batch_size, examples_of_length
        ),
        options.workers,
        pin_memory=device.type == "cuda",
    )
    held_out = _development_sets(settings, options, inputs, topology)
    if settings.early_stopping is not None and held_out is None:
        raise ConfigError(
            "pretrain.early_stopping: expected a development split and evaluation_sequences above 0, whose loss "
            "decides when to stop; give the corpus a development_fraction, or set early_stopping to null"
        )
    continued = None
    if settings.initialise_from is not None and settings.initialise_from.take == "training" and inputs.initial:
        continued = initial_checkpoint(inputs.initial)
    probe = None
    if settings.divergences:
        if held_out is None:
            raise ConfigError(
                "pretrain.divergences: got true, expected a development split and evaluation_sequences above 0, "
                "on which they are measured"
            )
        unigram = unigram_of_run(settings.output_bias, first_examples, shards, settings.seed, show)
        probe = DivergenceProbe(held_out.probed.batches, unigram)
    with process_group(topology, device, store):
        model.to(device)
        optimizer = build_optimizer(model, settings.optimizer)
        # Before DeepSpeed, which sends the first process's parameters to all others.
        record.resume(model, optimizer, continued)
        stopping = None
        if settings.early_stopping is not None:
            first_step = checkpoint_step(continued) if continued else 0
            stopping = EarlyStopping(settings.early_stopping, record.rows(), first_step)
        clip = settings.optimizer.max_gradient_norm
        with Engine(model, optimizer, clip, precision, device, topology, options.compile) as engine:
            train(settings, engine, loader, held_out and held_out.scored, record, probe, deadline, stopping)
    record.best.restore_(model)
    return Trained(model, record, start, loader.waited_seconds, stopping)


class HeldOut(NamedTuple):
    """The development sequences that give the loss, and those on which divergences are measured."""

    scored: DevelopmentSet
    probed: DevelopmentSet


def _development_sets(
    settings: PretrainSettings, options: RuntimeSettings, inputs: Inputs, topology: Topology
) -> HeldOut | None:
    examples = development_examples(inputs.tokens, settings)
    if examples is None:
        return None
    share = options.micro_batch_size or -(-settings.batch_size // topology.world_size)
    scored = DevelopmentSet(examples, settings.evaluation_sequences, share, topology)
    if settings.evaluation_sequences <= PROBED_SEQUENCES:
        return HeldOut(scored, scored)
    return HeldOut(scored, DevelopmentSet(examples, PROBED_SEQUENCES, share, topology))


def _export(run: StageRun, settings: PretrainSettings, trained: Trained, inputs: Inputs, folder: Path) -> None:
    model, record = trained.model, trained.record
    tokenizer = read_manifest(inputs.tokenizer).file("tokenizer.json").read_bytes()
    for path in save_model(folder, model):
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
        for path in keep_training_state(record.folder, record.position.step, folder):
            run.add_output(path)
    run.measures["steps"] = record.position.step
    run.measures["tokens"] = record.position.tokens
    run.measures["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    if inputs.initial is not None:
        run.measures["initial_model"] = initial_measures(settings, inputs.initial)
    if trained.stopping is not None:
        run.measures["early_stopping"] = trained.stopping.measures(record.position.step, settings.steps)
    if trained.output_layer:
        run.measures["output_layer"] = trained.output_layer
    # How a machine carried the run out is not its result: what follows stands in no manifest.
    write_text(folder / "speed.jsonl", record.speed_text())
    run.volatile_files.append(folder / "speed.jsonl")
    run.volatile["milestones"] = _export_milestones(trained, tokenizer, folder / "milestones")
    run.volatile["tokens_per_second"] = round(record.tokens_per_second(), 1)
    run.volatile["training_seconds"] = round(record.training_seconds, 3)
    run.volatile["loader_wait_seconds"] = round(trained.loader_wait_seconds, 3)
    run.volatile["resumed_from_step"] = record.resumed_from.step


def _export_milestones(trained: Trained, tokenizer: bytes, folder: Path) -> list[int]:
    """The models of the kept steps in `folder`/step_<number>, each with its tokenizer; returns the steps."""
    shutil.rmtree(folder, ignore_errors=True)
    kept = []
    for step in trained.record.milestones:
        checkpoint = checkpoint_folder(trained.record.folder, step)
        if not checkpoint.is_dir():
            # A milestone that was asked for only after its step had passed.
            print(f"warning: there is no checkpoint of milestone {step}, so no model of it", file=sys.stderr)
            continue
        verify_checkpoint(checkpoint)
        model = build_language_model(trained.model.config)
        load_model(checkpoint, model)
        save_model(folder / checkpoint.name, model)
        write_bytes(folder / checkpoint.name / "tokenizer.json", tokenizer)
        kept.append(step)
    return kept


def _check_inputs(inputs: Inputs) -> None:
    tokens, tokenizer = read_manifest(inputs.tokens), read_manifest(inputs.tokenizer)
    if tokens.inputs.get("tokenizer") != tokenizer.digest:
        raise ConfigError(f"{inputs.tokens}: the shards were encoded with another tokenizer than {inputs.tokenizer}")
    # The file is copied beside the model at the end: what does not belong to the shards must not be found out then.
    tokenizer.verify()
