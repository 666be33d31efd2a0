"""What a fine-tuning stage is told: the task's data, the protocol, the seeds.

The protocols of the papers (ELC-BERT Table 5, LTG-BERT Table 10) are values of `ProtocolSettings`; every field is
part of the result's identity. Impossible values are refused before anything is read.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hatchery.errors import ConfigError
from hatchery.evaluation.metrics.classification import METRICS
from hatchery.evaluation.runtime import DeviceName
from hatchery.typed import build, stage_body

LabelValue = str | int | bool


@dataclass(frozen=True)
class TaskSettings:
    """One labelled task and where its rows come from."""

    name: str
    format: Literal["glue_jsonl", "rte_xml", "labelled_lines"]
    # glue_jsonl and rte_xml: {"train": name or names, "validation": …}; labelled_lines: {label: name or names}.
    files: dict[str, str | tuple[str, ...]]
    # The labels in the order of the classifier's outputs; the second one is the positive class of F1.
    labels: tuple[LabelValue, ...]
    # The first metric is the one that stands for the task.
    metrics: tuple[str, ...]
    # glue_jsonl: names of one or two text fields, or templates such as "Question: {question} Answer: {answer}".
    fields: tuple[str, ...] = ()
    label_field: str = "label"
    # At most this many rows, drawn with `split_seed`; null keeps all.
    train_limit: int | None = None
    validation_limit: int | None = None
    # Draws the limits and the validation rows of labelled_lines, the same for every fine-tuning seed.
    split_seed: int = 0
    # labelled_lines only: the share of the distinct lines that becomes the validation (test) set.
    validation_fraction: float = 0.2

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels as text, the way JSON spells them."""
        return tuple(label_text(label) for label in self.labels)


@dataclass(frozen=True)
class ProtocolSettings:
    """How a classifier is trained and selected."""

    epochs: int
    # Examples per optimiser step.
    batch_size: int
    # Peak rate of AdamW, after a linear warm-up over `warmup_fraction` of all steps; the schedule ends at 0.
    learning_rate: float
    warmup_fraction: float
    schedule: Literal["cosine", "linear"]
    weight_decay: float
    beta1: float
    beta2: float
    epsilon: float
    # Global L2 norm at which gradients are clipped; null leaves them (ELC-BERT names no clipping).
    max_gradient_norm: float | None
    # For the encoder and the classification head.
    dropout: float
    # Tokens of an input, special tokens included; longer ones are cut at the end of the longer segment.
    max_length: int
    # Share of the training rows held out, anew for each seed, to choose the epoch; 0 keeps the last epoch.
    development_fraction: float
    # Stop after this many epochs without a better development value; null trains all epochs.
    patience_epochs: int | None
    selection_metric: str
    # Where the classifier's bias starts: at 0, or at the logarithm of the class shares of the training rows.
    output_bias: Literal["zero", "prior"] = "zero"


@dataclass(frozen=True)
class FinetuneSettings:
    """A task, a protocol and the seeds to repeat it with."""

    task: TaskSettings
    protocol: ProtocolSettings
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class FinetuneRuntime:
    """How it is carried out; not part of the result's identity."""

    device: DeviceName = "auto"
    # CPU threads of PyTorch; null leaves its choice.
    threads: int | None = None


def label_text(value: LabelValue) -> str:
    """A label as text: `true`, not `True`, so that labels from JSON and from a configuration agree."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def finetune_settings(settings: Mapping[str, Any]) -> FinetuneSettings:
    """The typed settings of the `finetune` stage. Raises ConfigError for unknown, missing or impossible values."""
    typed = build(FinetuneSettings, stage_body(settings), "finetune")
    _check_task(typed.task)
    _check_protocol(typed.protocol)
    _require(len(typed.seeds) > 0, "seeds", typed.seeds, "at least one seed")
    _require(len(set(typed.seeds)) == len(typed.seeds), "seeds", typed.seeds, "seeds that differ")
    return typed


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ConfigError(f"finetune.{key}: got {value!r}, expected {expected}")


def _check_task(task: TaskSettings) -> None:
    names = task.label_names
    _require(len(names) >= 2 and len(set(names)) == len(names), "task.labels", task.labels, "two or more that differ")
    _require(len(task.metrics) > 0, "task.metrics", task.metrics, "at least one metric")
    _require(len(set(task.metrics)) == len(task.metrics), "task.metrics", task.metrics, "metrics that differ")
    for metric in task.metrics:
        _require(metric in METRICS, "task.metrics", metric, f"one of {', '.join(sorted(METRICS))}")
    for key in ("train_limit", "validation_limit"):
        limit = getattr(task, key)
        _require(limit is None or limit >= 1, f"task.{key}", limit, "at least 1, or null")
    _require(0 < task.validation_fraction < 1, "task.validation_fraction", task.validation_fraction, "0 < x < 1")
    if task.format == "labelled_lines":
        _require(set(task.files) == set(names), "task.files", sorted(task.files), f"the labels {sorted(names)} as keys")
        return
    _require(set(task.files) == {"train", "validation"}, "task.files", sorted(task.files), "train and validation")
    if task.format == "glue_jsonl":
        _require(len(task.fields) in (1, 2), "task.fields", task.fields, "one or two text fields")


def _check_protocol(protocol: ProtocolSettings) -> None:
    for key, minimum in {"epochs": 1, "batch_size": 1, "max_length": 8}.items():
        value = getattr(protocol, key)
        _require(value >= minimum, f"protocol.{key}", value, f"{minimum} or more")
    for key in ("learning_rate", "epsilon"):
        value = getattr(protocol, key)
        _require(0 < value < math.inf, f"protocol.{key}", value, "a number above 0")
    for key in ("beta1", "beta2", "dropout", "development_fraction"):
        value = getattr(protocol, key)
        _require(0 <= value < 1, f"protocol.{key}", value, "0 <= x < 1")
    _require(0 <= protocol.warmup_fraction <= 1, "protocol.warmup_fraction", protocol.warmup_fraction, "0 to 1")
    _require(0 <= protocol.weight_decay < math.inf, "protocol.weight_decay", protocol.weight_decay, "0 or more")
    norm, patience = protocol.max_gradient_norm, protocol.patience_epochs
    _require(norm is None or 0 < norm < math.inf, "protocol.max_gradient_norm", norm, "a number above 0, or null")
    _require(patience is None or patience >= 1, "protocol.patience_epochs", patience, "at least 1, or null")
    metric = protocol.selection_metric
    _require(metric in METRICS, "protocol.selection_metric", metric, f"one of {', '.join(sorted(METRICS))}")
