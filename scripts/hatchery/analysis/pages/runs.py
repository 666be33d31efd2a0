"""The pretrained models of an experiment on its page: what follows from the work, and the way to their cards.

Of when and where they were trained only the day stands here; times and hosts are on the cards. So the page of the same
results has the same bytes until a model is trained anew on another day.
"""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from hatchery.analysis.cards.tables import count, html_text
from hatchery.analysis.pages.document import scrolling_table
from hatchery.analysis.pages.links import address
from hatchery.analysis.pretraining_outputs import CurvePoint, read_curve
from hatchery.analysis.run_cards.continuation import tokens_seen
from hatchery.errors import ConfigError
from hatchery.storage.manifests import read_manifest, volatile_facts

_HEADER = (
    *("run", "parameters", "steps", "tokens seen"),
    *("last training loss", "development loss", "perplexity", "manifest"),
)


def runs(pretraining: Mapping[str, Path], cards: Mapping[str, Path], provenance: Path, page: Path) -> str:
    """A row for each run; `pretraining` are the manifests and `cards` the pages of the run cards, both by cell.

    Raises ConfigError for a card without a run, ManifestError and EvaluationError for a damaged result.
    """
    if unknown := sorted(cards.keys() - pretraining.keys()):
        raise ConfigError(f"--run-card: there is no --pretraining for {', '.join(unknown)}")
    rows = []
    for cell, path in pretraining.items():
        manifest = read_manifest(path)
        points = read_curve(manifest)
        name = html_text(cell)
        if cell in cards:
            name = f'<a href="{address(cards[cell], page)}">{name}</a>'
        counts = [_count(manifest.measures.get(key)) for key in ("parameters", "steps")]
        counts.append(html_text(tokens_seen(manifest)))
        losses = [_last(points, key) for key in ("loss", "development_loss", "development_perplexity")]
        digest = manifest.short
        made_from = f'<a href="{address(provenance, page)}#m-{digest}">{digest}</a>'
        rows.append([name, *counts, *losses, made_from])
    return scrolling_table("Pretrained models; losses in nats per labelled token", _HEADER, rows, counts=True)


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
    return html_text(count(value)) if isinstance(value, int) else "-"


def _last(points: list[CurvePoint], name: str) -> str:
    values = [value for point in points if (value := getattr(point, name)) is not None]
    return f"{values[-1]:,.3f}" if values else "-"
