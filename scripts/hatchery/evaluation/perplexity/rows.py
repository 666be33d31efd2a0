"""Row classes of the tables that the stage `measure_perplexity` writes, and the metrics among their columns.

A column is a metric if its type contains a `Metric`. Tables, figures and summaries find metrics by this annotation, so
a new metric needs only a field in a row class and the code that measures it. If a field has a default, older results
may lack its column.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from hatchery.artifacts.records import Infinite, Record
from hatchery.settings.base import NonNegative, Range, Share
from hatchery.settings.fields import hints_of, markers_of

PERPLEXITY_FILE, WORDS_FILE, FREQUENCY_FILE = "perplexity.csv", "words.csv", "frequency.csv"

LOG_FREQUENCY, LOG_PROBABILITY, WITHOUT_BIAS = (
    "log_frequency_nats",
    "log_probability_nats",
    "log_probability_without_bias_nats",
)
"""Names of the metrics of a frequency bin. A bin is a group of target tokens with similar frequency in the training
text.
"""
SLOPES = {LOG_PROBABILITY: "frequency_slope", WITHOUT_BIAS: "frequency_slope_without_bias"}
"""Names of the two slopes: regression of log-probability (with and without the output bias) on log-frequency."""
_BIN = "_from_"


@dataclass(frozen=True)
class Metric:
    """Properties of a metric for tables and summaries. A metric is measured for every split.

    `label` is the metric's name in summaries, written after the name of the split; summaries omit a metric without a
    label. If `percent` is true, a fraction is shown in percent, and the metric's name ends in `_percent`. `better` is 1
    if higher values are better and -1 if lower values are better. `better` is 0 if neither direction is better, or if
    the metric's unit (percent, nats) determines which direction is better. `compares_objectives` is true if models with
    different objectives can be compared by the metric.
    """

    label: str = ""
    percent: bool = False
    better: int = 0
    compares_objectives: bool = False


Perplexity = Annotated[float, Range(ge=1.0), Infinite()]


class Measured(Record):
    """Base class of table rows in which some columns are metrics."""

    @classmethod
    def metrics(cls) -> dict[str, tuple[str, Metric]]:
        """Return the metrics of the table: each metric's name with its column and its `Metric`, in the order of the
        columns.
        """
        table: Any = cls
        marked = {column: markers_of(hint, Metric) for column, hint in hints_of(table).items()}
        return {
            f"{column}_percent" if metric.percent else column: (column, metric)
            for column, metrics in marked.items()
            for metric in metrics
        }

    def values(self) -> dict[str, float]:
        """Return the values of the row's metrics by the metrics' names; fractions are converted to percent, and missing
        values are omitted.
        """
        found = {name: (getattr(self, column), metric) for name, (column, metric) in self.metrics().items()}
        return {
            name: 100 * value if metric.percent else value
            for name, (value, metric) in found.items()
            if value is not None
        }


@dataclass(frozen=True)
class SplitScore(Measured):
    """One row of perplexity.csv; `loss_nats` is the mean negative log-likelihood per labelled token.

    `perplexity` is the exponential of the loss (infinite if it exceeds float64). `accuracy` is the fraction of labelled
    tokens to which the model assigns the highest probability. `pseudo_perplexity` is None unless it is requested and
    the model predicts masked tokens.

    Masked diffusion gives each labelled token a weight. Loss and accuracy are then weighted sums over the labelled
    tokens, divided by the number of maskable tokens, and `labelled_tokens` is the number of maskable tokens.
    """

    split: str
    sequences: int
    labelled_tokens: int
    loss_nats: Annotated[NonNegative, Metric()]
    perplexity: Annotated[Perplexity, Metric("perplexity", better=-1)]
    accuracy: Annotated[Share, Metric("accuracy", percent=True)]
    pseudo_perplexity: Annotated[Perplexity | None, Metric("pseudo-perplexity")] = None


@dataclass(frozen=True)
class WordScore(Measured):
    """One row of words.csv: the total loss of a split divided by the number of words in the split.

    The total loss includes the tokens that end documents. The loss per word is comparable between models with different
    tokenizers. `word_perplexity` is the exponential of `loss_nats_per_word`.
    """

    split: str
    words: int
    loss_nats_per_word: float
    word_perplexity: Annotated[Perplexity, Metric("perplexity per word", compares_objectives=True)]


@dataclass(frozen=True)
class FrequencyRow(Record):
    """One row of frequency.csv: the mean of a metric over the target tokens in a bin (a range of token frequency), or
    the slope of a log-probability over the log-frequency for all target tokens of a split.

    `tokens` is the number of these target tokens. `lowest` is the lower end of the bin, as the natural logarithm of the
    frequency, or None for a slope. `standard_error` is the standard error over tokens. It is None for a mean over a
    single token, and for a slope over fewer than three tokens.
    """

    split: str
    lowest: float | None
    tokens: int
    metric: str
    value: float
    standard_error: float | None

    @property
    def task(self) -> str:
        """Return the row's task name in tables. If the row is a slope over log-frequency, this is the name of the
        split. If the row is a mean over a bin (a range of log-frequency), the name also contains the lower end of the
        bin, such as `dev_from_-7.5` for a bin of the split `dev`.
        """
        return self.split if self.lowest is None else f"{self.split}{_BIN}{self.lowest:g}"


def split_of_bin(task: str) -> str:
    """Return the name of the split in `task`, the task name of a frequency bin: `dev` for `dev_from_-7.5` (see
    `FrequencyRow.task`).
    """
    return task.partition(_BIN)[0]


BITS_PER_BYTE = "bits_per_byte"
"""Name of a metric: the loss in bits per byte of the text, which is comparable across tokenizers. It is computed when
results are collected.
"""

HELD_OUT_METRICS = {
    **{name: metric for table in (SplitScore, WordScore) for name, (_, metric) in table.metrics().items()},
    BITS_PER_BYTE: Metric("bits per byte", better=-1),
}
"""Properties of all metrics on held-out text, by name of the measurement."""
