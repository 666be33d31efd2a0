"""Builds the objects of a training run from its settings and inputs: model, batches, watchers, progress record, and
stop request."""

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch.distributed
from torch import nn

from hatchery.errors import ConfigError
from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.families import model_config, with_token_ids
from hatchery.modeling.language_model import LanguageModel, build_language_model, initialise_
from hatchery.modeling.store import load_language_model
from hatchery.settings.fields import ABSENT
from hatchery.tokenization.documents import TRAINING_SPLIT, watch_shards
from hatchery.tokenization.special_tokens import SpecialTokens
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.batches import BatchLoader, TrainingBatches
from hatchery.training.checkpoints import milestone_steps
from hatchery.training.continuation import load_initial_
from hatchery.training.curriculum import order_of
from hatchery.training.data_order import epochs_of
from hatchery.training.development import development_tokens_per_byte
from hatchery.training.examples import Examples
from hatchery.training.inputs import Inputs
from hatchery.training.interruption import Deadline, StopRequest
from hatchery.training.measured_difficulty import measure_of
from hatchery.training.objective import Objective
from hatchery.training.objectives import objective_of
from hatchery.training.output_prior import larger_corpus_counts, prepare_output_, unigram_of_run
from hatchery.training.own_model import MakeModule, OwnModel, check_own_model, own_model
from hatchery.training.precision import Precision
from hatchery.training.record import RunRecord
from hatchery.training.run_checkpoints import RunCheckpoints
from hatchery.training.run_folder import RunLease
from hatchery.training.run_watchers import run_watchers
from hatchery.training.runtime_settings import RuntimeSettings
from hatchery.training.settings import PretrainSettings
from hatchery.training.speed import Speedometer, peak_flops_of
from hatchery.training.step_plan import StepPlan
from hatchery.training.telemetry import Telemetry, open_sinks
from hatchery.training.topology import Topology
from hatchery.training.watchers import Watcher


@dataclass(frozen=True)
class Given:
    """The objects of a run that settings cannot describe: a module and watchers of the caller."""

    model: nn.Module | MakeModule | None = None
    watchers: Sequence[Watcher] = ()


NOTHING_GIVEN = Given()


