"""Settings of significance tests between the models of a single experiment, without a study."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.paired_tests import EVERY_TWO_UP_TO

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment


def own_tests(experiment: "Experiment", items: Collection[str]) -> dict[str, Any] | None:
    """Return the settings of significance tests over the suites or tasks `items`; None if there are no items or fewer
    than two models.
    """
    several = len([*experiment.runs, *experiment.baselines]) > 1
    return {"against": tested_against(experiment)} if several and items else None


def tested_against(experiment: "Experiment") -> str | None:
    """Return the model with which all other models of an experiment are compared in significance tests, or None to
    compare all pairs of models.

    `tests_against` sets the model. By default, all pairs are compared if there are at most EVERY_TWO_UP_TO models.
    Otherwise, all models are compared with the first model in this order: untrained models, baselines, other runs.
    """
    models = [*experiment.runs, *experiment.baselines]
    if experiment.tests_against is not None or len(models) <= EVERY_TWO_UP_TO:
        return experiment.tests_against
    return next(iter((*untrained_models(experiment), *experiment.baselines, *models)))


def untrained_models(experiment: "Experiment") -> list[str]:
    """Return the models of an experiment that have 0 training steps and random initial weights."""
    started = {name: run.pretraining for name, run in experiment.runs.items()}
    return [name for name, each in started.items() if not each.steps and each.initialise_from is None]
