"""One run in one process: model, examples, batches, optimiser and loop, put together from settings and inputs.

Every process of a run does the same; only the first one has a lease of the run folder and keeps anything.
"""

import math
import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch.distributed
from torch import Tensor

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import model_config, with_token_ids
from hatchery.modeling.language_model import LanguageModel, build_language_model, initialise_
from hatchery.settings.fields import ABSENT
from hatchery.tokenization.documents import TRAINING_SPLIT, watch_shards
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import BatchLoader, TrainingBatches
from hatchery.training.bias_drift import BiasDrift
from hatchery.training.continuation import (
    TOKENIZER_FILE,
    initial_checkpoint,
    initial_position,
    load_initial_,
    words_before,
)
from hatchery.training.development import DevelopmentSet, development_examples, development_tokens_per_byte
from hatchery.training.early_stopping import EarlyStopping
from hatchery.training.engine import Engine
from hatchery.training.interruption import Deadline
from hatchery.training.loop import train
from hatchery.training.objective import Objective
from hatchery.training.objectives import objective_of
from hatchery.training.optimizers import build_optimizer
from hatchery.training.output_divergences import PROBED_SEQUENCES, DivergenceProbe
from hatchery.training.output_prior import larger_corpus_counts, prepare_output_, unigram_of_run
from hatchery.training.precision import Precision, resolve_precision, slow_arithmetic
from hatchery.training.probes import Probe
from hatchery.training.processes import (
    prepare_device,
    process_group,
    select_device,
)
from hatchery.training.record import RunRecord
from hatchery.training.run_folder import RunLease
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import PretrainSettings
from hatchery.training.step_plan import StepPlan
from hatchery.training.topology import Topology
from hatchery.training.weight_average import WeightAverage
from hatchery.training.word_budget import Spending, most_words, spend

if TYPE_CHECKING:
    from hatchery.tokenization.tokenizer_file import Tokenizer

# Where sinks such as TensorBoard write, beside the model.
SINKS_FOLDER = "sinks"


@dataclass(frozen=True)
class Inputs:
    """The manifests that a run reads."""

    tokens: Path
    tokenizer: Path
    # The model that training starts from, if not from random weights.
    initial: Path | None = None
    # Token shards of the corpus in which the bias of the output layer is counted, if not in the run's own.
    counts: Path | None = None

    @property
    def by_name(self) -> dict[str, Path]:
        """The manifests by the names that the exported model's manifest gives them."""
        named = {"tokens": self.tokens, "tokenizer": self.tokenizer}
        more = {"initial_model": self.initial, "counts": self.counts}
        return named | {name: path for name, path in more.items() if path is not None}


def spent_budget(settings: PretrainSettings, inputs: Inputs) -> Spending:
    """In how many steps a run spends its budget, counted in its text. Raises ConfigError where nobody can count."""
    assert settings.budget is not None
    objective = objective_of(settings.objective)
    shards = objective.open(inputs.tokens, TRAINING_SPLIT)
    before = words_before(settings, inputs.initial)
    if not shards.text_words or before is None:
        uncounted = inputs.initial if shards.text_words else inputs.tokens
        raise ConfigError(
            f"pretrain.budget: nobody has counted the words of {uncounted}; make it again, or give `steps`"
        )
    most, first = most_words(settings.budget, shards.text_words, shards.text_bytes), 0
    if settings.initialise_from is not None and settings.initialise_from.take == "training" and inputs.initial:
        done = initial_position(inputs.initial)
        first, before = done.step, before + (done.words or 0)
    return spend(settings, objective, partial(objective.examples, shards), most, before, first)


@dataclass(frozen=True)
class Trained:
    """What a run ends with in each process."""

    model: LanguageModel
    record: RunRecord
    # Norms and divergences of the output layer at step 0, where the settings ask for them.
    output_layer: dict[str, float]
    # What the objective says of the training examples.
    examples: Mapping[str, Any] = field(default_factory=dict)
    # How long the training stood still for batches.
    loader_wait_seconds: float = 0.0
    # None where the run has to do all its steps.
    stopping: EarlyStopping | None = None
    # The weights of the last step, where others are exported and these are to be kept.
    raw_weights: Mapping[str, Tensor] = field(default_factory=dict)


