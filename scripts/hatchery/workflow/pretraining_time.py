"""Estimated times of an experiment's pretrainings, from the operations of their steps and the planned device.

Operations are those of the cost estimate (`cost_estimate.py`); the pace is the device's peak times
`cluster.planned_mfu`. The estimate is only used for the time requested from a cluster: a pretraining that is stopped
at its limit continues in the next attempt. The factors below are assumptions with a margin, not measurements;
`results/benchmarks/` holds measured times of jobs.
"""

import json
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.experiment.cluster import precision_and_peak
from hatchery.modeling.families import teaching_flops_per_sequence, training_flops_per_sequence
from hatchery.training.settings import pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.workflow.cost_estimate import cost_settings, development_flops, planned_at

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

RESERVE = 1.5
"""Requested time divided by the estimated time."""

START_MINUTES = 15
"""Minutes for waiting, two starts of Python and Snakemake, loading, checkpoints, the final evaluation."""


class PretrainingTimes:
    """The times of one experiment's pretrainings. `settings` is the canonical JSON of its stage `write_cost`."""

    def __init__(self, project: "Project", settings: str) -> None:
        costs, cluster = cost_settings(json.loads(settings)), project.config.cluster
        self._runs = {run.name: run for run in costs.runs}
        self._vocabulary_size = costs.vocabulary_size
        # Without GPUs on the cluster, the device of the cost estimate is not that of the job.
        plan = costs.plan if cluster.gpus_per_node else replace(costs.plan, device="cpu")
        self._plan = replace(plan, threads=cluster.cpus_per_gpu or plan.threads)
        self._seconds: dict[str, float] = {}

    def minutes(self, run: str) -> float | None:
        """Return the minutes to request for a whole pretraining; None if the device does not support its precision."""
        try:
            return START_MINUTES + RESERVE * self.seconds(run) / 60
        except ConfigError:
            return None

    def seconds(self, run: str) -> float:
        """Return the seconds of a whole pretraining, without reserve.

        Raises ConfigError for an unsupported precision.
        """
        if run not in self._seconds:
            pretraining, first = self._runs[run].pretraining, self._runs[run].first_step
            settings = pretrain_settings(pretraining)
            _, peak = precision_and_peak(settings.precision, self._plan)
            model, pace = json.dumps(pretraining["model"], sort_keys=True), peak * self._plan.mfu
            per_sequence = partial(_flops_per_sequence, model, self._vocabulary_size)
            teachers = json.dumps(self._runs[run].teachers, sort_keys=True)
            taught = partial(_flops_per_taught_sequence, model, teachers, self._vocabulary_size)
            plan = StepPlan(planned_at(settings, taught, pace))
            flops = plan.flops(taught, first) + development_flops(plan, first, per_sequence)
            self._seconds[run] = flops / pace
        return self._seconds[run]


@cache
def _flops_per_sequence(model: str, vocabulary_size: int, length: int, labelled_share: float) -> float:
    """Return the operations of one sequence.

    Cached by the JSON of a model, because seeds and variants of training share it.
    """
    return training_flops_per_sequence(json.loads(model), vocabulary_size, length, labelled_share)


@cache
def _flops_per_taught_sequence(
    model: str, teachers: str, vocabulary_size: int, length: int, labelled_share: float
) -> float:
    """Return the operations of one sequence, with the forward passes of teachers."""
    taught = teaching_flops_per_sequence(json.loads(teachers), vocabulary_size, length, labelled_share)
    return _flops_per_sequence(model, vocabulary_size, length, labelled_share) + taught
