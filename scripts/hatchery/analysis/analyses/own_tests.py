"""Settings of the tests of differences between the models of a single experiment, without a study."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from hatchery.analysis.analyses.paired_tests import EVERY_TWO_UP_TO

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment


def own_tests(experiment: "Experiment", items: Collection[str]) -> dict[str, Any] | None:
    """Return the settings of tests on suites or tasks (`items`); None if there are no items or fewer than two
    models."""
    several = len([*experiment.runs, *experiment.baselines]) > 1
    return {"against": tested_against(experiment)} if several and items else None


def tested_against(experiment: "Experiment") -> str | None:
    """Return the model against which all other models of an experiment are tested; None if all pairs of models are
    tested.

    If `tests_against` is not set and the experiment has more than a few models, this is the first untrained model, else
    the first baseline, else the first run.
    """
    models = [*experiment.runs, *experiment.baselines]
    if experiment.tests_against is not None or len(models) <= EVERY_TWO_UP_TO:
        return experiment.tests_against
    return next(iter((*untrained_models(experiment), *experiment.baselines, *models)))


def untrained_models(experiment: "Experiment") -> list[str]:
    """Return the models of an experiment that have 0 steps and start from random weights."""
    started = {name: run.pretraining for name, run in experiment.runs.items()}
    return [name for name, each in started.items() if not each.steps and each.initialise_from is None]