class RunParts:
    """Builds the objects of a training run from its settings and inputs: model, batches, watchers, progress record, and
    stop request.
    """

    def __init__(
        self, settings: PretrainSettings, options: RuntimeSettings, inputs: Inputs, topology: Topology, name: str
    ) -> None:
        self.settings, self.options, self.inputs, self.topology, self.name = settings, options, inputs, topology, name
        self.objective: Objective = objective_of(settings.objective)
        self.shards: TokenShards = self.objective.open(inputs.tokens, TRAINING_SPLIT)
        self._examples = partial(self.objective.examples, self.shards)

    def say(self, text: str) -> None:
        """Log one line of text; in the first process only."""
        if self.topology.is_first:
            print(f"{self.name}: {text}", file=sys.stderr, flush=True)

    def model(self) -> tuple[LanguageModel, dict[str, float]]:
        """Return the model with its initial weights, and the manifest's entries about the initial output layer, such as
        the loss with this layer.
        """
        settings, inputs = self.settings, self.inputs
        if inputs.members:
            return load_language_model(inputs.members[0].parent), {}
        model = build_model(settings, self.shards.vocabulary_size, self.shards.special)
        if inputs.initial is not None:
            load_initial_(model, inputs.initial, settings.initialise_from.step if settings.initialise_from else None)
        count = self.objective.target_counts if inputs.counts is None else partial(_larger_counts, inputs)
        show, first = self.topology.is_first, partial(self._examples, settings.sequence_length)
        # Set the bias before a checkpoint is loaded, because a resumed run must keep its learned bias.
        return model, prepare_output_(model, settings.output_bias, first, self.shards, settings.seed, show, count)

    def own_model(self, make: nn.Module | MakeModule) -> OwnModel:
        """Return the caller's module as a model.

        Raises ConfigError for settings that a user's module does not support, and for sequences longer than the
        module's `longest_input`.
        """
        check_own_model(self.settings)
        model = own_model(make, self.shards.vocabulary_size, self.settings.seed)
        longest = max(StepPlan(self.settings).lengths, default=self.settings.sequence_length)
        if model.longest_input is not None and longest > model.longest_input:
            raise ConfigError(
                f"sequence_length: got {longest}, expected at most {model.longest_input}, the longest_input of "
                f"{type(model.module).__name__}"
            )
        return model

    def batches(self, device: torch.device) -> tuple[BatchLoader, Examples]:
        """Return the loader of the run's batches, and the training examples, whose sequences have the run's first
        sequence length.

        Raises ConfigError if the smallest batch has fewer sequences than there are processes.
        """
        settings, options = self.settings, self.options
        plan, size = StepPlan(settings), options.micro_batch_size
        order = partial(order_of, self.objective, measure=measure_of(settings.order, self.inputs))
        batches = TrainingBatches(plan, settings.seed, self.topology, size, self._examples, order)
        examples = batches.examples_at(0)
        smallest = self.objective.smallest_batch(examples, plan.smallest_batch)
        require_shares(smallest, settings.batch_size, self.topology.world_size)
        epochs = epochs_of(self.objective, examples, plan)
        self.say(f"{settings.steps:,} steps are {epochs:,.2f} epochs of the {len(examples):,} training sequences")
        return BatchLoader(batches, options.workers, pin_memory=device.type == "cuda"), examples

    def watchers(self, model: LanguageModel | OwnModel, marks: Collection[int]) -> tuple[Watcher, ...]:
        """Return the watchers that the settings require; development text is also scored after the steps in `marks`."""
        unigram = cache(self._unigram)
        asked = self.settings, self.options, self.inputs, self.topology, self.objective
        return tuple(run_watchers(*asked, model, unigram, marks))

    def record(
        self,
        folder: Path,
        sinks_folder: Path,
        device: torch.device,
        precision: Precision,
        lease: RunLease | None,
        kept_steps: Collection[int],
        counts_flops: bool,
    ) -> RunRecord:
        """Return the progress record of a run in `folder`. The record is at step 0 until its method `resume` loads a
        checkpoint. If `counts_flops` is false, the utilisation of the device (MFU) is not computed.
        """
        settings, options, topology = self.settings, self.options, self.topology
        watch, required = watch_shards(self.inputs.tokens), {*settings.milestones, *kept_steps}
        milestones = milestone_steps(options.milestones, settings.steps)
        checkpoints = RunCheckpoints(folder, topology, options, milestones, required, lease, watch)
        # The FLOPs of a caller's module are not known, so the MFU (model FLOPs utilisation) is not computed.
        peak = peak_flops_of(device, precision.name) if counts_flops else None
        speed = Speedometer(device, topology.world_size, peak)
        log = options.log_interval_steps
        # On a CPU, read losses after every step, because a CPU has no queue of operations for which the process would
        # have to wait.
        read = 1 if device.type == "cpu" else log
        opened = partial(self._open_telemetry, folder, sinks_folder) if topology.is_first else None
        record = RunRecord(self.name, settings.steps, checkpoints, speed, opened, log, read)
        if self.shards.text_words is None:
            # Token shards of earlier versions have no word counts, so the number of words is unknown.
            record.position = replace(record.position, words=None)
        return record

    def stop_request(self, device: torch.device, lease: RunLease | None) -> StopRequest:
        """Return the stop request. It can be made by a signal, by the time limit, or by another attempt that needs the
        run folder.
        """
        options, topology = self.options, self.topology
        # Only the first process has a deadline, because all processes stop together. Otherwise thousands of processes
        # would query Slurm's controller at once.
        deadline = None
        if topology.is_first:
            deadline = Deadline.from_environment(os.environ, options.time_limit_minutes, options.grace_seconds)
        # Several processes on GPUs exchange stop requests only when losses are read, so the grace time must include the
        # steps until losses are next read.
        reads_late = topology.world_size > 1 and device.type == "cuda"
        heeded_after = options.log_interval_steps if reads_late else 1
        return StopRequest(deadline, heeded_after, lambda: lease is not None and lease.is_claimed)

    def _open_telemetry(self, folder: Path, sinks_folder: Path, metrics: str, step: int) -> Telemetry:
        names = self.options.sinks
        per_byte = development_tokens_per_byte(self.inputs.tokens, self.objective) if names else None
        return Telemetry(folder, metrics, open_sinks(names, sinks_folder, self.name, step), per_byte)

    def _unigram(self) -> np.ndarray:
        compared = self.settings.output_bias
        # Compute divergences from the distribution of the run's own targets, even if the labels for the bias were
        # counted in a larger corpus.
        if self.inputs.counts is not None:
            compared = replace(compared, counts="corpus", larger_corpus=ABSENT)
        show, first = self.topology.is_first, partial(self._examples, self.settings.sequence_length)
        return unigram_of_run(compared, first, self.shards, self.settings.seed, show, self.objective.target_counts)


def build_model(settings: PretrainSettings, vocabulary_size: int, special: SpecialTokens) -> LanguageModel:
    """Return a run's model with its initial weights, which depend on settings and seed only."""
    model = build_language_model(run_config(settings, vocabulary_size, special), settings.objective.causal)
    initialise_(model, settings.seed)
    return model


def run_config(settings: PretrainSettings, vocabulary_size: int, special: SpecialTokens) -> ModelConfig:
    """Return the configuration of a run's model for this vocabulary size. Raises ConfigError or ModelError for invalid
    values.
    """
    values = {**settings.model_values, "vocab_size": vocabulary_size}
    return model_config(with_token_ids(values, special), "pretraining.model")


def require_shares(smallest: int, batch_size: int, processes: int) -> None:
    """Raise ConfigError if the smallest batch has fewer sequences than there are processes."""
    if smallest < processes:
        raise ConfigError(
            f"pretraining.batch_size: got {batch_size}, but the smallest batch then has {smallest} "
            f"{'sequence' if smallest == 1 else 'sequences'} for {processes} processes; raise batch_size, or use "
            "fewer processes"
        )


def _larger_counts(inputs: Inputs, shards: TokenShards) -> np.ndarray:
    assert inputs.counts is not None
    return larger_corpus_counts(inputs.counts, inputs.tokenizer, shards.special)
