"""Settings of the share of hidden tokens that every sequence draws, of the weights of labels, and of preferred
subwords.

A constant share is masked language modelling. A share drawn from the interval from 0 to 1, with the weights of the
bound, is masked diffusion (Sahoo et al. 2024, arXiv:2406.07524; Shi et al. 2024, arXiv:2406.04329): if the share of
hidden tokens is rate(t) for a uniform t, the loss of a hidden token has the weight rate'(t) / rate(t). The mean over t
of these sums is an upper bound of the negative log-likelihood of a text, for any shape of `rate`. The `cosine` shape
hides few tokens more often (arXiv:2509.05056 trains BabyLM models so).

A hidden token without a label is a denser mask with sparser labels: shares of hidden and of predicted tokens may differ
(Wettig et al. 2023, "Should you mask 15% in masked language modeling?").
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from hatchery.settings.base import Count, Positive, Settings, Share, ShareBelowOne, refused, require

if TYPE_CHECKING:
    import numpy as np


OWN = "objective."
"""Prefix of the names of batch tensors that the objective reads and the model does not."""
WEIGHTS, MASKABLE = f"{OWN}weights", f"{OWN}maskable"
CHOICE, SHOWN, RATES = f"{OWN}choice", f"{OWN}shown", f"{OWN}rates"


@dataclass(frozen=True)
class MaskRates(Settings):
    """Distribution of the share of hidden tokens, drawn for every sequence, and weights of its labels."""

    shape: Literal["uniform", "cosine"] = "uniform"
    """uniform: all shares are equally probable. cosine: 1 - cos(t * pi / 2) for a uniform t, so that small shares are
    more probable."""
    lowest: Share = 0.0
    """Lowest share of hidden tokens."""
    highest: Share = 1.0
    """Highest share of hidden tokens."""
    weights: Literal["equal", "diffusion"] = "equal"
    """equal: mean over labels, as with a constant share. diffusion: a label is weighted by the derivative of the share
    divided by the share, and the sum is divided by the number of maskable tokens. With shares from 0 to 1, this is the
    bound of masked diffusion."""

    def __post_init__(self) -> None:
        require(self.lowest < self.highest, "highest", self.highest, f"more than lowest, {self.lowest:g}")

    @property
    def covers_all(self) -> bool:
        """Return whether the interval covers every share from 0 to 1."""
        return self.lowest == 0 and self.highest == 1

    @property
    def mean(self) -> float:
        """Return the mean share of hidden tokens."""
        within = 0.5 if self.shape == "uniform" else 1 - 2 / math.pi
        return self.lowest + (self.highest - self.lowest) * within

    def at(self, time: float) -> "DrawnRate":
        """Return the drawn share of hidden tokens at `time`, more than 0 and at most 1, with the weight of a label."""
        spread = self.highest - self.lowest
        if self.shape == "uniform":
            share, slope = time, 1.0
        else:
            share, slope = 1 - math.cos(time * math.pi / 2), math.sin(time * math.pi / 2) * math.pi / 2
        rate = self.lowest + spread * share
        return DrawnRate(rate, spread * slope / rate if self.weights == "diffusion" else 1.0)

    def draw(self, generator: "np.random.Generator") -> "DrawnRate":
        """Draw a share of hidden tokens with one uniform number."""
        # The generator's numbers can be 0 and are below 1; a share of 0 would have no weight.
        return self.at(1.0 - float(generator.random()))


class DrawnRate(NamedTuple):
    """The share of hidden tokens of a sequence."""

    rate: float
    weight: float
    """Weight of each label."""


@dataclass(frozen=True)
class TokenPreference(Settings):
    """Subwords that are hidden more often than others."""

    by: Literal["frequency", "loss", "accuracy"]
    """frequency: hide rare subwords of the training text more often. loss, accuracy: hide subwords more often that the
    model predicts badly."""
    power: Positive = 0.5
    """Exponent of the preference, applied to the inverse count, the mean loss or the share of wrong predictions."""
    interval_steps: Count = 200
    """With loss and accuracy: number of steps between two updates of the preference."""
    memory: ShareBelowOne = 0.2
    """With loss and accuracy: weight of a subword's previous value in each update."""

    def __post_init__(self) -> None:
        if self.adapts:
            return
        defaults = {"interval_steps": 200, "memory": 0.2}
        for key, default in defaults.items():
            if (value := getattr(self, key)) != default:
                raise refused(
                    key, value, "this key only with by: loss or accuracy, because by: frequency never changes"
                )

    @property
    def adapts(self) -> bool:
        """Return whether the preference follows the model."""
        return self.by != "frequency"
