"""Settings for shares of hidden tokens that sequences draw, for weights of labels, and for preferred subwords.

A constant share is masked language modelling. A share from 0 to 1 that each sequence draws, with weights `diffusion`,
is masked diffusion (Sahoo et al. 2024, arXiv:2406.07524; Shi et al. 2024, arXiv:2406.04329): if the share is rate(t)
for a uniform t, the loss of a hidden token has the weight rate'(t) / rate(t). The weighted sum of losses, averaged over
t, is an upper bound of the negative log-likelihood of a text, for any function `rate`. With the shape `cosine`, small
shares are more probable (arXiv:2509.05056 trains BabyLM models with this shape).

The share of hidden tokens may exceed the share of predicted tokens: then some hidden tokens have no label (Wettig et
al. 2023, "Should you mask 15% in masked language modeling?").
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from hatchery.settings.base import Count, Positive, Settings, Share, ShareBelowOne, conflict, require

if TYPE_CHECKING:
    import numpy as np


OWN = "objective."
"""Prefix of the names of batch tensors that the objective reads, but not the model."""
WEIGHTS, MASKABLE = f"{OWN}weights", f"{OWN}maskable"
CHOICE, SHOWN, RATES = f"{OWN}choice", f"{OWN}shown", f"{OWN}rates"


@dataclass(frozen=True)
class MaskRates(Settings):
    """Distribution from which every sequence draws its share of hidden tokens, and weights of the labels."""

    shape: Literal["uniform", "cosine"] = "uniform"
    """uniform: all shares are equally probable. cosine: the share is 1 - cos(t * pi / 2) for a uniform t, so small
    shares are more probable."""
    lowest: Share = 0.0
    """Lowest share of hidden tokens."""
    highest: Share = 1.0
    """Highest share of hidden tokens."""
    weights: Literal["equal", "diffusion"] = "equal"
    """equal: mean over the labels, as with a constant share. diffusion: the weight of a label is the derivative of the
    share divided by the share, and the sum is divided by the number of maskable tokens; with shares from 0 to 1, the
    loss is the bound of masked diffusion."""

    def __post_init__(self) -> None:
        require(self.lowest < self.highest, "highest", self.highest, f"more than lowest, {self.lowest:g}")

    @property
    def covers_all(self) -> bool:
        """True if the shares range from 0 to 1."""
        return self.lowest == 0 and self.highest == 1

    @property
    def mean(self) -> float:
        """Mean share of hidden tokens."""
        within = 0.5 if self.shape == "uniform" else 1 - 2 / math.pi
        return self.lowest + (self.highest - self.lowest) * within

    def at(self, time: float) -> "DrawnRate":
        """Return the share of hidden tokens for `time`, a number above 0 and at most 1, with the weight of a label."""
        spread = self.highest - self.lowest
        if self.shape == "uniform":
            share, slope = time, 1.0
        else:
            share, slope = 1 - math.cos(time * math.pi / 2), math.sin(time * math.pi / 2) * math.pi / 2
        rate = self.lowest + spread * share
        return DrawnRate(rate, spread * slope / rate if self.weights == "diffusion" else 1.0)

    def draw(self, generator: "np.random.Generator") -> "DrawnRate":
        """Draw a share of hidden tokens with one uniform number."""
        # The generator draws from [0, 1), but the weight of a label is undefined for 0. Therefore 1 minus the number is
        # used, which is in (0, 1].
        return self.at(1.0 - float(generator.random()))


class DrawnRate(NamedTuple):
    """Share of hidden tokens of a sequence, and weight of its labels."""

    rate: float
    weight: float
    """Weight of each label."""


@dataclass(frozen=True)
class TokenPreference(Settings):
    """Preference for hiding certain subwords."""

    by: Literal["frequency", "loss", "accuracy"]
    """frequency: hide rare subwords of the training text more often. loss, accuracy: hide subwords more often if the
    model predicts them badly."""
    power: Positive = 0.5
    """Exponent of the preference. Its base is the inverse count, the mean loss or the share of wrong predictions."""
    interval_steps: Count = 200
    """With loss and accuracy: number of steps between two updates of the preferences."""
    memory: ShareBelowOne = 0.2
    """With loss and accuracy: weight of a subword's previous value in an update."""

    def __post_init__(self) -> None:
        if self.adapts:
            return
        defaults = {"interval_steps": 200, "memory": 0.2}
        for key, default in defaults.items():
            if getattr(self, key) != default:
                reason = "only `by: loss` and `by: accuracy` update the preference"
                raise conflict(key, getattr(self, key), "`by: frequency`", reason)

    @property
    def adapts(self) -> bool:
        """True if the preference changes with the model's predictions."""
        return self.by != "frequency"
