"""Estimated run times of an experiment's pretrainings, from the FLOPs of their steps and the speed of the planned
device.

FLOPs are counted as in the cost estimate (`cost_estimate.py`); the speed is the device's peak speed, multiplied by
`cluster.planned_mfu`. The estimate is used only for the run time that a job requests from a cluster. If a pretraining
is stopped at this limit, the next attempt continues the pretraining. The constants below are assumptions with a margin,
not measurements; `results/benchmarks/` contains measured times of jobs.
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
"""Factor by which the estimated run time is multiplied in the request."""

START_MINUTES = 15
"""Minutes that are added to a request for the time outside of training steps: waiting, two starts of Python and
Snakemake, loading, checkpoints, and the final evaluation.
"""


class PretrainingTimes:
    """Estimated run times of an experiment's pretrainings.

    `settings` are the settings of the experiment's stage `write_cost`, as JSON text.
    """

    def __init__(self, project: "Project", settings: str) -> None:
        costs, cluster = cost_settings(json.loads(settings)), project.config.cluster
        self._runs = {run.name: run for run in costs.runs}
        self._vocabulary_size = costs.vocabulary_size
        # If the cluster has no GPUs, replace the planned device by the CPU, because the cluster's jobs use the CPU.
        plan = costs.plan if cluster.gpus_per_node else replace(costs.plan, device="cpu")
        self._plan = replace(plan, threads=cluster.cpus_per_gpu or plan.threads)
        self._seconds: dict[str, float] = {}

    def minutes(self, run: str) -> float | None:
        """Return the number of minutes that a job requests for a complete pretraining.

        None if the device does not support the precision of the run.
        """
        try:
            return START_MINUTES + RESERVE * self.seconds(run) / 60
        except ConfigError:
            return None

    def seconds(self, run: str) -> float:
        """Return the estimated seconds of a complete pretraining, without the reserve of time that `minutes` adds.

        Raises ConfigError if the device does not support the precision of the run.
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
    """Return the training FLOPs of one sequence of `length` tokens. `labelled_share` is the share of positions that
    have a label.

    `model` is JSON text, so that results can be cached: runs with different seeds or training variants have equal
    models.
    """
    return training_flops_per_sequence(json.loads(model), vocabulary_size, length, labelled_share)


@cache
def _flops_per_taught_sequence(
    model: str, teachers: str, vocabulary_size: int, length: int, labelled_share: float
) -> float:
    """Return the training FLOPs of one sequence of `length` tokens, including the forward passes of the teachers.
    `labelled_share` is the share of positions that have a label.

    Results are cached.
    """
    taught = teaching_flops_per_sequence(json.loads(teachers), vocabulary_size, length, labelled_share)
    return _flops_per_sequence(model, vocabulary_size, length, labelled_share) + taught
