"""What the results of an experiment give figures to draw, as far as its configuration says."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hatchery.analysis.settings import RegularisedStart
from hatchery.analysis.task_averages import bias_features
from hatchery.settings.fields import ABSENT
from hatchery.views.figures.registry import NEEDS

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project


def drawable(project: "Project", experiment: str) -> list[str]:
    """What an experiment's results give figures to draw (`NEEDS`)."""
    block = project.experiment(experiment)
    tasks, trainings = block.finetuning.tasks, [run.pretraining for run in block.runs.values()]
    tests = block.translation.tests
    lacking = {
        # Of models that only add their layers, there is nothing to see but ones.
        "layer_weights": all(project.model_of(experiment, run).layer_weighting == "none" for run in block.runs),
        "divergences": not any(training.divergences for training in trainings),
        "bias_drift": not any(training.bias_drift for training in trainings),
        "frequencies": not (block.perplexity.splits and block.perplexity.frequency_bin_nats),
        "translations": all(training.objective.task != "translation" for training in trainings),
        "translated_tests": not tests,
        "regularised_starts": not (tests and regularised_starts(block)),
        "sweeps": not project.expansion(experiment).swept_values(),
        "minimal_pairs": not block.minimal_pairs,
        "tasks": not tasks,
        "ambiguous_tasks": all(bias_features(task) is None for task in tasks),
        "probes": all(project.task(task).head.kind != "span_classification" for task in tasks),
    }
    return [need for need in NEEDS if not lacking.get(need, False)]


def regularised_starts(experiment: "Experiment") -> dict[str, RegularisedStart]:
    """The runs that start from a run with `unigram_penalty`, and those that differ from them in nothing else.

    With that penalty and its steps, both 0 where there was none; empty where no run starts so.
    """
    found, compared, runs = dict[str, RegularisedStart](), [], experiment.runs
    for run, entry in runs.items():
        start = entry.pretraining.initialise_from
        before = None if start is None or start.run is ABSENT else runs.get(start.run)
        if before is not None and (penalty := getattr(before.pretraining.objective, "unigram_penalty", 0.0)):
            found[run] = RegularisedStart(penalty, before.pretraining.steps)
            compared.append((entry.model, entry.model_changes, replace(entry.pretraining, initialise_from=None)))
    others = {
        run: RegularisedStart(0.0, 0)
        for run, entry in runs.items()
        if (entry.model, entry.model_changes, entry.pretraining) in compared
    }
    return {**others, **found}
