"""Settings for random shares of masked tokens, for weights of labels, and for hiding some subwords more often than
others.

With a constant share of masked tokens, the objective is masked language modelling. If each sequence draws a share from
0 to 1 and `weights` is `diffusion`, the objective is masked diffusion (Sahoo et al. 2024, arXiv:2406.07524; Shi et al.
2024, arXiv:2406.04329).

In masked diffusion, the share is rate(t) for a uniform t from 0 to 1, and the loss of a masked token has the weight
rate'(t) / rate(t). The function `rate` increases from 0 to 1. For any such function, the weighted sum of losses,
averaged over t, is an upper bound of the negative log-likelihood of a text. With the shape `cosine`, small shares are
more probable than large shares (arXiv:2509.05056 trains BabyLM models with this shape).

The share of masked tokens may exceed the share of predicted tokens: then some masked tokens have no label (Wettig et
al. 2023, "Should you mask 15% in masked language modeling?").
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from hatchery.settings.base import Count, Positive, Settings, Share, ShareBelowOne, conflict, require

if TYPE_CHECKING:
    import numpy as np


OWN = "objective."
"""Prefix of the names of batch tensors that only the objective reads, not the model."""
WEIGHTS, MASKABLE = f"{OWN}weights", f"{OWN}maskable"
CHOICE, SHOWN, RATES = f"{OWN}choice", f"{OWN}shown", f"{OWN}rates"


@dataclass(frozen=True)
class MaskRates(Settings):
    """Distribution from which each sequence draws its share of masked tokens, and weights of the labels in the loss."""

    shape: Literal["uniform", "cosine"] = "uniform"
    """`uniform`: all shares are equally probable. `cosine`: the share is 1 - cos(t * pi / 2) for a t drawn uniformly
    from 0 to 1, so small shares are more probable.
    """
    lowest: Share = 0.0
    """Smallest share of masked tokens."""
    highest: Share = 1.0
    """Largest share of masked tokens."""
    weights: Literal["equal", "diffusion"] = "equal"
    """Weights of the labels in the loss. `equal`: the loss is the mean over the labels, as with a constant share.
    `diffusion`: the weight of a label is the derivative of the share with respect to the drawn number t, divided by the
    share (for `uniform`, the share grows linearly with t). The weighted sum is divided by the number of maskable
    tokens. With shares from 0 to 1, this loss is masked diffusion's upper bound of the negative log-likelihood.
    """

    def __post_init__(self) -> None:
        require(self.lowest < self.highest, "highest", self.highest, f"more than lowest, {self.lowest:g}")

    @property
    def covers_all(self) -> bool:
        """True if sequences can have any share of masked tokens from 0 to 1."""
        return self.lowest == 0 and self.highest == 1

    @property
    def mean(self) -> float:
        """Mean share of masked tokens."""
        within = 0.5 if self.shape == "uniform" else 1 - 2 / math.pi
        return self.lowest + (self.highest - self.lowest) * within

    def at(self, time: float) -> "DrawnRate":
        """Return the share of masked tokens at t = `time`, with the weight of each label in the loss. `time` is above 0
        and at most 1; the share is a function of t that `shape` selects.
        """
        spread = self.highest - self.lowest
        if self.shape == "uniform":
            share, slope = time, 1.0
        else:
            share, slope = 1 - math.cos(time * math.pi / 2), math.sin(time * math.pi / 2) * math.pi / 2
        rate = self.lowest + spread * share
        return DrawnRate(rate, spread * slope / rate if self.weights == "diffusion" else 1.0)

    def draw(self, generator: "np.random.Generator") -> "DrawnRate":
        """Return a random share of masked tokens, drawn with one uniform number."""
        # Use 1 minus the drawn number. The generator draws from [0, 1), but at time 0 the weight of a label is
        # undefined.
        return self.at(1.0 - float(generator.random()))


class DrawnRate(NamedTuple):
    """Share of masked tokens in one sequence, and weight of the sequence's labels."""

    rate: float
    weight: float
    """Weight of each label of the sequence."""


@dataclass(frozen=True)
class TokenPreference(Settings):
    """Settings for hiding certain subwords more often than others."""

    by: Literal["frequency", "loss", "accuracy"]
    """Subwords that are hidden more often. `frequency`: subwords that are rare in the training text. `loss`,
    `accuracy`: subwords that the model predicts badly.
    """
    power: Positive = 0.5
    """Exponent p: the preference for a subword is x to the power of p, where x is the inverse of the count plus 1 (`by:
    frequency`), the mean loss (`by: loss`) or the share of wrong predictions (`by: accuracy`).
    """
    interval_steps: Count = 200
    """For `by: loss` and `by: accuracy`: number of steps between two updates of the preferences."""
    memory: ShareBelowOne = 0.2
    """For `by: loss` and `by: accuracy`: weight of a subword's previous mean loss or error rate in an update."""

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
        """True if the preference for a subword changes during training, with the model's predictions."""
        return self.by != "frequency"
