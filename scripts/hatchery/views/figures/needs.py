"""The kinds of results that figures need (`NEEDS`). Each kind names the tidy table that contains its results, and has a
function that checks if an experiment has results of this kind.

A figure may also need an analysis; then only studies with this analysis have the figure. Some kinds of results need
further settings of the figure (`Asks`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hatchery.analysis.settings import FigureSettings, asked_tasks
from hatchery.analysis.task_averages import bias_features
from hatchery.experiment.seeded_run import SeededRun, of_member
from hatchery.modeling.configuration import UNRESTRICTED
from hatchery.settings.base import Settings
from hatchery.settings.fields import ABSENT

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.training.settings import PretrainingSettings


@dataclass(frozen=True)
class Asks:
    """The settings that a kind of results adds to the settings of each figure that draws these results.

    `settings` is the settings class of these figures. `values` computes the added settings from a project, the name of
    an experiment or study, and the drawn runs. `models` returns the models that these figures draw; None if they draw
    all models.
    """

    settings: type[FigureSettings]
    values: Callable[["Project", str, Sequence[SeededRun]], Mapping[str, object]]
    models: Callable[["Project", str], Collection[str]] | None = None


@dataclass(frozen=True)
class Need:
    """A kind of results: the tidy table that contains these results, and their name in messages."""

    table: str
    name: str
    asked_by: Callable[["Project", str], object] = lambda project, experiment: True
    """Function that returns a true value if an experiment has these results, according to its configuration."""
    of_others: bool = False
    """True if external models also have these results; False for results of training, which is unknown for external
    models.
    """
    asks: Asks | None = None


@dataclass(frozen=True)
class RegularisedStart(Settings):
    """Settings of the penalty for predictions near the unigram distribution: its strength, and the number of steps with
    the penalty. For a run without the penalty, both are 0.
    """

    penalty: float
    steps: int


@dataclass(frozen=True)
class SweptValues(Settings):
    """The values that one run of a sweep or grid has for the varied configuration keys.

    `line` is the name of the figure's line that contains the run. Runs on the same line differ only in these values.
    `sized` is True for runs of a grid, which differ in their number of parameters.
    """

    line: str
    sized: bool = False
    values: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class SweptFigure(FigureSettings):
    """Settings of a figure of models that sweeps or grids define.

    `objectives` maps models to prediction tasks, because perplexities of different prediction tasks are not comparable.
    The mapping is empty if all models have the same prediction task.
    """

    swept: dict[str, SweptValues] = field(default_factory=dict)
    objectives: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RegularisedFigure(FigureSettings):
    """Settings of a figure that compares models trained with the penalty `unigram_penalty` in their first steps to
    models trained without this penalty.
    """

    regularised: dict[str, RegularisedStart] = field(default_factory=dict)


@dataclass(frozen=True)
class MilestonesFigure(FigureSettings):
    """Settings of a figure of the intermediate checkpoints (`milestones`) of the runs."""

    milestones: tuple[SeededRun, ...] = ()


def regularised_starts(experiment: "Experiment") -> dict[str, RegularisedStart]:
    """Return, by run, the strength of the penalty and the number of steps with the penalty, for two groups of runs.

    The runs of the second group start from a run with `unigram_penalty`. The runs of the first group have the same
    model and pretraining settings as a run of the second group, but do not start from another model; their two values
    are 0. Empty if no run starts from a run with `unigram_penalty`.
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
    # Draw no figure if all models are plain residual streams, in which every weight is 1. Also draw no figure if a
    # model has GPT-BERT's layer weighting `unrestricted`, whose weights combine attention and feed-forward blocks, not
    # layers.
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


def _milestones(project: "Project", experiment: str, runs: Sequence[SeededRun]) -> Mapping[str, object]:
    if not project.is_study(experiment):
        found = list(project.milestones(experiment).values())
    else:
        parts = project.members(experiment)
        found = [of_member(part, run) for part in parts for run in project.milestones(part).values()]
    names = {run.name for run in runs}
    return {"milestones": [run for run in found if run.milestone_of in names]}


def _regularised(project: "Project", experiment: str) -> Mapping[str, RegularisedStart]:
    return project.for_members(experiment, lambda part: regularised_starts(project.experiment(part)))


def _swept(project: "Project", experiment: str) -> Mapping[str, Mapping[str, object]]:
    found = project.for_members(experiment, lambda part: project.expansion(part).swept_values())
    # In a study, the names of models, and of curves that connect swept runs, begin with the name of the experiment.
    return {
        model: {**values, "line": f"{model.removesuffix(model.rpartition('/')[2])}{values['line']}"}
        for model, values in found.items()
    }


def _swept_with_objectives(project: "Project", experiment: str, runs: Sequence[SeededRun]) -> Mapping[str, object]:
    tasks = project.for_members(experiment, lambda part: asked_tasks(project.experiment(part)))
    asked = {run.model: tasks[run.model] for run in runs}
    return {"swept": _swept(project, experiment), "objectives": asked if len(set(asked.values())) > 1 else {}}


# Kinds of results, in the order of their figures on the page.
NEEDS = {
    "runs": Need("runs", "pretrained models"),
    "curves": Need("curves", "pretrained models"),
    "layer_weights": Need("layers", "pretrained models", _weights_layers),
    "minimal_pairs": Need(
        "measurements",
        "suites of minimal pairs",
        lambda project, experiment: project.experiment(experiment).minimal_pairs,
        of_others=True,
    ),
    "surprisals": Need(
        "measurements",
        "texts under `surprisal`",
        lambda project, experiment: project.experiment(experiment).surprisal,
        of_others=True,
    ),
    "reading_times": Need(
        "measurements",
        "tables under `reading_times`",
        lambda project, experiment: project.experiment(experiment).reading_times,
        of_others=True,
        asks=Asks(MilestonesFigure, values=_milestones),
    ),
    "milestones": Need(
        "measurements",
        "intermediate checkpoints under `evaluate_milestones`",
        lambda project, experiment: project.milestones(experiment),
        asks=Asks(MilestonesFigure, values=_milestones),
    ),
    "tasks": Need("measurements", "fine-tuning tasks", _tasks, of_others=True),
    "ambiguous_tasks": Need(
        "measurements",
        "ambiguous tasks of MSGS",
        lambda *of: any(bias_features(task) is not None for task in _tasks(*of)),
        of_others=True,
    ),
    "probes": Need(
        "layers",
        "edge probing tasks",
        lambda project, experiment: any(
            project.task(task).head.kind == "span_classification" for task in _tasks(project, experiment)
        ),
        of_others=True,
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
    "frequencies": Need("measurements", "splits under `perplexity`, with `frequency_bin_nats`", _bins_frequencies),
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
        asks=Asks(
            RegularisedFigure,
            values=lambda project, experiment, runs: {"regularised": _regularised(project, experiment)},
            models=_regularised,
        ),
    ),
    "sweeps": Need(
        "measurements",
        "sweeps or grids",
        lambda project, experiment: project.expansion(experiment).swept_values(),
        asks=Asks(SweptFigure, values=_swept_with_objectives, models=_swept),
    ),
}


def drawable(project: "Project", experiment: str) -> list[str]:
    """Return the names (keys of `NEEDS`) of the kinds of results that an experiment has."""
    return [name for name, need in NEEDS.items() if need.asked_by(project, experiment)]
