"""What a row of an experiment's `summary.csv` is; its rows as they are printed, with their anchors on a page."""

from dataclasses import dataclass, fields
from pathlib import Path

from hatchery.analysis.published import Verdict
from hatchery.storage.records import Record, read_records, read_rows
from hatchery.storage.verified import vouched

PROVENANCE_ROWS = 3000
"""Rows of a summary that its page of provenance shows; `make trace` follows every one."""
SELECTORS = ("model", "suite", "task", "metric")


@dataclass(frozen=True)
class SummaryRow(Record):
    """One row of `summary.csv`; the fields are its columns, in order, and None is an empty field.

    `difference` is ours minus published, in the unit of the metric. `manifests` holds the first 12 hexadecimal digits
    of the SHA-256 of every manifest that the row was computed from, sorted and joined by semicolons.
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
    published_mean: float | None
    published_std: float | None
    published_source: str
    difference: float | None
    verdict: Verdict
    manifests: str


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

    def value(self) -> str:
        """Mean, deviation, runs and the comparison with the published value, as far as there are any."""
        row = self.values
        parts = [row["mean"] or "no value"]
        parts += [f"± {row['std']}"] if row["std"] else []
        parts.append(f"(n = {row['n']}, {row['n_failed']} failed)")
        if row["published_mean"]:
            deviation = f" ± {row['published_std']}" if row["published_std"] else ""
            parts.append(f"published {row['published_mean']}{deviation} in {row['published_source']}: {row['verdict']}")
        return " ".join(parts)


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
