"""Results of an evaluation by `hatchery.evaluate`, without an experiment: a data frame with a row for each score and
its interval, and a summary of the main scores.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import polars as pl

from hatchery.evaluation.evaluation import TidyRow
from hatchery.evaluation.minimal_pairs.measurements import PARADIGM_AVERAGE, PHENOMENON_AVERAGE

NORMAL_95 = 1.96
COLUMNS = {
    "suite": pl.String,
    "task": pl.String,
    "level": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "items": pl.Int64,
    "blind_guess": pl.Float64,
    "finetuning_seed": pl.Int64,
    "learning_rate": pl.Float64,
    "failed": pl.String,
    "settings": pl.String,
}
"""Columns of rows, as in docs/tables.md; `low` and `high` are the bounds of the 95 % confidence interval due to the
sampling of the items.
"""
IN_SUMMARY = ("average", "split", "task")
TIES_CORRECT = "ties_correct"
BELOW_0 = ("mcc", "pearson", "spearman", "correlation", "gain")
"""A metric in percent may be negative if its name contains one of these substrings."""


@dataclass(frozen=True)
class EvaluationResult:
    """The scores of one model on one suite or task.

    `rows` has one row for each score, with the columns COLUMNS; `summary` has the main scores. `tables` are the tables
    that the workflow would also write, by file name, such as scores of single items. `texts` are the files that are not
    tables. `facts` are the values that a manifest lists under `measures`. A metric's name contains its unit.
    """

    model: str
    name: str
    rows: pl.DataFrame
    summary: pl.DataFrame
    tables: Mapping[str, pl.DataFrame]
    texts: Mapping[str, str]
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.model}"]
        for row in self._shown.iter_rows(named=True):
            value = "-" if row["value"] is None else f"{row['value']:.2f}"
            interval = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
            items = "" if row["items"] is None else f", {row['items']:,} items"
            guess = "" if row["blind_guess"] is None else f", blind guess {row['blind_guess']:.2f}"
            failed = f", {row['failed']}" if row["failed"] else ""
            lines.append(f"  {row['task']:<24} {row['metric']:<28} {value:>9}{interval}{items}{guess}{failed}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._shown._repr_html_()

    @property
    def _shown(self) -> pl.DataFrame:
        """Return the summary as it is printed. If the averages over phenomena and over paradigms are equal, only the
        average over paradigms is shown. They are equal if each phenomenon consists of one paradigm.
        """
        columns = [name for name in self.summary.columns if name != "task"]
        of_paradigms = self.summary.filter(task=PARADIGM_AVERAGE).select(columns)
        repeated = self.summary.filter(task=PHENOMENON_AVERAGE).join(of_paradigms, columns, "semi", nulls_equal=True)
        return self.summary.join(repeated, on=self.summary.columns, how="anti", nulls_equal=True, maintain_order="left")


def frame_of_rows(rows: list[TidyRow]) -> pl.DataFrame:
    """Return measured scores as a data frame with the columns COLUMNS. The columns `low` and `high`, the bounds of a
    score's 95 % interval, are computed from the row's `sampling_deviation`.
    """
    cells = []
    for row in rows:
        value, deviation = row["value"], row.get("sampling_deviation")
        half = None if value is None or deviation is None else NORMAL_95 * deviation
        bounds = {} if half is None else _interval(value, half, row["metric"])
        known = {**row, **bounds}
        cells.append([known.get(column) for column in COLUMNS])
    return pl.DataFrame(cells, schema=COLUMNS, orient="row")


def summary_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the summary: the rows whose `level` is `average`, `split` or `task`, without the accuracies that count
    ties as correct. If there are no such rows, return all rows except the rows of words.

    If a score was measured in several fine-tuning runs, its row contains the mean over runs, with Student's 95 %
    interval of the mean.
    """
    found = rows.filter(pl.col("level").is_in(IN_SUMMARY) & ~pl.col("metric").str.contains(TIES_CORRECT))
    if found.is_empty():
        found = rows.filter(pl.col("level") != "word")
    found = found.drop("finetuning_seed", "learning_rate", "settings")
    keys = ["suite", "task", "level", "metric"]
    if found.select(keys).is_unique().all():
        return found
    return pl.DataFrame([_over_runs(runs) for runs in found.partition_by(keys)], schema=found.schema, orient="row")


def _over_runs(runs: pl.DataFrame) -> dict[str, Any]:
    from scipy.stats import t

    values = runs["value"].drop_nulls().to_list()
    failed = sum(map(bool, runs["failed"]))
    row = {**runs.row(0, named=True), "value": None, "failed": f"{failed} of {len(runs)} runs failed" if failed else ""}
    if not values:
        return row
    row["value"] = fmean(values)
    if len(values) > 1:
        reach = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
        row |= _interval(row["value"], reach, row["metric"])
    return row


def _interval(mean: float, half: float, metric: str) -> dict[str, float]:
    """Return the bounds `mean` - `half` and `mean` + `half` of an interval. If the metric is in percent, the bounds are
    limited to 0 to 100, or to -100 to 100 for a metric that may be negative.
    """
    bounds = {"low": mean - half, "high": mean + half}
    if not metric.endswith("_percent"):
        return bounds
    lowest = -100.0 if any(name in metric for name in BELOW_0) else 0.0
    return {name: min(max(bound, lowest), 100.0) for name, bound in bounds.items()}
