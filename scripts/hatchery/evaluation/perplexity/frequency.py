"""How probable a model finds right tokens by how frequent they are, with the bias of its output layer and without it.

Source: "A Natural Bias for Language Generation Models", Section 4.2 and Figure 4, in the reading of
docs/papers/natural-bias.md, "Frequency": x is the logarithm of the share of a type among the targets of the training
text (one added to every count, so that all are finite), v the log-probability of a right token, from softmax(W phi + b)
and, where the bias is dropped, from softmax(W phi). Bins are as wide everywhere and begin at whole multiples of their
width, so the bins of all models and seeds are the same. The slopes are those of the least-squares line of v on x over
tokens.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from hatchery.evaluation.perplexity.settings import LOG_FREQUENCY, LOG_PROBABILITY, SLOPES, WITHOUT_BIAS
from hatchery.modeling.count_distributions import smoothed_distribution

FREQUENCY_FILE = "frequency.csv"


@dataclass(frozen=True)
class FrequencyRow:
    """One row of frequency.csv: a mean over the `tokens` of a bin, or a slope over all of the split.

    `lowest` is where the bin begins (nats), None of a slope. `standard_error` is that over tokens, None of one token.
    """

    split: str
    lowest: float | None
    tokens: int
    metric: str
    value: float
    standard_error: float | None


class FrequencyTally:
    """Sums over tokens by their type, so its memory is that of the vocabulary."""

    def __init__(self, target_counts: np.ndarray) -> None:
        """`target_counts` are the targets of the training text: int64 [V]."""
        self.types = len(target_counts)
        """Types of the vocabulary."""
        self._x = np.log(smoothed_distribution(target_counts))
        self._count = np.zeros(self.types, dtype=np.int64)
        self._sums = {name: np.zeros((2, self.types)) for name in SLOPES}

    def add(self, targets: Tensor, log_probabilities: Tensor, without_bias: Tensor) -> None:
        """Tokens int64 [N] with their log-probabilities [N] from the whole model, and without its bias."""
        types, size = targets.cpu().numpy(), self.types
        self._count += np.bincount(types, minlength=size)
        for name, found in ((LOG_PROBABILITY, log_probabilities), (WITHOUT_BIAS, without_bias)):
            values = found.cpu().double().numpy()
            for power in (1, 2):
                self._sums[name][power - 1] += np.bincount(types, weights=values**power, minlength=size)

    def rows(self, split: str, bin_nats: float) -> Iterator[FrequencyRow]:
        """The slopes, and the bins of so many nats that have a token, from rare to frequent."""
        for metric, slope in SLOPES.items():
            if (line := self._slope(*self._sums[metric])) is not None:
                yield FrequencyRow(split, None, int(self._count.sum()), slope, *line)
        bins = np.floor(self._x / bin_nats).astype(np.int64)
        moments = {LOG_FREQUENCY: self._count * np.stack([self._x, self._x**2]), **self._sums}
        for place in np.unique(bins[self._count > 0]).tolist():
            among = bins == place
            tokens = int(self._count[among].sum())
            for metric, (first, second) in moments.items():
                mean = float(first[among].sum()) / tokens
                spread = float(second[among].sum()) - tokens * mean**2
                yield FrequencyRow(
                    split, round(place * bin_nats, 9), tokens, metric, mean, _standard_error(spread, tokens)
                )

    def _slope(self, values: np.ndarray, squares: np.ndarray) -> tuple[float, float | None] | None:
        """Slope over tokens and its standard error; None where all tokens are equally frequent."""
        tokens = int(self._count.sum())
        mean_x, mean_v = float(self._count @ self._x) / tokens, float(values.sum()) / tokens
        from_mean = self._x - mean_x
        in_x = float(self._count @ from_mean**2)
        if in_x <= 0:
            return None
        slope = float(from_mean @ values) / in_x
        left = float(squares.sum()) - tokens * mean_v**2 - slope**2 * in_x
        return slope, None if tokens < 3 else math.sqrt(max(left, 0.0) / (tokens - 2) / in_x)


def _standard_error(squares: float, tokens: int) -> float | None:
    """Of a mean, from the sum of squared distances from it."""
    return None if tokens < 2 else math.sqrt(max(squares, 0.0) / (tokens - 1) / tokens)
