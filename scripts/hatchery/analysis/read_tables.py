"""Functions that read the tidy tables of an experiment for figures, tables and pages. `tidy_tables` defines the
columns.

A probe reads a weighted sum of the model's layers. The contribution of a layer is its softmax weight in this sum, in
percent, as in LTG-BERT, Appendix C and Table 5 (docs/papers/ltg-bert.md, "Edge probing"). If a task has two spans, the
weights of both spans are averaged.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.analysis.settings import runs_by_name
from hatchery.analysis.tidy_tables import CURVES, LAYERS, MEASUREMENTS, RUNS, read_frame
from hatchery.errors import EvaluationError
from hatchery.evaluation.evaluation import Level, TidyRow
from hatchery.experiment.seeded_run import SeededRun


@dataclass(frozen=True)
class CurvePoint:
    """Losses in nats per predicted token, after `step` optimiser steps and `tokens` tokens."""

    step: int
    tokens: int
    loss: float | None
    development_loss: float | None
    development_perplexity: float | None


@dataclass(frozen=True)
class LayerWeights:
    """The weights with which the layers of a model read the outputs of earlier layers. `scaled` maps (n, i) to n times
    the weight. Here n is the number of the reading layer, counted from 1, and i is the number of the layer that is
    read, counted from 0 (the embedding).

    `plain` is true for models without layer weighting: every layer reads the sum of all earlier outputs, each with
    weight 1. The reading layer `layers` + 1 is the input of the heads.
    """

    layers: int
    plain: bool
    scaled: dict[tuple[int, int], float]


@dataclass(frozen=True)
class LayerContribution:
    """Contribution of each layer, from the first to the last, to a probing task, in percent; the sum is 100. Each
    contribution is the mean over `probes` trained probes.
    """

    model: str
    task: str
    percent: tuple[float, ...]
    probes: int

    @property
    def slope(self) -> float:
        """Slope of the least-squares line through the contributions, in percentage points per layer; negative if early
        layers contribute more.
        """
        return least_squares_slope(self.percent)


def least_squares_slope(values: Sequence[float]) -> float:
    """Return the slope of the least-squares line of `values` over 1, 2, …; 0 if there is only one value."""
    middle = (len(values) + 1) / 2
    spread = math.fsum((k - middle) ** 2 for k in range(1, len(values) + 1))
    return math.fsum((k - middle) * value for k, value in enumerate(values, start=1)) / spread if spread else 0.0


def mean_over(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Return the mean of each column of `rows`, which have equal lengths."""
    return tuple(math.fsum(column) / len(rows) for column in zip(*rows, strict=True))


def layer_contributions(rows: Iterable[Mapping[str, Any]]) -> list[LayerContribution]:
    """Return the layer contributions of each model and task. `rows` are the rows of probes in the tidy table of layers;
    the result keeps the order of these rows.

    Contributions are averaged over the spans of each probe, and then over all probes of the model. Raises
    EvaluationError if the model's pretraining seeds have different numbers of layers.
    """
    mixes: dict[tuple[str, str], dict[tuple[Any, ...], dict[str, list[float]]]] = {}
    for row in rows:
        probes = mixes.setdefault((row["model"], row["task"]), {})
        spans = probes.setdefault((row["run"], row["finetuning_seed"], row["learning_rate"]), {})
        spans.setdefault(row["span"], []).append(100 * row["value"])
    contributions = []
    for (model, task), probes in mixes.items():
        shares = [mean_over(list(spans.values())) for spans in probes.values()]
        if len({len(share) for share in shares}) > 1:
            raise EvaluationError(f"layer weights: the trainings of {model} do not have the same number of layers")
        contributions.append(LayerContribution(model, task, mean_over(shares), len(shares)))
    return contributions


def read_measurements(
    path: str | Path,
    runs: Sequence[SeededRun],
    kind: str | None = None,
    levels: Collection[Level] | None = None,
) -> pl.DataFrame:
    """Read the rows of `runs` from the table of measurements at `path`, in the order of the table. If `kind` or
    `levels` is given, only rows of this kind of evaluation, or of these levels, are read.

    Raises ManifestError for an altered table.
    """
    kinds = None if kind is None else [kind]
    return read_frame(path, MEASUREMENTS, run=runs_by_name(runs), kind=kinds, level=levels)


def read_runs(path: str | Path, runs: Sequence[SeededRun] | None = None) -> list[TidyRow]:
    """Read the rows of `runs.parquet` for `runs` (None: all runs), in the order of the table.

    Raises ManifestError for an altered table.
    """
    return read_frame(path, RUNS, run=None if runs is None else runs_by_name(runs)).to_dicts()


def read_curves(path: str | Path, runs: Sequence[SeededRun]) -> dict[str, list[CurvePoint]]:
    """Read the learning curve of each run, by name of the run. The curve of an untrained model is empty.

    Raises ManifestError for an altered table.
    """
    rows = read_frame(path, CURVES, run=runs_by_name(runs))
    found: dict[str, list[CurvePoint]] = {run.name: [] for run in runs}
    columns = ("run", "step", "tokens", "loss", "development_loss", "development_perplexity")
    for name, *values in rows.select(columns).iter_rows():
        found[name].append(CurvePoint(*values))
    return found


def read_layer_weights(path: str | Path, runs: Sequence[SeededRun]) -> dict[str, LayerWeights]:
    """Read the layer weights of each run, by name of the run.

    Raises ManifestError for an altered table, EvaluationError for a run without layer weights.
    """
    names = runs_by_name(runs)
    rows = read_frame(path, LAYERS, run=names, quantity=("layer_weight", "unit_weight"))
    scaled: dict[str, dict[tuple[int, int], float]] = {}
    facts: dict[str, tuple[int, bool]] = {}
    for row in rows.iter_rows(named=True):
        scaled.setdefault(row["run"], {})[row["consumer"], row["layer"]] = row["value"]
        facts[row["run"]] = (row["depth"], row["quantity"] == "unit_weight")
    if missing := [name for name in names if name not in scaled]:
        raise EvaluationError(
            f"{path}: got no layer weights of {', '.join(missing)}, expected layer weights of every model"
        )
    return {name: LayerWeights(*facts[name], scaled[name]) for name in names}


def read_layer_contributions(path: str | Path, runs: Sequence[SeededRun]) -> list[LayerContribution]:
    """Read the layer contributions of each model and probing task from the table of layers at `path`, in the order of
    the table.

    Raises ManifestError for an altered table, EvaluationError if seeds of a model have different numbers of layers.
    """
    rows = read_frame(path, LAYERS, run=runs_by_name(runs), quantity=("probe_share",))
    return layer_contributions(rows.iter_rows(named=True))
