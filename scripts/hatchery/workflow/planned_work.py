"""How long the jobs of an experiment will take, from the work that its settings name and the device it is planned for.

Operations are those of the cost estimate (`cost_estimate.py`) and of what there is to evaluate (`evaluation_work.py`),
the pace is the device's peak times
`cluster.planned_mfu`. The estimate asks a cluster for time and decides nothing else: a pretraining or fine-tuning that
is stopped at its limit goes on in the next attempt. The factors below are assumptions with room to spare, not
measurements; `results/benchmarks/` holds what jobs really took.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.experiment.cluster import precision_and_peak
from hatchery.modeling.families import training_flops_per_sequence
from hatchery.modeling.flops import FlopsPerSequence
from hatchery.sums import plain_sum
from hatchery.training.settings import pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.workflow.cost_estimate import cost_settings, development_flops, planned_at
from hatchery.workflow.evaluation_work import (
    PairWork,
    TuningWork,
    evaluation_seconds,
    pair_work,
    tuning_work,
)

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

RESERVE = 1.5
"""Time that is asked for, as a share of the estimated time."""

START_MINUTES = 15
"""Queue of the file system, starting Python and Snakemake twice, loading, checkpoints, the final evaluation."""


class PlannedWork:
    """The times of one experiment's jobs. `settings` is the canonical JSON of its stage `write_cost`."""

    def __init__(self, project: "Project", settings: str, evaluation_threads: int) -> None:
        costs, cluster = cost_settings(json.loads(settings)), project.config.cluster
        self._project, self._experiment = project, costs.experiment
        self._runs = {run.name: run for run in costs.runs}
        self._vocabulary_size = costs.vocabulary_size
        # Without GPUs on the cluster, what the experiment is priced for is not what it will run on.
        self._plan = costs.plan if cluster.gpus_per_node else replace(costs.plan, device="cpu")
        self._threads = cluster.cpus_per_gpu or costs.plan.threads
        self._evaluation_threads = evaluation_threads
        self._minutes: dict[tuple[str, ...], float | None] = {}

    def pretraining_minutes(self, run: str) -> float | None:
        """Minutes of a whole pretraining; None where the planned device does not compute in its precision."""

        return self._once(("pretraining", run), lambda: self.pretraining_seconds(run))

    def pretraining_seconds(self, run: str) -> float:
        """Seconds of a whole pretraining, nothing in reserve. Raises ConfigError for a precision that there is not."""
        settings = pretrain_settings(self._runs[run].pretraining)
        _, peak = precision_and_peak(settings.precision, replace(self._plan, threads=self._threads))
        first, per_sequence, pace = self._runs[run].first_step, self._per_sequence(run), peak * self._plan.mfu
        plan = StepPlan(planned_at(settings, per_sequence, pace))
        return (plan.flops(per_sequence, first) + development_flops(plan, first, per_sequence)) / pace

    def minimal_pairs_minutes(self, run: str, suite: str) -> float | None:
        """Minutes of scoring one suite with one model on one device; None where nobody knows its pairs yet."""
        return self._evaluation(("suite", run, suite), run, [pair_work(self._project, suite)])

    def finetuning_minutes(self, run: str, tasks: list[str]) -> float | None:
        """Minutes of one job that fine-tunes one model on these tasks, with all their seeds, on one device.

        None where nobody knows their rows yet.
        """
        work = [tuning_work(self._project, self._experiment, task) for task in tasks]
        return self._evaluation(("tasks", run, *tasks), run, work)

    def _evaluation(self, key: tuple[str, ...], run: str, work: Sequence[PairWork | TuningWork | None]) -> float | None:
        # No plan knows how large a model of others is.
        known = [one for one in work if one is not None]
        if run not in self._runs or len(known) < len(work):
            return None

        def seconds() -> float:
            flops = plain_sum(one.flops(self._per_sequence(run)) for one in known)
            return evaluation_seconds(flops, replace(self._plan, threads=self._evaluation_threads))

        return self._once(key, seconds)

    def _per_sequence(self, run: str) -> FlopsPerSequence:
        model = json.dumps(self._runs[run].pretraining["model"], sort_keys=True)
        return partial(_flops_per_sequence, model, self._vocabulary_size)

    def _once(self, key: tuple[str, ...], seconds: Callable[[], float]) -> float | None:
        if key not in self._minutes:
            try:
                self._minutes[key] = START_MINUTES + RESERVE * seconds() / 60
            except ConfigError:
                self._minutes[key] = None
        return self._minutes[key]


@cache
def _flops_per_sequence(model: str, vocabulary_size: int, length: int, labelled_share: float) -> float:
    """By the JSON of a model: seeds, and runs that differ in training only, share their counts."""
    return training_flops_per_sequence(json.loads(model), vocabulary_size, length, labelled_share)
