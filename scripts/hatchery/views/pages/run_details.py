"""A fold-out for every pretrained model on the page of its experiment: losses by step, settings, and what it cost.

Settings that all trained models share stand once. Times, speed, machine and versions are on the page of provenance
alone, since they change when the same work is done again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from hatchery.analysis.tidy_tables import CURVES, read_frame
from hatchery.artifacts.manifests import read_manifest
from hatchery.rendering.setting_texts import flatten
from hatchery.rendering.table import Table, table
from hatchery.rendering.templates import render
from hatchery.units import number, power
from hatchery.views.pages.runs import titled

POINTS = 100
WIDTH, HEIGHT = 400, 130
TOLD_MEASURES = ("initial_model", "early_stopping")
"""Of what a run measured, what changes how its other numbers are read."""


@dataclass(frozen=True)
class RunDetails:
    """What folds out below a run: its losses as a drawing, empty where none was measured, and a table."""

    name: str
    title: str
    curve: Markup
    facts: Table


def run_details(
    rows: Sequence[Mapping[str, Any]], manifests: Mapping[str, Path], curves: Path
) -> tuple[Table, list[RunDetails]]:
    """The settings that all trained runs share, and the details of each run that has a manifest.

    `rows` are those of `runs.parquet`, `curves` is `curves.parquet`. Raises ManifestError for a damaged file.
    """
    read = {row["run"]: read_manifest(manifests[row["run"]]) for row in rows if row["run"] in manifests}
    settings = {name: flatten(_body(manifest.settings)) for name, manifest in read.items()}
    # A model that was only initialised has few settings, which would leave nothing to share.
    trained = [settings[row["run"]] for row in rows if row["run"] in read and row["steps"]] or list(settings.values())
    shared = {
        key: text for key, text in next(iter(trained), {}).items() if all(own.get(key) == text for own in trained)
    }
    losses = _losses(curves, list(read))
    details = []
    for row in rows:
        if (manifest := read.get(row["run"])) is not None:
            facts = [] if row["training_flops"] is None else [("FLOPs of training", power(row["training_flops"]))]
            for measure in TOLD_MEASURES:
                if told := manifest.measures.get(measure):
                    facts += flatten({measure: told}).items()
            facts += ((key, text) for key, text in settings[row["run"]].items() if shared.get(key) != text)
            title = titled(row)
            curve = _curve(title, losses.filter(run=row["run"]))
            details.append(RunDetails(row["run"], title, curve, _table(facts, title)))
    return _table(list(shared.items()), "Shared settings"), details


def _body(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in ("stage", "stage_version")}


def _table(rows: Sequence[tuple[str, str]], label: str) -> Table:
    return table(("", ""), rows, words=2, label=label, foreign=True, names=True)


def _losses(curves: Path, runs: Sequence[str]) -> pl.DataFrame:
    """Mean losses of runs in at most POINTS equal intervals of steps."""
    rows = read_frame(curves, CURVES, ("run", "step", "loss", "development_loss"), run=runs)
    interval = pl.col("step") * POINTS // (pl.col("step").max().over("run") + 1)
    return rows.group_by("run", interval.alias("interval"), maintain_order=True).agg(pl.all().mean()).drop("interval")


def _curve(title: str, losses: pl.DataFrame) -> Markup:
    lines = {
        words: losses.select("step", loss).drop_nulls().rows()
        for words, loss in (("training", "loss"), ("development", "development_loss"))
    }
    values = [value for line in lines.values() for _, value in line]
    if not values:
        return Markup()
    low, high, last = min(values), max(values), max(step for line in lines.values() for step, _ in line)
    span = high - low or 1.0
    drawn = {
        words: [(WIDTH * step / (last or 1), HEIGHT * (high - value) / span) for step, value in line]
        for words, line in lines.items()
        if line
    }
    return render(
        "curve.html.j2", title=title, lines=drawn, low=number(low), high=number(high), width=WIDTH, height=HEIGHT
    )
