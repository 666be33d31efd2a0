"""A row of an experiment's summary: one score of a model, its displayed texts, and the link to its provenance.

`summary.csv` and `summary.parquet` contain no time, host or duration, and numbers are rounded to four decimals. A
repeated computation therefore yields identical bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa

from hatchery.analysis.aggregates import NORMAL_95
from hatchery.analysis.published_values import Verdict
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.checksums import verified_view
from hatchery.artifacts.parquet import read_table, write_table
from hatchery.errors import ManifestError
from hatchery.sanitize import csv_text

DECIMALS = 4
"""Number of decimals of all numbers in a summary."""

PROVENANCE_ROWS = 3000
"""Maximum number of summary rows on the page of provenance; `make trace` shows all rows."""
SELECTORS = ("model", "suite", "task", "metric")


@dataclass(frozen=True)
class SummaryRow:
    """One row of `summary.csv`. The fields are the columns, in order; None is an empty field.

    `mean` and `std` are computed over the `n` runs that have a score; `n_failed` of these runs failed: their
    predictions are constant or uncorrelated with the labels. `mean_without_failed` is the mean of the runs that did not
    fail. `n_without_number` further runs have no score. `sampling_deviation` is the standard deviation of a single run
    due to the choice of test items. `blind_guess` is the score of guesses that do not use the items. `seeds` is the
    number of pretraining seeds. `basis` names the predicted tokens, tokenizer, text and scoring method; only scores
    with equal `basis` are comparable (`evaluation.basis`). `difference` is `mean` minus the published value, in the
    unit of the metric. `manifests` identifies all manifests from which the row was computed: the first 12 hexadecimal
    digits of each SHA-256, sorted and joined by semicolons.
    """

    experiment: str
    model: str
    suite: str
    task: str
    metric: str
    mean: float | None
    std: float | None
    n: int
    n_failed: int
    mean_without_failed: float | None
    n_without_number: int
    published_mean: float | None
    published_std: float | None
    published_source: str
    difference: float | None
    verdict: Verdict
    manifests: str
    sampling_deviation: float | None = None
    blind_guess: float | None = None
    seeds: int = 1
    basis: str = ""

    @property
    def digests(self) -> list[str]:
        """First digits of the SHA-256 of the manifests from which the row was computed."""
        return [digest for digest in self.manifests.split(";") if digest]

    @property
    def selectors(self) -> tuple[str, str, str, str]:
        """Model, suite, task and metric of the row, in the order of the columns."""
        return self.model, self.suite, self.task, self.metric

    @property
    def anchor(self) -> str:
        """Anchor of the row on the page of provenance."""
        return row_anchor(*self.selectors)

    def printed(self, column: str) -> str:
        """Return a field as in `summary.csv`: floats with four decimals, empty for None."""
        value = getattr(self, column)
        return "" if value is None else f"{value:.{DECIMALS}f}" if isinstance(value, float) else str(value)

    def whole(self) -> str:
        """Return the row as text: mean, deviation, number of runs and, if there is a published value, this value and
        the verdict of the comparison.
        """
        parts = [self.printed("mean") or "no value"]
        parts += [f"± {self.printed('std')}"] if self.std is not None else []
        parts.append(f"(n = {self.runs()})")
        if self.published_mean is not None:
            deviation = "" if self.published_std is None else f" ± {self.printed('published_std')}"
            published = f"{self.printed('published_mean')}{deviation}"
            parts.append(f"published {published} in {self.published_source}: {self.verdict}")
        return " ".join(parts)

    def published(self, decimals: int | None = None) -> str:
        """Return the published value with its deviation; empty if there is no published value."""
        if not self.verdict or self.published_mean is None:
            return ""
        digits = decimals_of(self.metric) if decimals is None else decimals
        deviation = "" if self.published_std is None else f" ± {self.published_std:.{digits}f}"
        return f"{self.published_mean:.{digits}f}{deviation}"

    def runs(self, decimals: int | None = None) -> str:
        """Return the numbers of runs, of failed runs and of runs without a score as text: `5`, or `5, 2 failed (64.0
        without), 1 more without a number`. Here 64.0 is the mean of the runs that did not fail.
        """
        parts = [str(self.n)]
        if self.n_failed:
            without = self.mean_without_failed
            digits = decimals_of(self.metric) if decimals is None else decimals
            parts.append(f"{self.n_failed} failed" + ("" if without is None else f" ({without:.{digits}f} without)"))
        if self.n_without_number:
            parts.append(f"{self.n_without_number} more without a number")
        return ", ".join(parts)

    def interval(self) -> str:
        """Return the 95 % interval of a single run's score, due to the choice of test items, as text: `59.1 to 62.9`.
        The text is empty if the interval is unknown.
        """
        if self.mean is None or self.sampling_deviation is None:
            return ""
        low, high = (self.mean + sign * NORMAL_95 * self.sampling_deviation for sign in (-1, 1))
        if self.metric.endswith("_percent"):
            low, high = max(low, 0.0), min(high, 100.0)
        return f"{low:.{decimals_of(self.metric)}f} to {high:.{decimals_of(self.metric)}f}"

    @property
    def starred(self) -> bool:
        """True if any run failed or has no score. Tables mark these rows with an asterisk."""
        return bool(self.n_failed or self.n_without_number)

    @property
    def noise(self) -> float:
        """Return the noise of the mean; infinity if the noise is unknown.

        For several runs, the noise is their standard deviation. For a single run, the noise is half the width of the 95
        % interval due to the choice of test items.
        """
        if self.std is not None:
            return self.std
        return math.inf if self.sampling_deviation is None else NORMAL_95 * self.sampling_deviation

    @property
    def readings(self) -> tuple[float, ...]:
        """Return `mean` (over all runs with a score) and, if runs failed, `mean_without_failed`; empty if the row has
        no mean.
        """
        failed = self.mean_without_failed if self.n_failed else None
        return tuple(mean for mean in (self.mean, failed) if mean is not None)


COLUMNS = tuple(column.name for column in fields(SummaryRow))


def summarised_text(value: float, decimals: int = 1) -> str:
    """Return the displayed text of a number: rounded to the four decimals of `summary.csv`, and then to `decimals`.

    Figures and tables thus show the same number: 50.74999 is 50.7 if rounded once, but 50.8 if rounded twice.
    """
    return f"{round(value, DECIMALS):.{decimals}f}"


def decimals_of(metric: str) -> int:
    """Return the number of decimals that tables show: one for percentages, two for other units."""
    return 1 if metric.endswith("_percent") else 2


def row_anchor(model: str, suite: str, task: str, metric: str) -> str:
    """Return the HTML anchor of a summary row on `provenance.html`. Other pages link to this anchor."""
    return "-".join(("row", model, suite, task, metric))


def read_summary(path: str | Path) -> list[SummaryRow]:
    """Read all rows of a `summary.parquet`. Raises ManifestError if the file is missing, was altered, or is not a
    summary.
    """
    table = read_table(verified_view(path))
    if table.column_names != list(COLUMNS):
        raise ManifestError(
            f"{path}: the columns of this file are not the columns of a summary; remove the file and run the same "
            "command again"
        )
    return [SummaryRow(**row) for row in table.to_pylist()]


_ARROW = {float: pa.float64(), float | None: pa.float64(), int: pa.int32()}


def write_csv(path: str | Path, rows: Sequence[SummaryRow]) -> None:
    """Write the rows as CSV with a header. Floats have four decimals, and None is an empty field."""
    write_text(path, csv_text(COLUMNS, ([row.printed(column) for column in COLUMNS] for row in rows)))


def write_parquet(path: str | Path, rows: Sequence[SummaryRow]) -> None:
    """Write the rows as Parquet: float64 (null for an empty field), int32 for counts, and strings."""
    kinds = get_type_hints(SummaryRow)
    schema = pa.schema([(column, _ARROW.get(kinds[column], pa.string())) for column in COLUMNS])
    write_table(path, pa.Table.from_pylist([asdict(row) for row in rows], schema=schema))
