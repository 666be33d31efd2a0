"""The pretrained models of an experiment on its page: what follows from the work, and the way to their cards.

Of when and where they were trained only the day stands here; times and hosts are on the cards. So the page of the same
results has the same bytes until a model is trained anew on another day.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from hatchery.analysis.pages.links import address
from hatchery.analysis.pretraining_outputs import CurvePoint, read_curve
from hatchery.analysis.run_cards.continuation import tokens_seen
from hatchery.errors import ConfigError
from hatchery.rendering.table import Cell, Content, Table, table
from hatchery.storage.manifests import read_manifest, volatile_facts
from hatchery.units import count

RUNS_SHOWN = 200
_HEADER = (
    *("run", "parameters", "steps", "tokens seen"),
    *("last training loss", "development loss", "perplexity", "manifest"),
)


def runs(
    pretraining: Mapping[str, Path],
    cards: Mapping[str, Path],
    provenance: Path,
    page: Path,
    places: Collection[str] | None = None,
) -> Table:
    """A row for each of the first RUNS_SHOWN runs; `pretraining` are the manifests and `cards` the pages, both by run.

    `places` are the manifests that have a place on the page of provenance, by the beginnings of their digests; None:
    all have.

    Raises ConfigError for a card without a run, ManifestError and EvaluationError for a damaged result.
    """
    if unknown := sorted(cards.keys() - pretraining.keys()):
        raise ConfigError(f"--run-card: there is no --pretraining for {', '.join(unknown)}")
    rows: list[list[Content]] = []
    for name, path in islice(pretraining.items(), RUNS_SHOWN):
        manifest = read_manifest(path)
        points = read_curve(manifest)
        counts = [_count(manifest.measures.get(key)) for key in ("parameters", "steps")]
        losses = [_last(points, key) for key in ("loss", "development_loss", "development_perplexity")]
        card = address(cards[name], page) if name in cards else ""
        # The page of provenance of a large experiment leaves manifests out.
        place = f"#m-{manifest.short}" if places is None or manifest.short in places else ""
        made_from = Cell(manifest.short, link=f"{address(provenance, page)}{place}")
        rows.append([Cell(name, link=card), *counts, tokens_seen(manifest), *losses, made_from])
    caption = "Pretrained models; losses in nats per labelled token"
    return table(_HEADER, rows, caption=caption, stacked=True)


def pretrained_on(pretraining: Iterable[Path]) -> str:
    """The day on which the models of these manifests were trained, or the first and the last; empty if unknown.

    From `provenance.json` beside each manifest (UTC). Raises ManifestError when one is damaged.
    """
    days = sorted(day for path in pretraining if (day := _day(volatile_facts(path).get("started"))) is not None)
    if not days:
        return ""
    first, last = _written(days[0]), _written(days[-1])
    return f"on {first}" if first == last else f"from {first} to {last}"


def _day(started: Any) -> date | None:
    try:
        return datetime.fromisoformat(started).date() if isinstance(started, str) else None
    except ValueError:
        return None


def _written(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _count(value: Any) -> str:
    return count(value) if isinstance(value, int) else "-"


def _last(points: list[CurvePoint], name: str) -> str:
    values = [value for point in points if (value := getattr(point, name)) is not None]
    return f"{values[-1]:,.3f}" if values else "-"
