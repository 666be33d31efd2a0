"""How long the pretrainings of an experiment will take, from the operations of their steps and the planned device.

Operations are those of the cost estimate (`cost_estimate.py`), the pace is the device's peak times
`cluster.planned_mfu`. The estimate asks a cluster for time and decides nothing else: a pretraining that is stopped at
its limit goes on in the next attempt. The factors below are assumptions with room to spare, not measurements;
`results/benchmarks/` holds what jobs really took.
"""

import json
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.experiment.cluster import precision_and_peak
from hatchery.modeling.families import training_flops_per_sequence
from hatchery.training.settings import pretrain_settings
from hatchery.training.step_plan import StepPlan
from hatchery.workflow.cost_estimate import cost_settings, development_flops, planned_at

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

RESERVE = 1.5
"""Time that is asked for, as a share of the estimated time."""

START_MINUTES = 15
"""Queue of the file system, starting Python and Snakemake twice, loading, checkpoints, the final evaluation."""


class PretrainingTimes:
    """The times of one experiment's pretrainings. `settings` is the canonical JSON of its stage `write_cost`."""

    def __init__(self, project: "Project", settings: str) -> None:
        costs, cluster = cost_settings(json.loads(settings)), project.config.cluster
        self._runs = {run.name: run for run in costs.runs}
        self._vocabulary_size = costs.vocabulary_size
        # Without GPUs on the cluster, what the experiment is priced for is not what it will run on.
        plan = costs.plan if cluster.gpus_per_node else replace(costs.plan, device="cpu")
        self._plan = replace(plan, threads=cluster.cpus_per_gpu or plan.threads)
        self._seconds: dict[str, float] = {}

    def minutes(self, run: str) -> float | None:
        """Minutes to ask for a whole pretraining; None where the planned device does not compute in its precision."""
        try:
            return START_MINUTES + RESERVE * self.seconds(run) / 60
        except ConfigError:
            return None

    def seconds(self, run: str) -> float:
        """Seconds of a whole pretraining, nothing in reserve. Raises ConfigError for a precision that there is not."""
        if run not in self._seconds:
            pretraining, first = self._runs[run].pretraining, self._runs[run].first_step
            settings = pretrain_settings(pretraining)
            _, peak = precision_and_peak(settings.precision, self._plan)
            model, pace = json.dumps(pretraining["model"], sort_keys=True), peak * self._plan.mfu
            per_sequence = partial(_flops_per_sequence, model, self._vocabulary_size)
            plan = StepPlan(planned_at(settings, per_sequence, pace))
            flops = plan.flops(per_sequence, first) + development_flops(plan, first, per_sequence)
            self._seconds[run] = flops / pace
        return self._seconds[run]


@cache
def _flops_per_sequence(model: str, vocabulary_size: int, length: int, labelled_share: float) -> float:
    """By the JSON of a model: seeds, and runs that differ in training only, share their counts."""
    return training_flops_per_sequence(json.loads(model), vocabulary_size, length, labelled_share)
