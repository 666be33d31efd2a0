"""The tables of the stage `measure_perplexity`, row by row, and which of their columns are metrics.

A metric of a language model is a column with a `Metric` in its type. Tables, figures and summaries find it there: what
measures it and its field in a row are all that a new one takes. The column of a field with a default may be missing in
what was measured before there was such a field.
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
"""What is measured of right tokens that are about equally frequent."""
SLOPES = {LOG_PROBABILITY: "frequency_slope", WITHOUT_BIAS: "frequency_slope_without_bias"}
"""What the slope of each log-probability on the log-frequency is called."""
_BIN = "_from_"


@dataclass(frozen=True)
class Metric:
    """What tables and summaries need to know of a metric. It is measured for every split.

    `label` is what summaries for people call it, behind the name of the split; without one, they leave it out. A
    fraction is shown in `percent`, and its name then ends so. `better` is 1 where more is better, -1 where less is, 0
    where nobody says; of percent and nats it is known. `compares_objectives` tells that models of different objectives
    may be compared by it.
    """

    label: str = ""
    percent: bool = False
    better: int = 0
    compares_objectives: bool = False


Perplexity = Annotated[float, Range(ge=1.0), Infinite()]


class Measured(Record):
    """A row with metrics."""

    @classmethod
    def metrics(cls) -> dict[str, tuple[str, Metric]]:
        """Column and metric by the name of the measurement, in the order of the columns."""
        table: Any = cls
        marked = {column: markers_of(hint, Metric) for column, hint in hints_of(table).items()}
        return {
            f"{column}_percent" if metric.percent else column: (column, metric)
            for column, metrics in marked.items()
            for metric in metrics
        }

    def values(self) -> dict[str, float]:
        """What was measured, by the name of the measurement; fractions in percent."""
        found = {name: (getattr(self, column), metric) for name, (column, metric) in self.metrics().items()}
        return {
            name: 100 * value if metric.percent else value
            for name, (value, metric) in found.items()
            if value is not None
        }


@dataclass(frozen=True)
class SplitScore(Measured):
    """One row of perplexity.csv; `loss_nats` is the mean negative log-likelihood per labelled token.

    `perplexity` is its exponential (infinite beyond float64), `accuracy` the share of labelled tokens that the model
    finds most probable. `pseudo_perplexity` is None where it was not asked for.
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
    """One row of words.csv: the loss of a whole split, ends of documents included, shared out among its words.

    So models with different tokenizers can be compared. `word_perplexity` is the exponential of `loss_nats_per_word`.
    """

    split: str
    words: int
    loss_nats_per_word: float
    word_perplexity: Annotated[Perplexity, Metric("perplexity per word", compares_objectives=True)]


@dataclass(frozen=True)
class FrequencyRow(Record):
    """One row of frequency.csv: a mean over the `tokens` of a bin, or a slope over all of the split.

    `lowest` is where the bin begins (nats), None of a slope. `standard_error` is that over tokens, None of one token.
    """

    split: str
    lowest: float | None
    tokens: int
    metric: str
    value: float
    standard_error: float | None

    @property
    def task(self) -> str:
        """What the tables call the split, or a bin of it: `dev_from_-7.5`."""
        return self.split if self.lowest is None else f"{self.split}{_BIN}{self.lowest:g}"


def split_of_bin(task: str) -> str:
    """The split that a bin of tokens is of."""
    return task.partition(_BIN)[0]


BITS_PER_BYTE = "bits_per_byte"
"""What a loss is per byte of the text, which is the same for every tokenizer: no file of a single run has it."""

HELD_OUT_METRICS = {
    **{name: metric for table in (SplitScore, WordScore) for name, (_, metric) in table.metrics().items()},
    BITS_PER_BYTE: Metric("bits per byte", better=-1),
}
"""The metrics of a language model by the names of the measurements."""
