"""What is known of one pretraining: manifest and metrics, the estimate of its cost, and how a machine carried it out.

The first three follow from the work and are checked; the last is what `provenance.json` and `speed.jsonl` recorded
beside the result, and may be gone without making the run unknown.
"""

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hatchery.analysis.measurements import read_verified
from hatchery.analysis.pretraining_outputs import metric_rows
from hatchery.artifacts.manifests import PROVENANCE, Manifest, volatile_facts
from hatchery.artifacts.records import Record, json_records, read_records, record
from hatchery.artifacts.verified import Expected, check_file, vouched
from hatchery.errors import EvaluationError

SPEED_FILE = "speed.jsonl"


@dataclass(frozen=True)
class Attempt(Record):
    """How a machine carried out the last attempt, from `provenance.json`; None is not recorded.

    Times are in seconds, memory in MiB. `packages` are versions by name, `milestones` the steps of models that were
    kept, `further` is what else was recorded.
    """

    started: str | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    training_seconds: float | None = None
    loader_wait_seconds: float | None = None
    tokens_per_second: float | None = None
    peak_memory_mib: float | None = None
    host: str | None = None
    platform: str | None = None
    processors: int | None = None
    python: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    code_revision: str | None = None
    command: tuple[str, ...] = ()
    resumed_from_step: int | None = None
    milestones: tuple[int, ...] = ()
    further: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Speed(Record):
    """A reading of `speed.jsonl`: share of the device's peak, and memory in MiB."""

    step: int
    mfu: float | None = None
    peak_memory_mib: float | None = None


@dataclass(frozen=True)
class Plan(Record):
    """A row of the estimate, `cost.csv`."""

    cell: str
    tokens: float
    training_flops: float
    development_flops: float
    paper_flops: float
    paper_formula: str
    wall_seconds: float
    device_hours: float
    device: str
    devices: int
    mfu: float


@dataclass(frozen=True)
class RunFacts:
    """One run. `metrics` and `speed` are rows by step; `plan` is its row of the estimate, None where there is none."""

    name: str
    manifest: Manifest
    metrics: list[dict[str, Any]]
    speed: list[Speed]
    attempt: Attempt
    plan: Plan | None

    def series(self, name: str) -> list[tuple[int, float]]:
        """(step, value) of every row that has a number called `name`."""
        return [(row["step"], float(row[name])) for row in self.metrics if row[name] is not None]

    def last(self, name: str) -> float | None:
        """The last number called `name`, or None."""
        values = self.series(name)
        return values[-1][1] if values else None

    @property
    def mean_mfu(self) -> float | None:
        """Mean of the readings, or None."""
        values = [row.mfu for row in self.speed if row.mfu is not None]
        return math.fsum(values) / len(values) if values else None

    @property
    def peak_memory_mib(self) -> float | None:
        """The highest reading, or None."""
        return max((row.peak_memory_mib for row in self.speed if row.peak_memory_mib is not None), default=None)


def read_run(run: str, pretraining: Path, cost: Path | None = None) -> RunFacts:
    """Everything about the run whose manifest is given; `cost` is the cost.csv of its experiment.

    Raises ManifestError when the result differs from its manifest, EvaluationError naming file and line for rows that
    are none, and for a cost table without this run.
    """
    manifest = read_verified(pretraining)
    speed, provenance = manifest.folder / SPEED_FILE, pretraining.with_name(PROVENANCE)
    volatile = volatile_facts(pretraining)
    # Checksums say nothing of the run; its files have a section of their own.
    volatile.pop("manifest_sha256", None)
    recorded = dict(volatile.pop("files", None) or {}).get(SPEED_FILE)
    if recorded is not None:
        remedy = f"remove {pretraining} to have both again"
        check_file(speed, Expected(str(speed), None, str(recorded), str(provenance), remedy))
    known = {item.name for item in fields(Attempt)}
    told = {name: value for name, value in volatile.items() if name in known}
    further = {name: value for name, value in volatile.items() if name not in known}
    return RunFacts(
        name=run,
        manifest=manifest,
        metrics=metric_rows(manifest),
        speed=json_records(speed, Speed) if speed.is_file() else [],
        attempt=record(Attempt, {**told, "further": further}, str(provenance)),
        plan=None if cost is None else _plan(cost, run),
    )


def _plan(path: Path, run: str) -> Plan:
    for row in read_records(vouched(path), Plan):
        if row.cell == run:
            return row
    raise EvaluationError(f"{path}: there is no row of the run {run!r}")
