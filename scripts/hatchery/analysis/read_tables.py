"""The tidy tables as the values that views compute with; `tidy_tables` declares their columns."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.analysis.layer_contribution import LayerContribution, layer_contributions
from hatchery.analysis.measurements import Kind, Level
from hatchery.analysis.pretraining_outputs import CurvePoint, LayerWeights
from hatchery.analysis.settings import runs_by_name
from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, read_frame
from hatchery.errors import EvaluationError
from hatchery.experiment.seeded_run import SeededRun


def read_measurements(
    path: str | Path,
    runs: Sequence[SeededRun],
    kind: Kind | None = None,
    levels: Collection[Level] | None = None,
) -> pl.DataFrame:
    """The measurements of `runs`, in the order of the table, of one kind and of some levels if asked for.

    Raises ManifestError for an altered table.
    """
    kinds = None if kind is None else [kind]
    return read_frame(path, MEASUREMENTS, run=runs_by_name(runs), kind=kinds, level=levels)


def read_runs(path: str | Path, runs: Sequence[SeededRun] | None = None) -> list[dict[str, Any]]:
    """The rows of `runs.parquet` in their order, of all runs or of some. Raises ManifestError for an altered table."""
    return read_frame(path, RUNS, run=None if runs is None else runs_by_name(runs)).to_dicts()


def read_curves(path: str | Path, runs: Sequence[SeededRun]) -> dict[str, list[CurvePoint]]:
    """The losses of `runs` by their names, empty for a model that was not trained.

    Raises ManifestError for an altered table.
    """
    rows = read_frame(path, CURVES, run=runs_by_name(runs))
    found: dict[str, list[CurvePoint]] = {run.name: [] for run in runs}
    columns = ("run", "step", "tokens", "loss", "development_loss", "development_perplexity")
    for name, *values in rows.select(columns).iter_rows():
        found[name].append(CurvePoint(*values))
    return found


def read_layer_weights(path: str | Path, runs: Sequence[SeededRun]) -> dict[str, LayerWeights]:
    """The layer weights of `runs` by their names.

    Raises ManifestError for an altered table, EvaluationError for a run without any.
    """
    names = runs_by_name(runs)
    rows = read_frame(path, LAYERS, run=names, quantity=("layer_weight", "unit_weight"))
    scaled: dict[str, dict[tuple[int, int], float]] = {}
    facts: dict[str, tuple[int, bool]] = {}
    for row in rows.iter_rows(named=True):
        scaled.setdefault(row["run"], {})[row["consumer"], row["layer"]] = row["value"]
        facts[row["run"]] = (row["depth"], row["quantity"] == "unit_weight")
    if missing := [name for name in names if name not in scaled]:
        raise EvaluationError(f"{path}: there are no layer weights of {', '.join(missing)}")
    return {name: LayerWeights(*facts[name], scaled[name]) for name in names}


def read_layer_contributions(path: str | Path, runs: Sequence[SeededRun]) -> list[LayerContribution]:
    """What layers contribute to probes, an entry per model and task: models in the order of `runs`, then tasks.

    Raises ManifestError for an altered table, EvaluationError for seeds of a model with different layers.
    """
    rows = read_frame(path, LAYERS, run=runs_by_name(runs), quantity=("probe_share",))
    return layer_contributions(rows.iter_rows(named=True))
