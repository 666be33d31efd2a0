"""Measurements of models that translate: scores of test sets, and how early in training they are good.

Source: "A Natural Bias for Language Generation Models", Sections 4.1 and 4.2: BLEU and chrF of test sets, and the area
under the learning curve (ALC) of development text over the first updates, divided by their number, in points.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.analysis.measurements import DEVELOPMENT, PRETRAINING_SUITE, Row, measured
from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, read_records
from hatchery.translation.metrics import METRICS, area_under_curve

TRANSLATION_SUITE = "translation"
SCORES_FILE = "scores.csv"


@dataclass(frozen=True)
class _ScoreRow(Record):
    test: str
    corpus: str
    split: str
    pairs: int
    metric: str
    score: float
    signature: str


def translation_measurements(place: Mapping[str, Any], manifest: Manifest) -> list[Row]:
    """BLEU and chrF in points of every test set, from `scores.csv`."""
    return [
        measured(
            *(place, manifest, "translation", TRANSLATION_SUITE, row.test, "split", row.metric, row.score),
            items=row.pairs,
        )
        for row in read_records(manifest.file(SCORES_FILE), _ScoreRow, ("test", "metric"))
    ]


def learning_measurements(
    place: Mapping[str, Any], manifest: Manifest, curve: Iterable[Mapping[str, Any]], alc_steps: int
) -> list[Row]:
    """Highest development score, and the area under its curve over the first steps; none without such scores.

    `curve` are the rows of the run's `metrics.jsonl`. The area is given where the curve goes from the model before its
    first step to `alc_steps` or beyond, and its task says how many steps they are, as in `first_20000_steps`.
    """
    rows, found = list(curve), []
    for metric in METRICS:
        points = [
            (row["step"], row[f"development_{metric}"]) for row in rows if row.get(f"development_{metric}") is not None
        ]
        values = {(DEVELOPMENT, f"best_{metric}"): max(score for _, score in points)} if points else {}
        if early := _first_steps(points, alc_steps):
            values[early_task(alc_steps), f"alc_{metric}"] = area_under_curve(early)
        found += [
            measured(place, manifest, "pretraining", PRETRAINING_SUITE, task, "split", name, value)
            for (task, name), value in values.items()
        ]
    return found


def early_task(steps: int) -> str:
    """What stands in the tables for the first so many steps of a training."""
    return f"first_{steps}_steps"


def _first_steps(points: Iterable[tuple[int, float]], last: int) -> list[tuple[float, float]]:
    """The points from step 0 to exactly the step `last`, between two measurements on the line; none if not reached."""
    ordered = sorted(points)
    if not ordered or ordered[0][0] > 0 or ordered[-1][0] < last:
        return []
    kept: list[tuple[float, float]] = [point for point in ordered if point[0] <= last]
    if kept[-1][0] < last:
        (before, low), (after, high) = kept[-1], ordered[len(kept)]
        kept.append((last, low + (high - low) * (last - before) / (after - before)))
    return kept
