"""Which fine-tuning job makes which results: a job of its own for every task, or several tasks in a job.

An experiment says how many (`finetuning.tasks_per_job`); else there are several only where there would be thousands
of jobs. Jobs are named after the order of the tasks, and what a
task's results hold does not depend on its job.
"""

from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Finetuning
from hatchery.experiment.project import Project

MOST_JOBS = 4000
"""Fine-tuning jobs of an experiment that does not say how many tasks a job has: each takes 2 ms to plan."""


def task_batches(finetuning: Finetuning, models: int) -> dict[str, list[str]]:
    """The tasks of each job by its name, for the `finetuning` block of an experiment with so many models.

    None where jobs have one task.
    """
    tasks = list(finetuning.tasks)
    size = finetuning.tasks_per_job or max(1, -(-models * len(tasks) // MOST_JOBS))
    if size == 1:
        return {}
    return {f"batch_{start // size + 1}": tasks[start : start + size] for start in range(0, len(tasks), size)}


def task_batch(project: Project, experiment: str, batch: str) -> list[str]:
    """The tasks of one job. Raises ConfigError for a name that no job of the experiment has."""
    batches = _batches(project, experiment)
    if batch not in batches:
        raise ConfigError(
            f"experiment {experiment!r} has no job {batch!r} of several fine-tuning tasks; "
            f"there are: {', '.join(batches) or 'none'}"
        )
    return batches[batch]


def _batches(project: Project, experiment: str) -> dict[str, list[str]]:
    return task_batches(project.experiment(experiment).finetuning, len(project.seeded_runs(experiment)))


def batches_by_task(project: Project, experiment: str) -> dict[str, str]:
    """The job that works on each task; none where every task has its own."""
    return {task: name for name, tasks in _batches(project, experiment).items() for task in tasks}
