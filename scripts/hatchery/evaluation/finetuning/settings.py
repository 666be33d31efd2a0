"""What a fine-tuning stage is told: the task, the protocol, the seeds and learning rates to repeat it with.

The protocols of the papers (`config/protocols/`) are values of `ProtocolSettings`; every field is part of the result's
identity. Impossible values are refused before anything is read.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.settings.base import (
    Count,
    DeviceName,
    Natural,
    NonNegative,
    Positive,
    Range,
    RefusedError,
    Settings,
    Share,
    ShareBelowOne,
    shown,
)
from hatchery.settings.fields import Reference, Unique


@dataclass(frozen=True, kw_only=True)
class ProtocolSettings(Settings):
    """How a model is trained on a task, and which of its states is reported."""

    epochs: Count = 10
    """Passes through the training rows."""
    batch_size: Count = 16
    """Examples (sentences in edge probing) per optimiser step."""
    learning_rates: Annotated[tuple[Positive, ...], MinLen(1), Unique()] = (7.0e-5,)
    """Peak rates of AdamW; every seed is run with each (MSGS: three)."""
    head_learning_rate: Positive | None = None
    """Peak rate of what was not pretrained; null is that of the encoder (LTG-BERT's code: 1e-3)."""
    warmup_fraction: Share = 0.01
    """Share of the steps in which the rate rises to its peak."""
    schedule: Literal["cosine", "linear", "linear_as_published", "constant"] = "cosine"
    """How it falls from there."""
    final_fraction: Share = 0.0
    """Share of the peak rate at the end."""
    weight_decay: NonNegative = 0.1
    """Decoupled weight decay."""
    decay: Literal["matrices", "weights"] = "matrices"
    """Decay of weight matrices, or of all weights but biases and norms (embeddings too)."""
    beta1: ShareBelowOne = 0.9
    """Decay of the mean of the gradients."""
    beta2: ShareBelowOne = 0.999
    """Decay of the mean of their squares."""
    epsilon: Positive = 1.0e-8
    """Added to the root of that mean."""
    max_gradient_norm: Positive | None = 1.0
    """Global L2 norm at which gradients are clipped; null leaves them (ELC-BERT names no clipping)."""
    dropout: ShareBelowOne = 0.1
    """Dropout of the head, and of the encoder unless it is frozen."""
    max_length: Annotated[int, Range(ge=8)] = 128
    """Tokens of an input with its special tokens; longer ones are cut at the end of the longest segment."""
    drop_incomplete_batch: bool = False
    """Leave out the last batch of an epoch when it is not full."""
    selection: Literal["held_out", "scored", "last"] = "held_out"
    """Which rows choose the state that is reported: training rows held out anew for each seed; the scored rows
    themselves (the official pipeline of BabyLM 2023, optimistic); last takes the last state."""
    development_fraction: ShareBelowOne = 0.1
    """Share of the training rows that is held out for the selection."""
    # A run that ends before the first evaluation keeps its last state (docs/papers/babylm-evaluation.md, "Official
    # fine-tuning").
    evaluation_interval_steps: Count | None = None
    """Steps between two evaluations; null evaluates after every epoch."""
    patience_evaluations: Count | None = 3
    """Stop after so many evaluations without improvement; null never stops."""
    minimum_improvement: NonNegative = 0.0
    """What the metric has to rise by to count as an improvement."""
    selection_metric: str | None = None
    """The metric that chooses; null is the one that stands for the task."""
    seeds: Annotated[tuple[Natural, ...], MinLen(1), Unique()] = (12, 642, 369, 1267, 2395)
    """One fine-tuning for each."""
    output_bias: Literal["zero", "prior"] = "zero"
    """prior starts the classifier's bias at the logarithm of the class shares of the training rows."""


@dataclass(frozen=True, kw_only=True)
class ProtocolChoice(ProtocolSettings):
    """Settings of a protocol; experiments, their tasks and the named protocols state what differs from these."""

    base: Annotated[str, Reference("protocol", inherited=True)] | None = None
    """A named protocol (config/protocols/) whose settings come first."""
    reported_metric: str | None = None
    """The metric that stands for the task in tables; null is its first one."""


@dataclass(frozen=True)
class FinetuneSettings(Settings):
    """A task, a protocol, and the tasks that the fine-tuned models are also scored on (HANS)."""

    task: TaskSettings
    protocol: ProtocolSettings
    transfer: tuple[TaskSettings, ...] = ()

    def __post_init__(self) -> None:
        share = self.protocol.development_fraction
        if (self.protocol.selection == "held_out") != (share > 0):
            raise RefusedError(
                "protocol.development_fraction",
                f"got {shown(share)}, expected more than 0 with selection held_out, 0 otherwise",
            )


@dataclass(frozen=True)
class FinetuneRuntime(Settings):
    """How it is carried out; not part of the result's identity."""

    device: DeviceName = "auto"
    """Where models compute."""
    threads: Count | None = None
    """CPU threads of PyTorch; null leaves its choice."""
    frozen_layers_mib: Natural = 2048
    """Memory for the layers of a frozen encoder, computed once and not in every epoch; 0 computes them every time."""
