"""What the selections of a corpus of sequences had left out before grouping: the counts and samples they stored."""

from dataclasses import dataclass

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import Record, read_records
from hatchery.corpora.documents import Rejections
from hatchery.settings.base import Natural

REASONS = ("hyperlink", "out_of_vocabulary", "too_short", "duplicate")


@dataclass(frozen=True)
class _Count(Record):
    measure: str
    value: Natural


@dataclass(frozen=True)
class _Sample(Record):
    outcome: str
    reason: str
    text: str


def rejections_of_selection(manifest: Manifest) -> Rejections:
    """Counts by reason from `counts.csv` and rejected texts from `samples.csv` of a selection.

    Raises ManifestError when the manifest names no such table, EvaluationError where one is another.
    """
    rejections = Rejections()
    for counted in read_records(manifest.file("counts.csv"), _Count, may_be_empty=True):
        if counted.measure in REASONS and counted.value:
            rejections.count(_named(counted.measure), counted.value)
    for sample in read_records(manifest.file("samples.csv"), _Sample, may_be_empty=True):
        if sample.outcome == "rejected":
            rejections.count(_named(sample.reason), 0, sample=sample.text)
    return rejections


def _named(reason: str) -> str:
    return f"not selected: {reason.replace('_', ' ')}"
