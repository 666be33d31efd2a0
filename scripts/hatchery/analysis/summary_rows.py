"""Rows of an experiment's `summary.csv` with the digests behind them, their number, and their anchor on a page."""

from dataclasses import dataclass
from pathlib import Path

from hatchery.storage.csv_tables import read_rows
from hatchery.storage.verified import vouched

PROVENANCE_ROWS = 3000
"""Rows of a summary that its page of provenance shows; `make trace` follows every one."""
SELECTORS = ("model", "suite", "task", "metric")
_COLUMNS = (
    *("experiment", *SELECTORS, "mean", "std", "n", "n_failed"),
    *("published_mean", "published_std", "published_source", "difference", "verdict", "manifests"),
)


@dataclass(frozen=True)
class NumberedRow:
    """A row and its number, counted from 1 without the header."""

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


def read_summary(path: str | Path) -> list[NumberedRow]:
    """All rows. Raises ManifestError when the table is missing or altered, EvaluationError when it is no summary."""
    rows = read_rows(vouched(path), _COLUMNS, key=SELECTORS)
    return [NumberedRow(number, row.values) for number, row in enumerate(rows, start=1)]