def build_model(settings: PretrainSettings, vocabulary_size: int, special: SpecialTokens) -> LanguageModel:
    """The model of a run with its initial weights, which depend on the seed alone."""
    model = build_language_model(run_config(settings, vocabulary_size, special), settings.objective.causal)
    initialise_(model, settings.seed)
    return model


def run_config(settings: PretrainSettings, vocabulary_size: int, special: SpecialTokens) -> ModelConfig:
    """The configuration of a run's model, for a tokenizer of so many subwords. Raises ConfigError and ModelError."""
    values = {**settings.model_values, "vocab_size": vocabulary_size}
    return model_config(with_token_ids(values, special), "pretrain.model")


def train_run(
    settings: PretrainSettings,
    options: RuntimeSettings,
    inputs: Inputs,
    topology: Topology,
    store: torch.distributed.Store,
    folder: Path,
    output: Path,
    name: str,
    lease: RunLease | None = None,
    kept_steps: Collection[int] = (),
) -> Trained:
    """Train one run in this process, from its inputs to its last step; only the first process writes into `folder`.

    `store` is where the processes find each other, `lease` the right to write into `folder`. Checkpoints of
    `kept_steps`, the marks of a budget, are kept, besides those that the settings name. Raises ConfigError,
    TrainingError, and TrainingInterrupted with a checkpoint saved.
    """
    objective = objective_of(settings.objective)
    shards = objective.open(inputs.tokens, TRAINING_SPLIT)
    model = build_model(settings, shards.vocabulary_size, shards.special)
    if inputs.initial is not None:
        load_initial_(model, inputs.initial, settings.initialise_from.step if settings.initialise_from else None)
    examples_of_length = partial(objective.examples, shards)
    first_examples = partial(examples_of_length, settings.sequence_length)
    show = topology.is_first
    # Before the checkpoint is read: a resumed run keeps the bias that it has learned.
    own_targets = objective.target_counts
    count = own_targets if inputs.counts is None else partial(_larger_counts, inputs)
    start = prepare_output_(model, settings.output_bias, first_examples, shards, settings.seed, show, count)
    device = select_device(options.device, topology)
    precision = resolve_precision(settings.precision, device)
    if show and (slow := slow_arithmetic(precision, device)):
        print(f"{name}: {slow}", file=sys.stderr, flush=True)
    sinks = output.parent / SINKS_FOLDER
    check_inputs = watch_shards(inputs.tokens)
    kept = {*settings.milestones, *kept_steps}
    average = WeightAverage(settings.weight_average) if settings.weight_average else None
    followers = (average,) if average else ()
    record = RunRecord(
        folder, topology, settings.steps, name, options, device, precision, sinks, lease, check_inputs, kept, followers,
        development_tokens_per_byte(inputs.tokens, objective) if show and options.sinks else None,
    )  # fmt: skip
    if shards.text_words is None:
        # Of an earlier version: where words between white space start, these shards do not say.
        record.position = replace(record.position, words=None)
    if settings.steps == 0:
        return Trained(model, record, start)
    # All stop together, so one of them has to know; thousands would ask Slurm's controller at once.
    deadline = None
    if topology.is_first:
        deadline = Deadline.from_environment(os.environ, options.time_limit_minutes, options.grace_seconds)
    _require_sharing(options.zero_stage, precision)
    compiled = record.compilation != "off"
    prepare_device(device, options.threads, compiled)
    plan = StepPlan(settings)
    size = options.micro_batch_size
    batches = TrainingBatches(plan, settings.seed, topology, size, examples_of_length, objective.order)
    examples = batches.examples_at(0)
    smallest = objective.smallest_batch(examples, plan.smallest_batch)
    require_shares(smallest, settings.batch_size, topology.world_size)
    if show:
        epochs = objective.epochs(examples, plan)
        read = f"{settings.steps:,} steps are {epochs:,.2f} epochs of the {len(examples):,} sequences of its text"
        print(f"{name}: {read}", file=sys.stderr, flush=True)
    loader = BatchLoader(batches, options.workers, pin_memory=device.type == "cuda")
    scored, probed = _development_sets(settings, objective, options, inputs, topology)
    if settings.early_stopping is not None and scored is None:
        raise ConfigError(
            "pretrain.early_stopping: expected a development split and evaluation_sequences above 0, whose "
            f"{objective.criterion.name.removeprefix('development ')} decides when to stop; give the corpus a "
            "development_fraction, or set early_stopping to null"
        )
    continued = None
    if settings.initialise_from is not None and settings.initialise_from.take == "training" and inputs.initial:
        continued = initial_checkpoint(inputs.initial)
    probes: list[Probe] = []
    if settings.divergences or settings.bias_drift:
        compared = settings.output_bias
        # A model is compared with the distribution of its own targets, wherever its bias was counted.
        if inputs.counts is not None:
            compared = replace(compared, counts="corpus", larger_corpus=ABSENT)
        unigram = unigram_of_run(compared, first_examples, shards, settings.seed, show, own_targets)
    if settings.divergences:
        if probed is None:
            raise ConfigError(
                "pretrain.divergences: got true, expected a development split and evaluation_sequences above 0, "
                "on which they are measured"
            )
        probes.append(DivergenceProbe(probed.batches, unigram))
    if settings.bias_drift:
        probes.append(BiasDrift(model, unigram))
    with process_group(topology, device, store, options.zero_stage > 0):
        model.to(device)
        optimizer = build_optimizer(model, settings.optimizer)
        # Before DeepSpeed, which sends the first process's parameters to all others.
        record.resume(model, optimizer, continued)
        stopping = None
        if settings.early_stopping is not None:
            stopping = EarlyStopping(settings.early_stopping, record.rows(), objective.criterion)
        clip = settings.optimizer.max_gradient_norm
        chosen = compiled, options.zero_stage, options.activation_checkpointing
        with Engine(model, optimizer, clip, precision, device, topology, *chosen) as engine:
            train(settings, objective, engine, loader, scored, record, probes, deadline, stopping, kept_steps)
    for follower in record.followers:
        follower.finish(model)
    raw = average.raw if average else {}
    return Trained(model, record, start, objective.measures(examples), loader.waited_seconds, stopping, raw)


