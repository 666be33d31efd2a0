"""Rows of the tidy table of measurements that a test writes, as read from the file, and manifests of outputs."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.analysis.aggregates import Aggregate
from hatchery.analysis.task_averages import AVERAGE_METRIC, task_averages
from hatchery.analysis.tidy_tables import MEASUREMENTS
from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import Manifest, read_manifest, stage_run

SCHEMA = pl.DataFrame(MEASUREMENTS.schema.empty_table()).schema
SAME = {"model": "m", "run": "m-s42", "seed": 42, "failed": "", "primary": True, "main": True, "manifest": "0" * 12}


def frame(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Return a table of rows; the default model is `m`, and missing columns are null."""
    return pl.DataFrame([SAME | row for row in rows], SCHEMA)


def averages_of_cells(
    suite: str, cells: Mapping[tuple[str, str], float], deviations: Mapping[tuple[str, str], float] | None = None
) -> dict[str, Aggregate]:
    """Return a suite's averages by name, for two runs with the printed means and deviations of its tasks."""
    first = dict(reversed(cells))
    rows = [
        {
            **{"suite": suite, "task": task, "metric": f"{metric}_percent", "primary": metric == first[task]},
            **{"value": mean + sign * (deviations or {}).get((task, metric), 0.0) / math.sqrt(2)},
            **{"finetuning_seed": sign, "learning_rate": 1e-5, "origin": task},
        }
        for (task, metric), mean in cells.items()
        for sign in (-1, 1)
    ]
    found = task_averages(suite, frame(rows))
    return {average.task: average.aggregate for average in found if average.metric == AVERAGE_METRIC}


def replaced(
    folder: Path, name: str, text: str, settings: dict[str, Any] | None = None, measures: dict[str, Any] | None = None
) -> Manifest:
    """Write `text` as the output `name` of a stage, and return the manifest."""
    with stage_run(folder / "manifest.json", settings or {}) as run:
        write_text(folder / name, text)
        run.add_output(folder / name)
        run.measures.update(measures or {})
    return read_manifest(folder / "manifest.json")
