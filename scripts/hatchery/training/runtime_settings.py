"""Runtime settings of a pretraining on this machine: device, micro-batches, intervals, and sinks (TensorBoard and
similar tools that show metrics).

These settings may change between two attempts of a run, because they change the run's result at most by rounding.
`micro_batch_size` also changes the random draws of dropout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hatchery.errors import ConfigError
from hatchery.settings.base import (
    CompilationChoice,
    Count,
    DeviceName,
    Natural,
    NonNegative,
    Positive,
    Range,
    Settings,
    ShareAboveZero,
)
from hatchery.settings.fields import Unique
from hatchery.training.settings import TrainingSettings
from hatchery.typed import build


@dataclass(frozen=True, kw_only=True)
class TrainingRuntime(Settings):
    """Runtime settings of pretraining on this machine. They change a result at most by rounding; `micro_batch_size`
    also changes the random draws of dropout.
    """

    device: DeviceName = "auto"
    """Device of the models; `auto` uses a GPU if one is available."""
    micro_batch_size: Count | None = None
    """Number of sequences per device and forward pass; gradients are accumulated over the batch. `null` puts a device's
    share of the batch into one forward pass.
    """
    checkpoint_interval_steps: Count = 500
    """Number of steps between two checkpoints of a pretraining."""
    keep_checkpoints: Count = 2
    """Number of latest checkpoints that a run keeps."""
    log_interval_steps: Count = 10
    """Number of steps between two lines of `speed.jsonl`. On a GPU, the losses are copied to the CPU at least this
    often; on a CPU, losses are recorded after every step.
    """
    milestones: Annotated[tuple[ShareAboveZero, ...], Unique()] = ()
    """Fractions of a run's steps, such as 0.5, after which a checkpoint is kept. At the end of the run, the models of
    these checkpoints are stored in the folder `milestones` of the finished model.
    """
    background_checkpoints: bool = True
    """Write checkpoints in the background. Training pauses only to copy its state, and to wait for the previous
    checkpoint.
    """
    workers: Natural = 0
    """Number of worker processes that prepare batches in advance for one training process; 0 prepares batches in a
    thread of the training process.
    """
    compile: CompilationChoice = "auto"
    """Use of torch.compile for the layers. `layers`: always. `off`: never. `auto`: on GPUs with Triton and a C
    compiler, if the work is long: several hundred steps of training, several thousand steps of fine-tuning, or scoring
    in many batches. With `zero_stage: 3`, `auto` does not compile the training.
    """
    activation_checkpointing: bool = False
    """Recompute activations in the backward pass instead of storing them. This saves memory, but training takes about a
    third longer; the results are the same.
    """
    zero_stage: Annotated[int, Range(ge=0, le=3)] = 0
    """Stage of DeepSpeed's ZeRO, for AdamW on several processes: 1 shards the optimiser's state, 2 also shards the
    gradients, and 3 also shards the parameters. All other optimisers, AdamW with `cautious_decay` or
    `decay_follows_rate`, and fp16 require 0. Stage 3 excludes the task `translation`, `weight_average`, `divergences`
    and `bias_drift`.
    """
    time_limit_minutes: Positive | None = None
    """Maximum duration of the job in minutes, counted from the start of its training loop; the job stops cleanly before
    this limit and before the end of its Slurm job. `null` sets no limit except the end of the Slurm job.
    """
    grace_seconds: NonNegative = 120
    """Seconds before the time limit that are reserved for the last step, the checkpoint and the exit. Before the end of
    a Slurm job, at most a quarter of the time that the job had left at the start of training is reserved.
    """
    sinks: Annotated[tuple[Literal["tensorboard", "trackio", "wandb"], ...], Unique()] = ()
    """Trackers that receive training metrics in addition to the metrics files. Each tracker needs its own package.
    `wandb` (Weights & Biases) writes files, which are uploaded if the environment variable WANDB_MODE is `online`.
    """


@dataclass(frozen=True, kw_only=True)
class RuntimeSettings(TrainingRuntime):
    """Runtime settings of one training process, including its number of CPU threads."""

    threads: Count | None = None
    """Number of CPU threads of each process; `null` uses the default of torch and OMP_NUM_THREADS."""


def runtime_settings(runtime: Mapping[str, Any], training: TrainingSettings) -> RuntimeSettings:
    """Return the typed runtime settings. Raises ConfigError for invalid values, and for a ZeRO stage that `training`
    does not support."""
    result = build(RuntimeSettings, runtime, "runtime")
    require_zero_stage("runtime.zero_stage", result.zero_stage, training)
    return result


def not_installed(package: str) -> str:
    """Return the message for a metrics sink whose package is missing."""
    return f"{package!r} needs the package {package}, which is not installed here; install it, or leave {package!r} out"


def require_zero_stage(key: str, stage: int, training: TrainingSettings) -> None:
    """Raise ConfigError, naming `key`, for a ZeRO stage that `training` does not support: because of its optimiser, its
    objective, its weight average, or a measurement of the output layer.
    """
    if training.steps == 0:
        return
    if stage != 0 and training.optimizer.name != "adamw":
        raise ConfigError(
            f"{key}: got {stage}, expected 0 with optimizer.name {training.optimizer.name}: ZeRO flattens the "
            f"parameters into one buffer, so {training.optimizer.name} would lose the norm or shape of each tensor; "
            "use adamw"
        )
    if stage != 0 and not training.optimizer.is_plain_adamw:
        raise ConfigError(
            f"{key}: got {stage}, expected 0 with cautious_decay or decay_follows_rate; set these two keys to false"
        )
    if stage == 3 and "translation" in training.objective.kinds:
        raise ConfigError(
            f"{key}: got 3, expected at most 2 with the objective translation, because beam search needs unsharded "
            "weights"
        )
    if stage == 3 and training.weight_average is not None:
        raise ConfigError(
            f"{key}: got 3, expected at most 2 with weight_average, because stage 3 distributes the averaged "
            "parameters over the processes"
        )
    if stage == 3 and (training.divergences or training.bias_drift):
        raise ConfigError(
            f"{key}: got 3, expected at most 2 with divergences or bias_drift, because both measurements "
            "read the unsharded output layer"
        )
