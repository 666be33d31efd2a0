"""What the selections of a corpus of sequences had left out before grouping: the counts and samples they stored."""

import csv
from collections.abc import Iterator
from pathlib import Path

from hatchery.corpora.documents import Rejections
from hatchery.errors import ManifestError
from hatchery.storage.manifests import Manifest

REASONS = ("hyperlink", "out_of_vocabulary", "too_short", "duplicate")


def rejections_of_selection(manifest: Manifest) -> Rejections:
    """Counts by reason from `counts.csv` and rejected texts from `samples.csv` of a selection.

    Raises ManifestError when the manifest names no such table, or one is damaged.
    """
    rejections = Rejections()
    for row in _rows(manifest.file("counts.csv"), ("measure", "value")):
        if row["measure"] in REASONS and row["value"] != "0":
            if not row["value"].isdecimal():
                raise ManifestError(f"{manifest.file('counts.csv')}: {row['measure']}: {row['value']!r} is no count")
            rejections.count(_named(row["measure"]), int(row["value"]))
    for row in _rows(manifest.file("samples.csv"), ("outcome", "reason", "text")):
        if row["outcome"] == "rejected":
            rejections.count(_named(row["reason"]), 0, sample=row["text"])
    return rejections


def _named(reason: str) -> str:
    return f"not selected: {reason.replace('_', ' ')}"


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            reader = csv.DictReader(handle, strict=True)
            if missing := [column for column in columns if column not in (reader.fieldnames or ())]:
                raise ManifestError(f"{path}: the table lacks the column {missing[0]!r}")
            yield from reader
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ManifestError(f"{path}: the table cannot be read: {error}") from error
