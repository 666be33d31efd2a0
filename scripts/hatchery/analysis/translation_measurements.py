"""Measurements of models that translate: scores of test sets, and how early in training they are good.

Source: "A Natural Bias for Language Generation Models", section 4.1: BLEU and chrF of test sets, and the area under the
learning curve (ALC) of development text over the first 20,000 updates, divided by its span, in points.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hatchery.analysis.measurements import PRETRAINING_SUITE, Measurement
from hatchery.analysis.settings import SeededRun
from hatchery.storage.manifests import Manifest
from hatchery.storage.records import Record, read_records
from hatchery.translation.metrics import METRICS, area_under_curve

TRANSLATION_SUITE = "translation"
SCORES_FILE = "scores.csv"
ALC_STEPS = 20_000
"""Updates over which the area under a learning curve is taken (section 4.1)."""


@dataclass(frozen=True)
class _ScoreRow(Record):
    test: str
    corpus: str
    split: str
    pairs: int
    metric: str
    score: float
    signature: str


def translation_measurements(run: SeededRun, manifest: Manifest) -> list[Measurement]:
    """BLEU and chrF in points of every test set, from `scores.csv`."""
    return [
        Measurement(
            *(run, TRANSLATION_SUITE, row.test, row.metric, row.score, manifest.digest),
            kind="translation",
            level="split",
            items=row.pairs,
        )
        for row in read_records(manifest.file(SCORES_FILE), _ScoreRow, ("test", "metric"))
    ]


def learning_measurements(run: SeededRun, manifest: Manifest, curve: Iterable[Mapping[str, Any]]) -> list[Measurement]:
    """Highest development score, and the area under its curve over the first updates; none without such scores.

    `curve` are the rows of the run's `metrics.jsonl`.
    """
    rows, found = list(curve), []
    for metric in METRICS:
        points = [
            (row["step"], row[f"development_{metric}"]) for row in rows if row.get(f"development_{metric}") is not None
        ]
        early = [point for point in points if point[0] <= ALC_STEPS]
        values = {f"best_{metric}": max(score for _, score in points)} if points else {}
        if len(early) > 1:
            values[f"alc_{metric}"] = area_under_curve(early)
        found += [
            Measurement(
                *(run, PRETRAINING_SUITE, "development", name, value, manifest.digest),
                kind="pretraining",
                level="split",
            )
            for name, value in values.items()
        ]
    return found
