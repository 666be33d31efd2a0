"""What is known of one pretraining: manifest and metrics, the estimate of its cost, and how a machine carried it out.

The first three follow from the work and are checked; the last is what `provenance.json` and `speed.jsonl` recorded
beside the result, and may be gone without making the run unknown.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.analysis.measurements import read_verified
from hatchery.analysis.pretraining_outputs import metric_rows
from hatchery.errors import EvaluationError
from hatchery.storage.manifests import PROVENANCE, Manifest, volatile_facts
from hatchery.storage.verified import Expected, check_file, vouched

SPEED_FILE = "speed.jsonl"


@dataclass(frozen=True)
class RunFacts:
    """One run. `metrics` and `speed` are rows by step; `plan` is its row of the estimate, None where there is none."""

    name: str
    manifest: Manifest
    metrics: list[dict[str, Any]]
    speed: list[dict[str, Any]]
    volatile: dict[str, Any]
    plan: dict[str, str] | None

    def series(self, name: str) -> list[tuple[int, float]]:
        """(step, value) of every row that has a number called `name`."""
        return [(int(row["step"]), float(row[name])) for row in self.metrics if _is_number(row.get(name))]

    def last(self, name: str) -> float | None:
        """The last number called `name`, or None."""
        values = self.series(name)
        return values[-1][1] if values else None

    def measure(self, name: str) -> int:
        """A count of the manifest: `parameters`, `steps` or `tokens`. Raises EvaluationError when it is missing."""
        value = self.manifest.measures.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise EvaluationError(f"{self.manifest.path}: measures.{name} is {value!r}, expected a whole number")
        return value

    def mean_speed(self, name: str) -> float | None:
        """Mean of the readings of `speed.jsonl` called `name`, or None."""
        values = [float(row[name]) for row in self.speed if _is_number(row.get(name))]
        return math.fsum(values) / len(values) if values else None

    def most(self, name: str) -> float | None:
        """The highest reading of `speed.jsonl` called `name`, or None."""
        return max((float(row[name]) for row in self.speed if _is_number(row.get(name))), default=None)


def read_run(run: str, pretraining: Path, cost: Path | None = None) -> RunFacts:
    """Everything about the run whose manifest is given; `cost` is the cost.csv of its experiment.

    Raises ManifestError when the result differs from its manifest, EvaluationError naming file and line for rows that
    are none, and for a cost table without this run.
    """
    manifest = read_verified(pretraining)
    speed, volatile = manifest.folder / SPEED_FILE, volatile_facts(pretraining)
    # Checksums say nothing of the run; its files have a section of their own.
    volatile.pop("manifest_sha256", None)
    recorded = dict(volatile.pop("files", None) or {}).get(SPEED_FILE)
    if recorded is not None:
        told_by = str(pretraining.with_name(PROVENANCE))
        check_file(
            speed, Expected(str(speed), None, str(recorded), told_by, f"remove {pretraining} to have both again")
        )
    return RunFacts(
        name=run,
        manifest=manifest,
        metrics=metric_rows(manifest),
        speed=_json_lines(speed) if speed.is_file() else [],
        volatile=volatile,
        plan=None if cost is None else _plan(cost, run),
    )


def _plan(path: Path, run: str) -> dict[str, str]:
    try:
        with vouched(path).open(encoding="utf-8", newline="") as handle:
            rows = list(csv.DictReader(handle))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EvaluationError(f"{path}: the table cannot be read: {error}") from error
    for row in rows:
        if row.get("cell") == run:
            return row
    raise EvaluationError(f"{path}: there is no row of the run {run!r}")


def _json_lines(path: Path) -> list[dict[str, Any]]:
    rows = []
    try:
        lines: Sequence[str] = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: the file cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise EvaluationError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(row, Mapping) or not _is_number(row.get("step")):
            raise EvaluationError(f"{path}, line {number}: expected an object with a step")
        rows.append(dict(row))
    return rows


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
