"""Where the output layer of a pretraining run starts; `hatchery.pretraining.output_bias` does it.

Source: "A Natural Bias for Language Generation Models" section 3; reference notes, sections 2 and 3. The default is the
zero bias of all papers here; values that exclude each other are refused with the reason.
"""

import math
from dataclasses import dataclass
from typing import Literal

from hatchery.errors import ConfigError
from hatchery.settings.fields import Settings


@dataclass(frozen=True)
class OutputBiasSettings(Settings):
    """How the output layer starts. Raises ConfigError for impossible values."""

    kind: Literal["zero", "unigram", "none"] = "zero"
    """Bias 0, the log-prior of the labels, or no bias at all; all three start from the same matrix."""
    smoothing: float = 1.0
    """Added to the count of every type."""
    label_smoothing: float = 0.0
    """If above 0, the share of the uniform distribution that is mixed in, instead of `smoothing`."""
    counts: Literal["labels", "corpus"] = "labels"
    """Labels of the run's own masking, or tokens of the training corpus that can be masked."""
    counted_examples: int | None = 100_000
    """At most so many examples are masked to count labels; null is all."""
    centred: bool = False
    """Whether the mean is subtracted from the log-prior: the same model, a smaller norm."""
    weight_scale: float | Literal["own", "unit", "centred", "frobenius"] = "own"
    """The matrix as the model's initialiser gives it, or drawn from N(0, 1/d) at a scale (untied embeddings only)."""
    report: bool = False
    """Whether a run with kind zero or none reports its first step too; it has to count labels for that."""

    def __post_init__(self) -> None:
        _require(0 <= self.smoothing < math.inf, "smoothing", self.smoothing, "a number of 0 or more")
        _require(0 <= self.label_smoothing <= 1, "label_smoothing", self.label_smoothing, "a number from 0 to 1")
        _require(
            self.smoothing + self.label_smoothing > 0, "smoothing", self.smoothing, "above 0: most labels are rare"
        )
        counted = self.counted_examples
        _require(counted is None or counted >= 1, "counted_examples", counted, "at least 1, or null")
        scale = self.weight_scale
        _require(isinstance(scale, str) or 0 < scale < math.inf, "weight_scale", scale, "a number above 0")
        # The paper states its rule for all models, but against a bias of 0 it would leave a matrix of zeros.
        matches = scale in ("centred", "frobenius")
        _require(not matches or self.kind == "unigram", "weight_scale", scale, "own, unit or a number without a prior")


def _require(condition: bool, key: str, value: object, expected: str) -> None:
    if not condition:
        raise ConfigError(f"pretrain.output_bias.{key}: got {value!r}, expected {expected}")
