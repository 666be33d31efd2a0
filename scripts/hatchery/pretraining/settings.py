"""What a pretraining run is (`PretrainSettings`) and how this machine carries it out (`RuntimeSettings`).

The first decides the weights and is part of the run's identity; the second (intervals, micro-batches, device) may
change between two attempts of the same run without changing what is learned. Values that exclude each other are
refused here with the reason, before anything is loaded. Defaults of the papers: LTG-BERT Table 5 and ELC-BERT Table 4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hatchery.errors import ConfigError
from hatchery.pretraining.continuation_settings import EarlyStoppingSettings, InitialModelSettings
from hatchery.pretraining.output_bias_settings import OutputBiasSettings
from hatchery.typed import build, stage_body


@dataclass(frozen=True)
class ObjectiveSettings:
    """How text becomes examples, which positions the model has to predict, and what it sees there."""

    kind: Literal["subword", "whole_word", "span"]
    # "as_published" is the first BNC code, whose overlapping spans label some 6 % of the positions wrongly.
    reading: Literal["corrected", "as_published"]
    mask_probability: float
    random_probability: float
    keep_probability: float
    # Share of the sequences that are cut to a random shorter length.
    short_probability: float
    # Whether corrected span masking always asks for a token: yes in the BabyLM revision, no in the ELC-BERT code.
    at_least_one: bool
    # Whether the tokens that frame a sequence can be masked (reduced-vocabulary study).
    special_tokens_maskable: bool
    # How documents are cut into sequences.
    segments: Literal["babylm", "bnc", "packed", "documents"]
    # Whether two texts share a sequence and the model judges if they belong together.
    sentence_pairs: Literal["none", "document", "order"]
    # Quirks of the reduced-vocabulary study: padding as a label, and padding that is attended to.
    padding_in_loss: bool
    padding_attended: bool


@dataclass(frozen=True)
class OptimizerSettings:
    """LAMB or AdamW; `learning_rate` is the peak rate, `max_gradient_norm` the global L2 norm for clipping, or null."""

    name: Literal["lamb", "adamw"]
    learning_rate: float
    weight_decay: float
    beta1: float
    beta2: float
    epsilon: float
    max_gradient_norm: float | None
    # Weight decay on weight matrices only, or on every parameter (reduced-vocabulary study).
    decay: Literal["matrices", "all"] = "matrices"
    # A tied word embedding counts as an embedding (BabyLM code) or as the output layer, which is decayed (BNC code).
    tied_embedding: Literal["embedding", "output"] = "embedding"
    # Weight decay of the language-model head; null is `weight_decay`.
    head_weight_decay: float | None = None


@dataclass(frozen=True)
class ScheduleSettings:
    """Shape of the learning rate; `final_fraction` is the last rate as a share of the peak."""

    name: Literal["cosine", "linear", "linear_as_published", "inverse_square_root", "constant"]
    warmup_fraction: float
    final_fraction: float
    # At most so many warm-up steps; null is no limit.
    warmup_steps_limit: int | None = None


@dataclass(frozen=True)
class LongSequenceSettings:
    """From step `floor(from_fraction * steps)` on: sequences `factor` times longer, batches `factor` times smaller."""

    from_fraction: float
    factor: int


@dataclass(frozen=True)
class PretrainSettings:
    """The settings that determine the weights, apart from the token shards and the tokenizer."""

    # Fields of a model's configuration except what the tokenizer and the keys below decide.
    model: dict[str, Any]
    objective: ObjectiveSettings
    output_bias: OutputBiasSettings
    optimizer: OptimizerSettings
    schedule: ScheduleSettings
    # Optimiser steps; 0 exports the randomly initialised model, the baseline of every comparison.
    steps: int
    # Subwords per sequence, special tokens included.
    sequence_length: int
    # Sequences per optimiser step over all processes.
    batch_size: int
    long_sequence: LongSequenceSettings | None
    # "auto" is bf16 autocast where the device computes in bf16, otherwise fp32. Parameters are always fp32.
    precision: str
    evaluation_interval_steps: int
    # Sequences of the development split that are scored at each evaluation.
    evaluation_sequences: int
    seed: int
    # Mean over the labelled tokens of the global batch, or the mean of the processes' means (as published).
    loss_average: Literal["tokens", "processes"] = "tokens"
    # Divergences of the output to the unigram, uniform and empirical distribution at log-spaced steps.
    divergences: bool = False
    # Null is random weights.
    initialise_from: InitialModelSettings | None = None
    # Null trains all steps.
    early_stopping: EarlyStoppingSettings | None = None
    # Keep the last checkpoint beside the model, so that another run can go on with its optimiser.
    keep_training_state: bool = False

    @property
    def model_values(self) -> dict[str, Any]:
        """The fields of the model's configuration, apart from what the tokenizer says."""
        return {
            **self.model,
            "vocabulary_bias": self.output_bias.kind != "none",
            "sentence_pair_head": self.objective.sentence_pairs != "none",
        }