def _larger_counts(inputs: Inputs, shards: TokenShards) -> np.ndarray:
    assert inputs.counts is not None
    return larger_corpus_counts(inputs.counts, inputs.tokenizer, shards.special)


def require_shares(smallest: int, batch_size: int, processes: int) -> None:
    """Raise ConfigError, before the first step, where some batch has fewer sequences than there are processes."""
    if smallest < processes:
        raise ConfigError(
            f"pretrain.batch_size: got {batch_size}, with which the smallest batch has {smallest} "
            f"{'sequence' if smallest == 1 else 'sequences'} for {processes} processes; raise batch_size, or take "
            "fewer processes"
        )


def _require_sharing(stage: int, precision: Precision) -> None:
    """Raise ConfigError for a precision, which may be known here only, that cannot be had with this ZeRO stage."""
    if stage > 0 and precision.scaler is not None:
        raise ConfigError(
            f"runtime.zero_stage: got {stage}, only 0 is possible in fp16, whose loss scale looks at whole gradients; "
            "expected precision bf16 or fp32"
        )


def _development_sets(
    settings: PretrainSettings, objective: Objective, options: RuntimeSettings, inputs: Inputs, topology: Topology
) -> tuple[DevelopmentSet | None, DevelopmentSet | None]:
    """The development sequences that give the loss, and those on which divergences are measured."""
    examples = development_examples(inputs.tokens, settings)
    if examples is None:
        return None, None
    sequences = settings.objective.sequences_of_step(settings.batch_size, settings.sequence_length)
    share = options.micro_batch_size or max(1, math.ceil(sequences / topology.world_size))
    tokenizer = partial(_tokenizer, inputs)
    scored = objective.development(examples, settings.evaluation_sequences, share, topology, tokenizer)
    if settings.evaluation_sequences <= PROBED_SEQUENCES:
        return scored, scored
    return scored, objective.development(examples, PROBED_SEQUENCES, share, topology)


def _tokenizer(inputs: Inputs) -> "Tokenizer":
    # Runs that never ask for it start sooner without its library.
    from hatchery.tokenization.tokenizer_file import load_tokenizer

    return load_tokenizer(read_manifest(inputs.tokenizer).file(TOKENIZER_FILE))
