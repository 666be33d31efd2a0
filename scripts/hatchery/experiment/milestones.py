"""Models of inside a training that an experiment evaluates: which they are, and on what."""

from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.evaluation.evaluation import evaluations
from hatchery.experiment.experiment_file import Experiment
from hatchery.settings.problems import offered

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

KEY = "evaluate_milestones"


def is_asked(experiment: Experiment, kind: str, name: str) -> bool:
    """Whether a kind of evaluation, of this name if it has names, is measured of milestones."""
    return bool({kind, f"{kind}/{name}"} & set(experiment.evaluate_milestones))


def check_milestones(name: str, experiment: Experiment, where: str, project: "Project") -> None:
    """Raise ConfigError where milestones are to be measured as nothing is, or where there are none."""
    runs = project.evaluated_runs(name)
    allowed: dict[str, None] = {}
    for kind, evaluation in evaluations().items():
        names = dict.fromkeys(asked for run in runs for asked in evaluation.asked(experiment, run))
        allowed |= dict.fromkeys([kind, *(f"{kind}/{one}" for one in names if one)] if names else [])
    for entry in experiment.evaluate_milestones:
        if entry not in allowed:
            raise ConfigError(
                f"{where}: {KEY}: got {entry!r}, expected an evaluation of the experiment{offered(entry, allowed)}"
            )
    if experiment.evaluate_milestones and not project.milestones(name):
        raise ConfigError(
            f"{where}: {KEY}: no run has `milestones` under its `pretraining`; name steps, or leave it out"
        )
