"""The pretrained models of an experiment on its page: for each model, a row from `runs.parquet` and a folded section.

A section contains losses by step, settings, and FLOPs. Settings that all trained models share are shown once.

The page shows only two kinds of times: the day of training, and training times below paper tables that print training
times. All other times, and versions, are on the provenance page. Pages of equal results are thus byte-identical until a
model is trained again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
from markupsafe import Markup

from hatchery.analysis.tidy_tables import CURVES, read_frame
from hatchery.artifacts.manifests import SHORT_DIGEST, read_manifest
from hatchery.rendering.setting_texts import flatten
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.rendering.templates import render
from hatchery.typed import stage_body
from hatchery.units import count, number, power
from hatchery.views.page_files import address

RUNS_SHOWN = 200
_HEADER = (
    *("run", "parameters", "steps", "tokens seen"),
    *("last training loss", "development loss", "perplexity", "bits per byte", "manifest"),
)
LOSSES = ("loss", "development_loss", "development_perplexity", "development_bits_per_byte")


def runs(
    rows: Sequence[Mapping[str, Any]],
    details: Collection[str],
    provenance: Path,
    page: Path,
    places: Collection[str],
) -> Table:
    """Return a table with the first RUNS_SHOWN runs of `runs.parquet`.

    The name of a run links to the run's section on the page if `details` contains the name. The run's manifest links to
    the page `provenance`; `places` are the digests of the manifests that have a section there.
    """
    shown: list[list[Content]] = []
    for row in islice(rows, RUNS_SHOWN):
        short = row["manifest"][:SHORT_DIGEST]
        name = Cell(titled(row), link=f"#run-{quote(row['run'])}" if row["run"] in details else "")
        # The provenance page of a large experiment omits some manifests. Link only to manifests in `places`.
        place = f"#m-{short}" if row["manifest"] in places else ""
        losses = [_loss(row[key]) for key in LOSSES]
        made_from = Cell(short, link=f"{address(provenance, page)}{place}")
        shown.append([name, _count(row["parameters"]), _count(row["steps"]), _tokens(row), *losses, made_from])
    caption = "Pretrained models; losses in nats per labelled token"
    return table(_HEADER, shown, caption=caption)


def titled(row: Mapping[str, Any]) -> str:
    """Return the name of a run on a page: the model's label and, unless the model is external, the pretraining seed."""
    return str(row["label"]) if row["seed"] is None else f"{row['label']}, seed {row['seed']}"


def pretrained_on(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the day (UTC) on which the models of `rows` were trained, as text. If the days differ, return the first
    and the last day.

    Empty if the days are unknown.
    """
    days = sorted(day for row in rows if (day := _day(row["day"])) is not None)
    if not days:
        return ""
    first, last = _written(days[0]), _written(days[-1])
    return f"on {first}" if first == last else f"from {first} to {last}"


def training_times(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a sentence with the training time of the models of `rows` in minutes, averaged over seeds.

    Empty if all times are unknown.
    """
    minutes: dict[str, list[float]] = {}
    for row in rows:
        # Leave out models without a training time: it is 0 without training steps, and unknown for milestones and
        # external models.
        if row["seconds"]:
            minutes.setdefault(row["label"], []).append(row["seconds"] / 60)
    means = {label: sum(found) / len(found) for label, found in minutes.items()}
    # Tiny models train for less than one minute. Show such times with two significant digits.
    listed = "; ".join(f"{label} {mean:,.1f}" if mean >= 1 else f"{label} {mean:.2g}" for label, mean in means.items())
    return listed and f"Training time of our models in minutes, over all attempts, averaged over seeds: {listed}"


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        return None


def _written(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _count(value: int | None) -> str:
    return "-" if value is None else count(value)


def _tokens(row: Mapping[str, Any]) -> str:
    """Return the number of training tokens as text.

    If the initial weights are those of another model, the text is "n + m before", where m is the number of tokens that
    the other model has seen.
    """
    if row["initial"] != "weights":
        return _count(row["tokens"])
    earlier = row["earlier_tokens"]
    return f"{_count(row['tokens'])} + {'unknown' if earlier is None else count(earlier)} before"


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"


POINTS = 100
WIDTH, HEIGHT = 400, 130
QUALIFYING_MEASURES = ("initial_model", "early_stopping")
"""Measures of a run without which its other numbers could be misread."""


@dataclass(frozen=True)
class RunDetails:
    """The folded section of a run: a drawing of the losses (empty if there are no losses), and a table of settings and
    measures.
    """

    name: str
    title: str
    curve: Markup
    facts: Table


def run_details(
    rows: Sequence[Mapping[str, Any]], manifests: Mapping[str, Path], curves: Path
) -> tuple[Table, list[RunDetails]]:
    """Return a table of the settings that all trained runs share, and the section of each run in `manifests`.

    `rows` are the rows of `runs.parquet`, `curves` is `curves.parquet`. Raises ManifestError for a damaged file.
    """
    read = {row["run"]: read_manifest(manifests[row["run"]]) for row in rows if row["run"] in manifests}
    settings = {name: flatten(stage_body(manifest.settings)) for name, manifest in read.items()}
    # Models that were only initialised have few settings, so determine the shared settings without them.
    trained = [settings[row["run"]] for row in rows if row["run"] in read and row["steps"]] or list(settings.values())
    shared = {
        key: text for key, text in next(iter(trained), {}).items() if all(own.get(key) == text for own in trained)
    }
    losses = _losses(curves, list(read))
    details = []
    for row in rows:
        if (manifest := read.get(row["run"])) is not None:
            facts = [] if row["training_flops"] is None else [("FLOPs of training", power(row["training_flops"]))]
            for measure in QUALIFYING_MEASURES:
                if found := manifest.measures.get(measure):
                    facts += flatten({measure: found}).items()
            facts += ((key, text) for key, text in settings[row["run"]].items() if shared.get(key) != text)
            title = titled(row)
            curve = _curve(title, losses.filter(run=row["run"]))
            details.append(RunDetails(row["run"], title, curve, _table(facts, title)))
    return _table(list(shared.items()), "Shared settings"), details


def _table(rows: Sequence[tuple[str, str]], label: str) -> Table:
    return table(("", ""), rows, words=2, label=label, foreign=True, names=True)


def _losses(curves: Path, runs: Sequence[str]) -> pl.DataFrame:
    """Return the training and development losses of `runs`. The steps of each run are divided into up to POINTS equal
    intervals, and the losses are averaged over each interval.
    """
    rows = read_frame(curves, CURVES, ("run", "step", "loss", "development_loss"), run=runs)
    interval = pl.col("step") * POINTS // (pl.col("step").max().over("run") + 1)
    return rows.group_by("run", interval.alias("interval"), maintain_order=True).agg(pl.all().mean()).drop("interval")


def _curve(title: str, losses: pl.DataFrame) -> Markup:
    lines = {
        split: losses.select("step", loss).drop_nulls().rows()
        for split, loss in (("training", "loss"), ("development", "development_loss"))
    }
    values = [value for line in lines.values() for _, value in line]
    if not values:
        return Markup()
    low, high, last = min(values), max(values), max(step for line in lines.values() for step, _ in line)
    span = high - low or 1.0
    drawn = {
        split: [(WIDTH * step / (last or 1), HEIGHT * (high - value) / span) for step, value in line]
        for split, line in lines.items()
        if line
    }
    return render(
        "curve.html.j2", title=title, lines=drawn, low=number(low), high=number(high), width=WIDTH, height=HEIGHT
    )
