"""The `pretrain` stage: from token shards to an exported model, in one process or many.

The run folder lies under `--checkpoints` and is named by the digest of the settings and the input manifests, so a
killed run is found again and a changed one is not. It is removed only after the export is complete: from then on the
manifest is the result, and a run that starts anew must not pick up the finished state of an older one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hatchery.errors import ConfigError
from hatchery.modeling.families import model_config
from hatchery.modeling.initialisation import initialise_
from hatchery.modeling.layer_weighting import layer_weight_table
from hatchery.modeling.masked_language_model import MaskedLanguageModel
from hatchery.modeling.store import save_model
from hatchery.pretraining.batches import TrainingBatches
from hatchery.pretraining.data_order import training_phases
from hatchery.pretraining.development import DevelopmentSet
from hatchery.pretraining.engine import Engine, resolve_precision
from hatchery.pretraining.examples import TRAINING_SPLIT, development_examples, examples_maker
from hatchery.pretraining.loop import train
from hatchery.pretraining.output_bias import prepare_output_
from hatchery.pretraining.parameter_groups import build_optimizer
from hatchery.pretraining.processes import prepare_device, process_group, select_device
from hatchery.pretraining.record import RunRecord
from hatchery.pretraining.run_folder import locked_run_folder, remove_run_folder
from hatchery.pretraining.settings import PretrainSettings, RuntimeSettings, pretrain_settings, runtime_settings
from hatchery.pretraining.topology import Topology, read_topology
from hatchery.storage.atomic import write_bytes, write_json, write_text
from hatchery.storage.checksums import digest
from hatchery.storage.manifests import StageRun, read_manifest, stage_run
from hatchery.tokenization.token_reader import TokenShards


@dataclass(frozen=True)
class Inputs:
    """The manifests that a run reads."""

    tokens: Path
    tokenizer: Path


@dataclass(frozen=True)
class Trained:
    """What a run ends with in each process."""

    model: MaskedLanguageModel
    record: RunRecord
    # Norms and divergences of the output layer at step 0, where the settings ask for them.
    output_layer: dict[str, Any]


def pretrain(
    settings: Mapping[str, Any],
    runtime: Mapping[str, Any],
    tokens: Path,
    tokenizer: Path,
    checkpoints: Path,
    output: Path,
) -> None:
    """Train (or with 0 steps only initialise) a masked language model and export it beside the manifest `output`.

    Only the first process writes. Raises ConfigError for impossible settings, ManifestError and TokenizationError for
    unusable inputs, TrainingError when training cannot go on, and TrainingInterrupted after SIGTERM or Ctrl-C.
    """
    typed = pretrain_settings(settings)
    options = runtime_settings(runtime, typed.optimizer.name)
    inputs = Inputs(tokens, tokenizer)
    _check_inputs(inputs)
    topology = read_topology(os.environ)
    identity = {"settings": dict(settings), "inputs": [read_manifest(path).digest for path in (tokens, tokenizer)]}
    folder = checkpoints / digest(identity)
    if not topology.is_first:
        _train(typed, options, inputs, topology, folder, output)
        return
    with locked_run_folder(folder):
        with stage_run(output, settings, {"tokens": tokens, "tokenizer": tokenizer}) as run:
            _export(run, _train(typed, options, inputs, topology, folder, output), inputs, output.parent)
        remove_run_folder(folder)


def build_model(settings: PretrainSettings, vocabulary_size: int, pad_id: int) -> MaskedLanguageModel:
    """The model of a run with its initial weights, which depend on the seed alone."""
    values = {
        **settings.model,
        "vocab_size": vocabulary_size,
        "vocabulary_bias": settings.output_bias.kind != "none",
        "sentence_pair_head": settings.objective.sentence_pairs != "none",
    }
    if settings.model.get("family") == "roberta":
        # Its absolute positions count the tokens that are not padding.
        values["pad_token_id"] = pad_id
    model = MaskedLanguageModel(model_config(values, "pretrain.model"))
    initialise_(model, settings.seed)
    return model


def _train(
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    folder: Path,
    output: Path,
) -> Trained:
    shards = TokenShards.open(inputs.tokens, TRAINING_SPLIT)
    model = build_model(settings, shards.vocabulary_size, shards.special.ids[shards.special.pad])
    examples_of_length = examples_maker(shards, settings.objective)
    first_examples = partial(examples_of_length, settings.sequence_length)
    show = topology.is_first
    # Before the checkpoint is read: a resumed run keeps the bias that it has learned.
    start = prepare_output_(model, settings.output_bias, first_examples, shards, settings.seed, show)
    record = RunRecord(folder, topology.is_first, settings.steps, output.parent.name, options)
    if settings.steps == 0:
        return Trained(model, record, start)
    device = select_device(options.device, topology)
    prepare_device(device, options.threads)
    with process_group(topology, device):
        model.to(device)
        optimizer = build_optimizer(model, settings.optimizer)
        # Before DeepSpeed, which sends the first process's parameters to all others.
        record.resume(model, optimizer)
        precision = resolve_precision(settings.precision, device)
        engine = Engine(model, optimizer, settings.optimizer.max_gradient_norm, precision, device, topology)
        phases, size = training_phases(settings), options.micro_batch_size
        batches = TrainingBatches(phases, settings.seed, topology, size, examples_of_length)
        held_out = development_examples(inputs.tokens, settings)
        development = None
        if held_out is not None:
            share = size or -(-settings.batch_size // topology.world_size)
            development = DevelopmentSet(held_out, settings.evaluation_sequences, share, topology)
        train(settings, engine, batches, development, record)
    return Trained(model, record, start)


def _export(run: StageRun, trained: Trained, inputs: Inputs, folder: Path) -> None:
    model, record = trained.model, trained.record
    for path in save_model(folder, model):
        run.add_output(path)
    write_bytes(folder / "tokenizer.json", read_manifest(inputs.tokenizer).file("tokenizer.json").read_bytes())
    write_text(folder / "metrics.jsonl", record.metrics_text())
    names = ["tokenizer.json", "metrics.jsonl"]
    weights = layer_weight_table(model)
    if weights:
        write_json(folder / "layer_weights.json", {"rows": [row._asdict() for row in weights]})
        names.append("layer_weights.json")
    for name in names:
        run.add_output(folder / name)
    run.measures["steps"] = record.position.step
    run.measures["tokens"] = record.position.tokens
    run.measures["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    if trained.output_layer:
        run.measures["output_layer"] = trained.output_layer
    run.volatile["tokens_per_second"] = round(record.tokens_per_second(), 1)
    run.volatile["training_seconds"] = round(record.training_seconds, 3)
    run.volatile["resumed_from_step"] = record.resumed_from.step


def _check_inputs(inputs: Inputs) -> None:
    tokens, tokenizer = read_manifest(inputs.tokens), read_manifest(inputs.tokenizer)
    if tokens.inputs.get("tokenizer") != tokenizer.digest:
        raise ConfigError(f"{inputs.tokens}: the shards were encoded with another tokenizer than {inputs.tokenizer}")
    # The file is copied beside the model at the end: what does not belong to the shards must not be found out then.
    tokenizer.verify()
