"""Runtime settings of a pretraining on this machine: device, micro-batches, intervals, sinks.

These settings may change between two attempts of a run without changing its result.
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
    """Runtime settings of pretraining on this machine; no result depends on them."""

    device: DeviceName = "auto"
    """Where models compute; auto takes a GPU where there is one."""
    micro_batch_size: Count | None = None
    """Sequences per device and forward pass; null takes the whole batch. Gradients accumulate."""
    checkpoint_interval_steps: Count = 500
    """Steps between two checkpoints of a pretraining."""
    keep_checkpoints: Count = 2
    """How many of the last checkpoints of a run are kept."""
    log_interval_steps: Count = 10
    """Steps between two lines of the training log."""
    milestones: Annotated[tuple[ShareAboveZero, ...], Unique()] = ()
    """Fractions of a run whose checkpoints are kept until it ends."""
    background_checkpoints: bool = True
    """Write checkpoints while training goes on."""
    workers: Natural = 0
    """Processes that draw batches ahead; 0 is one thread."""
    compile: CompilationChoice = "auto"
    """torch.compile of the layers; auto is on a GPU where Triton and a C compiler are, for trainings of some hundred
    steps, for tasks of some thousand, and for what is scored in many batches."""
    activation_checkpointing: bool = False
    """Compute the layers again in the backward pass instead of keeping what they computed: less memory, a third more
    time, the same numbers."""
    zero_stage: Annotated[int, Range(ge=0, le=3)] = 0
    """DeepSpeed's ZeRO, for AdamW and several processes: 1 shares the optimiser's state among them, 2 also the
    gradients, 3 also the parameters. Other optimisers need 0."""
    time_limit_minutes: Positive | None = None
    """Stop cleanly before so many minutes are over; null asks Slurm for the end of the job."""
    grace_seconds: NonNegative = 120
    """Time that a clean stop takes: the last step, the checkpoint, the way out."""
    sinks: Annotated[tuple[Literal["tensorboard", "trackio", "wandb"], ...], Unique()] = ()
    """Where training metrics go besides the plain files: each is a package of its own that has to be installed. `wandb`
    (Weights & Biases) writes files, and sends them where WANDB_MODE=online says so."""


@dataclass(frozen=True, kw_only=True)
class RuntimeSettings(TrainingRuntime):
    """Runtime settings of one process."""

    threads: Count | None = None
    """CPU threads of each process; null leaves the choice to torch and OMP_NUM_THREADS."""


def runtime_settings(runtime: Mapping[str, Any], training: TrainingSettings) -> RuntimeSettings:
    """Return the typed runtime settings. Raises ConfigError, also for a ZeRO stage that `training` does not support."""
    result = build(RuntimeSettings, runtime, "runtime")
    require_zero_stage("runtime.zero_stage", result.zero_stage, training)
    return result


def not_installed(package: str) -> str:
    """Return a message for a sink of metrics whose package is missing."""
    return f"{package!r} needs the package {package}, which is not installed here; install it, or leave {package!r} out"


def require_zero_stage(key: str, stage: int, training: TrainingSettings) -> None:
    """Raise ConfigError, naming `key`, for a ZeRO stage that changes the optimiser or shards tensors that are
    measured."""
    if training.steps == 0:
        return
    if stage != 0 and training.optimizer.name != "adamw":
        raise ConfigError(
            f"{key}: got {stage}, only 0 is possible: ZeRO flattens the parameters into one buffer, so "
            f"{training.optimizer.name} would lose the norm or shape of each tensor; expected optimizer.name adamw"
        )
    if stage != 0 and not training.optimizer.is_plain_adamw:
        raise ConfigError(f"{key}: got {stage}, only 0 is possible with cautious_decay and decay_follows_rate")
    if stage == 3 and "translation" in training.objective.kinds:
        raise ConfigError(f"{key}: got 3, at most 2 is possible with translation, whose search needs whole layers")
    if stage == 3 and training.weight_average is not None:
        raise ConfigError(f"{key}: got 3, at most 2 is possible with weight_average, which follows whole parameters")
    if stage == 3 and (training.divergences or training.bias_drift):
        raise ConfigError(
            f"{key}: got 3, at most 2 is possible with divergences and bias_drift, which look at the whole output layer"
        )
