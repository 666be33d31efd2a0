"""What figures draw: a record for every kind of results that a figure may need.

Besides, a figure may need an analysis by its name; then it is one of studies that have such an entry.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hatchery.analysis.settings import RegularisedStart
from hatchery.analysis.task_averages import bias_features
from hatchery.modeling.configuration import UNRESTRICTED
from hatchery.settings.fields import ABSENT

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.training.settings import PretrainingSettings


@dataclass(frozen=True)
class Need:
    """A kind of results: the tidy table where it stands, and what a user calls it."""

    table: str
    name: str
    asked_by: Callable[["Project", str], object] = lambda project, experiment: True
    """Whether an experiment has it, as far as its configuration says."""


def regularised_starts(experiment: "Experiment") -> dict[str, RegularisedStart]:
    """The runs that start from a run with `unigram_penalty`, and those that differ from them in nothing else.

    With that penalty and its steps, both 0 where there was none; empty where no run starts so.
    """
    found, compared, runs = dict[str, RegularisedStart](), [], experiment.runs
    for run, entry in runs.items():
        start = entry.pretraining.initialise_from
        before = None if start is None or start.run is ABSENT else runs.get(start.run)
        if before is not None and (penalty := getattr(before.pretraining.objective, "unigram_penalty", 0.0)):
            found[run] = RegularisedStart(penalty, before.pretraining.planned().steps)
            compared.append((entry.model, entry.model_changes, replace(entry.pretraining, initialise_from=None)))
    others = {
        run: RegularisedStart(0.0, 0)
        for run, entry in runs.items()
        if (entry.model, entry.model_changes, entry.pretraining) in compared
    }
    return {**others, **found}


def _weights_layers(project: "Project", experiment: str) -> bool:
    # Of models that only add their layers, there is nothing to see but ones; GPT-BERT's weights combine blocks.
    runs = project.experiment(experiment).runs
    weightings = {project.model_of(experiment, run).layer_weighting for run in runs}
    return UNRESTRICTED not in weightings and weightings != {"none"}


def _bins_frequencies(project: "Project", experiment: str) -> bool:
    perplexity = project.experiment(experiment).perplexity
    return bool(perplexity.splits and perplexity.frequency_bin_nats)


def _starts_regularised(project: "Project", experiment: str) -> bool:
    block = project.experiment(experiment)
    return bool(block.translation.tests and regularised_starts(block))


def _pretraining(project: "Project", experiment: str) -> Iterator["PretrainingSettings"]:
    return (run.pretraining for run in project.experiment(experiment).runs.values())


def _tasks(project: "Project", experiment: str) -> Mapping[str, object]:
    return project.experiment(experiment).finetuning.tasks


# In the order of the page.
NEEDS = {
    "runs": Need("runs", "pretrained models"),
    "curves": Need("curves", "pretrained models"),
    "layer_weights": Need("layers", "pretrained models", _weights_layers),
    "minimal_pairs": Need(
        "measurements",
        "suites of minimal pairs",
        lambda project, experiment: project.experiment(experiment).minimal_pairs,
    ),
    "surprisals": Need(
        "measurements",
        "texts under `surprisal`",
        lambda project, experiment: project.experiment(experiment).surprisal,
    ),
    "milestones": Need(
        "measurements",
        "models of inside a training under `evaluate_milestones`",
        lambda project, experiment: project.milestones(experiment),
    ),
    "tasks": Need("measurements", "fine-tuning tasks", _tasks),
    "ambiguous_tasks": Need(
        "measurements",
        "ambiguous tasks of MSGS",
        lambda *of: any(bias_features(task) is not None for task in _tasks(*of)),
    ),
    "probes": Need(
        "layers",
        "edge probing tasks",
        lambda project, experiment: any(
            project.task(task).head.kind == "span_classification" for task in _tasks(project, experiment)
        ),
    ),
    "divergences": Need(
        "curves",
        "runs with `divergences: true`",
        lambda *of: any(settings.divergences for settings in _pretraining(*of)),
    ),
    "bias_drift": Need(
        "curves",
        "runs with `bias_drift: true`",
        lambda *of: any(settings.bias_drift for settings in _pretraining(*of)),
    ),
    "frequencies": Need("measurements", "splits with `perplexity.frequency_bin_nats`", _bins_frequencies),
    "translations": Need(
        "curves",
        "models that translate",
        lambda *of: any(settings.objective.task == "translation" for settings in _pretraining(*of)),
    ),
    "translated_tests": Need(
        "measurements",
        "test sets under `translation`",
        lambda project, experiment: project.experiment(experiment).translation.tests,
    ),
    "regularised_starts": Need(
        "measurements",
        "runs on test sets that start from runs with `unigram_penalty`",
        _starts_regularised,
    ),
    "sweeps": Need(
        "measurements",
        "sweeps or grids",
        lambda project, experiment: project.expansion(experiment).swept_values(),
    ),
}


def drawable(project: "Project", experiment: str) -> list[str]:
    """What an experiment's results give figures to draw (`NEEDS`)."""
    return [name for name, need in NEEDS.items() if need.asked_by(project, experiment)]
