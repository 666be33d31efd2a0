"""What a row of an experiment's `summary.csv` is; its rows as they are printed, with their anchors on a page."""

from dataclasses import dataclass, fields
from pathlib import Path

from hatchery.analysis.published import Verdict
from hatchery.artifacts.records import Record, read_records, read_rows
from hatchery.artifacts.verified import vouched

PROVENANCE_ROWS = 3000
"""Rows of a summary that its page of provenance shows; `make trace` follows every one."""
BLIND_GUESS = "blind guess"
"""What tables call `blind_guess`."""
NORMAL_95 = 1.96
"""Deviations of a normal distribution on either side of its mean that hold 95 % of it."""
SELECTORS = ("model", "suite", "task", "metric")


@dataclass(frozen=True)
class SummaryRow(Record):
    """One row of `summary.csv`; the fields are its columns, in order, and None is an empty field.

    `mean` and `std` are those of the `n` runs that gave a number. `n_failed` of them failed (`aggregates`), and
    `mean_without_failed` is the mean of the others; `n_without_number` more runs gave none.
    `sampling_deviation` is what the number of items gives a single run; `blind_guess` is what a guess has that does not
    see them. `difference` is `mean` minus published, in the unit of the metric. `manifests` holds the first 12
    hexadecimal digits of the SHA-256 of every manifest that the row was computed from, sorted and joined by semicolons.
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


COLUMNS = tuple(column.name for column in fields(SummaryRow))


@dataclass(frozen=True)
class NumberedRow:
    """The texts of a row, and its number, counted from 1 without the header."""

    number: int
    values: dict[str, str]

    @property
    def digests(self) -> list[str]:
        """Beginnings of the digests of the manifests behind the row."""
        return [digest for digest in self.values["manifests"].split(";") if digest]

    @property
    def anchor(self) -> str:
        """Name of the row on the page of provenance."""
        return row_anchor(*(self.values[column] for column in SELECTORS))

    def label(self) -> str:
        """What the row is about, in the order of the columns."""
        return " ".join(self.values[column] for column in SELECTORS)

    def runs(self) -> str:
        """Number of runs, and what is to be said of those that failed or gave no number."""
        row = self.values
        without = float(row["mean_without_failed"]) if row["mean_without_failed"] else None
        n, failed, missing = (int(row[column]) for column in ("n", "n_failed", "n_without_number"))
        return runs_text(n, failed, missing, without, decimals_of(row["metric"]))

    def value(self) -> str:
        """Mean, deviation, runs and the comparison with the published value, as far as there are any."""
        row = self.values
        parts = [row["mean"] or "no value"]
        parts += [f"± {row['std']}"] if row["std"] else []
        parts.append(f"(n = {self.runs()})")
        if row["published_mean"]:
            deviation = f" ± {row['published_std']}" if row["published_std"] else ""
            parts.append(f"published {row['published_mean']}{deviation} in {row['published_source']}: {row['verdict']}")
        return " ".join(parts)


def runs_text(n: int, n_failed: int, n_without_number: int, mean_without_failed: float | None, decimals: int) -> str:
    """`5`, or `5, 2 failed (64.0 without), 1 more without a number`."""
    parts = [str(n)]
    if n_failed:
        without = "" if mean_without_failed is None else f" ({mean_without_failed:.{decimals}f} without)"
        parts.append(f"{n_failed} failed{without}")
    if n_without_number:
        parts.append(f"{n_without_number} more without a number")
    return ", ".join(parts)


def decimals_of(metric: str) -> int:
    """Decimals for people: one for percentages, two for what is measured otherwise."""
    return 1 if metric.endswith("_percent") else 2


def interval_text(mean: float, sampling_deviation: float | None, metric: str) -> str:
    """The 95 % interval of a single run over the choice of its items, `59.1 to 62.9`; empty where that is not known."""
    if sampling_deviation is None:
        return ""
    low, high = (mean + sign * NORMAL_95 * sampling_deviation for sign in (-1, 1))
    if metric.endswith("_percent"):
        low, high = max(low, 0.0), min(high, 100.0)
    return f"{low:.{decimals_of(metric)}f} to {high:.{decimals_of(metric)}f}"


def row_anchor(model: str, suite: str, task: str, metric: str) -> str:
    """The anchor on `provenance.html` that a number of another page can link to."""
    return "-".join(("row", model, suite, task, metric))


def read_summary(path: str | Path) -> list[SummaryRow]:
    """All rows. Raises ManifestError when the table is missing or altered, EvaluationError when it is no summary."""
    return read_records(vouched(path), SummaryRow, SELECTORS)


def numbered_rows(path: str | Path) -> list[NumberedRow]:
    """All rows as they are printed. Raises like `read_summary`."""
    rows = read_rows(vouched(path), COLUMNS, SELECTORS)
    return [NumberedRow(number, texts) for number, (_, texts) in enumerate(rows, start=1)]
