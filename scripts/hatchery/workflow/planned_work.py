"""How long the jobs of an experiment will take, from the work that its settings name and the device it is planned for.

Operations are those of the cost estimate (`modeling/flops.py`, `workflow/evaluation_costs.py`), the pace is the
device's peak times `cluster.planned_mfu`. The estimate asks a cluster for time and decides nothing else: a pretraining
or fine-tuning that is stopped at its limit goes on in the next attempt. The factors below are assumptions with room to
spare, not measurements; `results/benchmarks/` holds what jobs really took.
"""

import json
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.cluster import ClusterSettings, PlannedDevice, PlanSettings, precision_and_peak
from hatchery.modeling.families import training_flops_per_sequence
from hatchery.training.settings import pretrain_settings
from hatchery.workflow.cost_estimate import pretraining_flops
from hatchery.workflow.evaluation_costs import (
    FlopsPerSequence,
    SuiteSettings,
    TaskSettings,
    finetuning_flops,
    minimal_pairs_flops,
)

RESERVE = 1.5
"""Time that is asked for, as a share of the estimated time."""

EVALUATION_PACE = 0.25
"""Pace of evaluation, as a share of that of pretraining: its batches are short and small, and it computes in fp32."""

START_MINUTES = 15
"""Queue of the file system, starting Python and Snakemake twice, loading, checkpoints, the final evaluation."""


class PlannedWork:
    """The times of one experiment's jobs. `settings` is the canonical JSON of its stage `write_cost`."""

    def __init__(self, settings: str, cluster: ClusterSettings, evaluation_threads: int) -> None:
        body = json.loads(settings)
        self._runs: dict[str, Mapping[str, Any]] = {run["name"]: run["pretraining"] for run in body["runs"]}
        self._first_steps: dict[str, int] = {run["name"]: run.get("first_step", 0) for run in body["runs"]}
        self._vocabulary_size = int(body["vocabulary_size"])
        self._suites = {suite["name"]: SuiteSettings(**suite) for suite in body["suites"]}
        self._tasks = {task["name"]: TaskSettings(**task) for task in body["tasks"]}
        self._plan = body["plan"]
        self._cluster = cluster
        self._evaluation_threads = evaluation_threads
        self._flops: dict[tuple[str, int, float], float] = {}
        self._minutes: dict[tuple[str, ...], float | None] = {}

    def pretraining_minutes(self, run: str) -> float | None:
        """Minutes of a whole pretraining; None where the planned device does not compute in its precision."""
        return self._once(("pretraining", run), lambda: self._pretraining_seconds(run))

    def minimal_pairs_minutes(self, run: str, suite: str) -> float | None:
        """Minutes of scoring one suite with one model on one device."""
        chosen = self._suites[suite]
        return self._evaluation(("suite", run, suite), run, lambda per: minimal_pairs_flops(chosen, per))

    def finetuning_minutes(self, run: str, tasks: list[str]) -> float | None:
        """Minutes of one job that fine-tunes one model on these tasks, with all their seeds, on one device."""
        chosen = [self._tasks[task] for task in tasks]
        return self._evaluation(
            ("tasks", run, *tasks), run, lambda per: sum(finetuning_flops(task, per) for task in chosen)
        )

    def _evaluation(self, key: tuple[str, ...], run: str, work: Callable[[FlopsPerSequence], float]) -> float | None:
        if run not in self._runs:
            # No plan knows how large a model of others is.
            return None

        def seconds() -> float:
            _, peak = precision_and_peak("fp32", self._device(1, self._evaluation_threads))
            return work(partial(self._per_sequence, run)) / (peak * self._cluster.planned_mfu * EVALUATION_PACE)

        return self._once(key, seconds)

    def _pretraining_seconds(self, run: str) -> float:
        settings = pretrain_settings(self._runs[run])
        threads = self._cluster.cpus_per_gpu or int(self._plan["threads"])
        _, peak = precision_and_peak(settings.precision, self._device(self._cluster.processes, threads))
        work = pretraining_flops(settings, self._first_steps[run], partial(self._per_sequence, run))
        return sum(work) / (peak * self._cluster.planned_mfu)

    def _per_sequence(self, run: str, length: int, labelled: float) -> float:
        key = (self._model_key[run], length, labelled)
        if key not in self._flops:
            model = self._runs[run]["model"]
            self._flops[key] = training_flops_per_sequence(model, self._vocabulary_size, length, labelled)
        return self._flops[key]

    @cached_property
    def _model_key(self) -> dict[str, str]:
        """Runs whose models are alike share their counts: seeds, and runs that differ in training only."""
        return {run: json.dumps(values["model"], sort_keys=True) for run, values in self._runs.items()}

    def _device(self, devices: int, threads: int) -> PlanSettings:
        # Without GPUs on the cluster, what the experiment is priced for is not what it will run on.
        device: PlannedDevice = self._plan["device"] if self._cluster.gpus_per_node else "cpu"
        return PlanSettings(device, devices, threads, self._cluster.planned_mfu, keep_checkpoints=0, milestones=())

    def _once(self, key: tuple[str, ...], seconds: Callable[[], float]) -> float | None:
        if key not in self._minutes:
            try:
                self._minutes[key] = START_MINUTES + RESERVE * seconds() / 60
            except ConfigError:
                self._minutes[key] = None
        return self._minutes[key]