@dataclass(frozen=True)
class RuntimeSettings:
    """How to carry a run out; not part of its identity."""

    checkpoint_interval_steps: int
    keep_checkpoints: int
    # Sequences per forward pass and process; null is the whole share of the process.
    micro_batch_size: int | None
    log_interval_steps: int
    device: Literal["auto", "cpu", "cuda"]
    # CPU threads of each process; null leaves the choice to torch and OMP_NUM_THREADS.
    threads: int | None
    zero_stage: int = 0
    # Processes that draw batches ahead; 0 is one thread.
    workers: int = 0
    # torch.compile of the model.
    compile: bool = False
    # Fractions of the run whose checkpoints are kept for good.
    milestones: tuple[float, ...] = ()
    # Write checkpoints in a thread, while training goes on.
    background_checkpoints: bool = True
    # Stop cleanly before so many minutes are over; null asks Slurm for the end of the job.
    time_limit_minutes: float | None = None
    # Seconds that stopping takes: the last step, the checkpoint, the way out.
    grace_seconds: float = 120.0
    # Where metrics go besides the plain files.
    sinks: tuple[Literal["tensorboard", "trackio"], ...] = ()


def pretrain_settings(settings: Mapping[str, Any]) -> PretrainSettings:
    """The typed settings of the `pretrain` stage. Raises ConfigError for an unknown, missing or impossible value."""
    result = build(PretrainSettings, stage_body(settings), "pretrain")
    _check_ranges(result)
    _check_precision(result.precision)
    _check_long_sequences(result)
    return result


def runtime_settings(runtime: Mapping[str, Any], optimizer_name: str) -> RuntimeSettings:
    """The typed runtime settings. Raises ConfigError, also for a ZeRO stage that would change the optimiser."""
    result = build(RuntimeSettings, runtime, "runtime")
    for key in ("checkpoint_interval_steps", "keep_checkpoints", "log_interval_steps"):
        _require(getattr(result, key) >= 1, f"runtime.{key}", getattr(result, key), "at least 1")
    for key in ("micro_batch_size", "threads"):
        value = getattr(result, key)
        _require(value is None or value >= 1, f"runtime.{key}", value, "at least 1, or null")
    _require(result.workers >= 0, "runtime.workers", result.workers, "0 or more")
    _require(0 <= result.grace_seconds < math.inf, "runtime.grace_seconds", result.grace_seconds, "0 or more")
    minutes = result.time_limit_minutes
    _require(minutes is None or minutes > 0, "runtime.time_limit_minutes", minutes, "above 0, or null")
    for fraction in result.milestones:
        _require(0 < fraction <= 1, "runtime.milestones", fraction, "fractions of the run, above 0 and at most 1")
    if result.zero_stage != 0:
        reason = (
            "ZeRO flattens the parameters into one buffer, so LAMB would lose the norm of each tensor and with it "
            "the trust ratio"
            if optimizer_name == "lamb"
            else "checkpoints hold whole tensors by name, and models of this size gain nothing from sharding"
        )
        raise ConfigError(f"runtime.zero_stage: got {result.zero_stage}, only 0 is possible: {reason}")
    return result


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ConfigError(f"{key}: got {value!r}, expected {expected}")


def _check_ranges(settings: PretrainSettings) -> None:
    optimizer, schedule, objective = settings.optimizer, settings.schedule, settings.objective
    probabilities = {
        "objective.mask_probability": objective.mask_probability,
        "objective.random_probability": objective.random_probability,
        "objective.keep_probability": objective.keep_probability,
        "objective.short_probability": objective.short_probability,
        "schedule.warmup_fraction": schedule.warmup_fraction,
        "schedule.final_fraction": schedule.final_fraction,
    }
    for key, value in probabilities.items():
        _require(0 <= value <= 1, f"pretrain.{key}", value, "a number from 0 to 1")
    for key in ("beta1", "beta2"):
        _require(0 <= getattr(optimizer, key) < 1, f"pretrain.optimizer.{key}", getattr(optimizer, key), "0 <= x < 1")
    for key in ("learning_rate", "epsilon"):
        value = getattr(optimizer, key)
        _require(0 < value < math.inf, f"pretrain.optimizer.{key}", value, "a number above 0")
    norm = optimizer.max_gradient_norm
    _require(norm is None or 0 < norm < math.inf, "pretrain.optimizer.max_gradient_norm", norm, "above 0, or null")
    for key in ("weight_decay", "head_weight_decay"):
        decay = getattr(optimizer, key)
        _require(decay is None or 0 <= decay < math.inf, f"pretrain.optimizer.{key}", decay, "0 or more")
    limit = schedule.warmup_steps_limit
    _require(limit is None or limit >= 1, "pretrain.schedule.warmup_steps_limit", limit, "at least 1, or null")
    minima = {"steps": 0, "sequence_length": 8, "batch_size": 1, "evaluation_interval_steps": 1, "seed": 0}
    for key, minimum in {**minima, "evaluation_sequences": 0}.items():
        _require(getattr(settings, key) >= minimum, f"pretrain.{key}", getattr(settings, key), f"{minimum} or more")


def _check_precision(precision: str) -> None:
    _require(precision in ("fp32", "bf16", "fp16", "auto"), "pretrain.precision", precision, "fp32, bf16, fp16 or auto")


def _check_long_sequences(settings: PretrainSettings) -> None:
    long = settings.long_sequence
    if long is None:
        return
    _require(0 <= long.from_fraction <= 1, "pretrain.long_sequence.from_fraction", long.from_fraction, "0 to 1")
    _require(long.factor >= 1, "pretrain.long_sequence.factor", long.factor, "1 or more")
    _require(
        settings.batch_size % long.factor == 0,
        "pretrain.batch_size",
        settings.batch_size,
        f"a multiple of long_sequence.factor ({long.factor}), so that both phases see as many tokens per step",
    )
