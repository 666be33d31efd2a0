"""What a fine-tuning stage is told: the task, the protocol, the seeds and learning rates to repeat it with.

The protocols of the papers (`config/protocols/`) are values of `ProtocolSettings`; every field is part of the result's
identity. Impossible values are refused before anything is read.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hatchery.errors import ConfigError
from hatchery.evaluation.runtime import DeviceName
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.settings.fields import Settings
from hatchery.typed import build, stage_body


@dataclass(frozen=True)
class ProtocolSettings(Settings):
    """How a model is trained on a task, and which of its states is reported."""

    epochs: int
    # Items (examples, sentences) per optimiser step.
    batch_size: int
    # Peak rates of AdamW; every run has one of them (MSGS: three). After a linear warm-up over `warmup_fraction` of all
    # steps the schedule falls to `final_fraction` of the peak.
    learning_rates: tuple[float, ...]
    warmup_fraction: float
    schedule: Literal["cosine", "linear", "linear_as_published", "constant"]
    weight_decay: float
    beta1: float
    beta2: float
    epsilon: float
    # Global L2 norm at which gradients are clipped; null leaves them (ELC-BERT names no clipping).
    max_gradient_norm: float | None
    # For the encoder, unless it is frozen, and the head.
    dropout: float
    # Tokens of an input, special tokens included; longer ones are cut at the end of the longest segment.
    max_length: int
    # Which rows choose the state that is reported: training rows held out anew for each seed; the scored rows
    # themselves (the official pipeline of BabyLM 2023, optimistic); or none, the last state counts.
    selection: Literal["held_out", "scored", "last"]
    # Share of the training rows that is held out.
    development_fraction: float
    # Evaluate after so many steps; null: after every epoch. A run that ends before the first evaluation keeps its last
    # state (reference evaluation.md 6.3, consequence b).
    evaluation_interval_steps: int | None
    # Stop after so many evaluations without an improvement of more than `minimum_improvement`; null trains to the end.
    patience_evaluations: int | None
    minimum_improvement: float
    # null: the first metric of the task.
    selection_metric: str | None
    seeds: tuple[int, ...]
    final_fraction: float = 0.0
    # Weight decay on weight matrices (no biases, norms, embeddings), or on all weights but biases and norms.
    decay: Literal["matrices", "weights"] = "matrices"
    # Peak rate of what was not pretrained; null: as the encoder (LTG-BERT's code: 1e-3).
    head_learning_rate: float | None = None
    # Leave the last batch of an epoch out when it is not full.
    drop_incomplete_batch: bool = False
    # Where the classifier's bias starts: at 0, or at the logarithm of the class shares of the training rows.
    output_bias: Literal["zero", "prior"] = "zero"


@dataclass(frozen=True)
class FinetuneSettings(Settings):
    """A task, a protocol, and the tasks that the fine-tuned models are also scored on (HANS)."""

    task: TaskSettings
    protocol: ProtocolSettings
    transfer: tuple[TaskSettings, ...] = ()


@dataclass(frozen=True)
class FinetuneRuntime(Settings):
    """How it is carried out; not part of the result's identity."""

    device: DeviceName = "auto"
    # CPU threads of PyTorch; null leaves its choice.
    threads: int | None = None
    # Memory for the layers of a frozen encoder, computed once and not in every epoch; 0 computes them every time.
    frozen_layers_mib: int = 2048


def finetune_settings(settings: Mapping[str, Any]) -> FinetuneSettings:
    """The settings of a job, checked. Raises ConfigError naming the key."""
    typed = build(FinetuneSettings, stage_body(settings), "finetune")
    check_protocol(typed.protocol)
    return typed


def require(condition: bool, key: str, value: object, expected: str) -> None:
    """Raise ConfigError naming the key unless the condition holds."""
    if not condition:
        raise ConfigError(f"finetune.{key}: got {value!r}, expected {expected}")


def check_protocol(protocol: ProtocolSettings) -> None:
    """Raise ConfigError for a value that no training could have."""
    for key, minimum in {"epochs": 1, "batch_size": 1, "max_length": 8}.items():
        value = getattr(protocol, key)
        require(value >= minimum, f"protocol.{key}", value, f"{minimum} or more")
    for key in ("beta1", "beta2", "dropout", "development_fraction"):
        value = getattr(protocol, key)
        require(0 <= value < 1, f"protocol.{key}", value, "0 <= x < 1")
    for key in ("warmup_fraction", "final_fraction"):
        value = getattr(protocol, key)
        require(0 <= value <= 1, f"protocol.{key}", value, "0 to 1")
    for key in ("weight_decay", "minimum_improvement"):
        value = getattr(protocol, key)
        require(0 <= value < math.inf, f"protocol.{key}", value, "0 or more")
    require(0 < protocol.epsilon < math.inf, "protocol.epsilon", protocol.epsilon, "a number above 0")
    for key in ("max_gradient_norm", "head_learning_rate", "evaluation_interval_steps", "patience_evaluations"):
        value = getattr(protocol, key)
        require(value is None or 0 < value < math.inf, f"protocol.{key}", value, "a number above 0, or null")
    for key in ("learning_rates", "seeds"):
        values = getattr(protocol, key)
        require(0 < len(values) == len(set(values)), f"protocol.{key}", values, "one or more, all different")
    for rate in protocol.learning_rates:
        require(0 < rate < math.inf, "protocol.learning_rates", rate, "numbers above 0")
    held_out = protocol.selection == "held_out"
    require(
        held_out == (protocol.development_fraction > 0),
        "protocol.development_fraction",
        protocol.development_fraction,
        "more than 0 with selection held_out, 0 otherwise",
    )
