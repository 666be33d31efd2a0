"""The pretrained models of an experiment on its page: what `runs.parquet` says of them.

Of when and where they were trained only the day stands here, and how long below a paper's table that prints such; more
is on the page of provenance. So the page of the same results has the same bytes until a model is trained anew.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hatchery.artifacts.manifests import SHORT_DIGEST
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.units import count
from hatchery.views.pages.links import address

RUNS_SHOWN = 200
_HEADER = (
    *("run", "parameters", "steps", "tokens seen"),
    *("last training loss", "development loss", "perplexity", "manifest"),
)


def runs(
    rows: Sequence[Mapping[str, Any]],
    details: Collection[str],
    provenance: Path,
    page: Path,
    places: Collection[str] | None = None,
) -> Table:
    """A row for each of the first RUNS_SHOWN runs of `runs.parquet`; the page has `details` of these runs.

    `places` are the manifests that have a place on the page of provenance, by the beginnings of their digests; None:
    all have.
    """
    shown: list[list[Content]] = []
    for row in islice(rows, RUNS_SHOWN):
        short = row["manifest"][:SHORT_DIGEST]
        name = Cell(titled(row), link=f"#run-{quote(row['run'])}" if row["run"] in details else "")
        # The page of provenance of a large experiment leaves manifests out.
        place = f"#m-{short}" if places is None or short in places else ""
        losses = [_loss(row[key]) for key in ("loss", "development_loss", "development_perplexity")]
        made_from = Cell(short, link=f"{address(provenance, page)}{place}")
        shown.append([name, _count(row["parameters"]), _count(row["steps"]), _tokens(row), *losses, made_from])
    caption = "Pretrained models; losses in nats per labelled token"
    return table(_HEADER, shown, caption=caption)


def titled(row: Mapping[str, Any]) -> str:
    """What a run is called on a page."""
    return str(row["label"]) if row["seed"] is None else f"{row['label']}, seed {row['seed']}"


def pretrained_on(rows: Iterable[Mapping[str, Any]]) -> str:
    """The day (UTC) on which the models of these rows were trained, or the first and the last; empty if unknown."""
    days = sorted(day for row in rows if (day := _day(row["day"])) is not None)
    if not days:
        return ""
    first, last = _written(days[0]), _written(days[-1])
    return f"on {first}" if first == last else f"from {first} to {last}"


def training_times(rows: Iterable[Mapping[str, Any]]) -> str:
    """How many minutes the models of these rows trained, in the mean of their seeds; empty where nobody knows."""
    minutes: dict[str, list[float]] = {}
    for row in rows:
        if row["seconds"] is not None:
            minutes.setdefault(row["label"], []).append(row["seconds"] / 60)
    means = {label: sum(found) / len(found) for label, found in minutes.items()}
    # Two digits of the minute or less that tiny models take.
    told = "; ".join(f"{label} {mean:,.1f}" if mean >= 1 else f"{label} {mean:.2g}" for label, mean in means.items())
    return told and f"Training time of ours in minutes, that of the last attempt: {told}"


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
    """Tokens of the run and, apart from them, those that the weights it started from had seen."""
    if row["initial"] != "weights":
        return _count(row["tokens"])
    earlier = row["earlier_tokens"]
    return f"{_count(row['tokens'])} + {'unknown' if earlier is None else count(earlier)} before"


def _loss(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"
