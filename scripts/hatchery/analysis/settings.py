"""Settings of the stages that write an experiment's tidy tables, summary and figures.

Runs are in the order in which the experiment's file lists them. All tables and figures on pages keep this order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.evaluation.translation_settings import ALC_STEPS
from hatchery.experiment.seeded_run import SeededRun
from hatchery.rendering.style import ModelStyle, Style, model_styles
from hatchery.settings.base import Settings
from hatchery.settings.fields import ABSENT

if TYPE_CHECKING:
    from hatchery.experiment import experiment_file
    from hatchery.experiment.project import Project

DRAWS = 1000
"""Number of bootstrap draws in a test of almost stochastic order."""

OTHER = "other"
"""Prefix of the objective of external models. These models predict tokens of their own tokenizers.

The kind of model follows the prefix, because models of different kinds also predict different tokens.
"""


@dataclass(frozen=True)
class PublishedChoice(Settings):
    """A paper that our models replicate. `rows` maps our models to rows of the paper's tables. `track` is the BabyLM
    track of these rows; empty if the paper has no tracks.
    """

    paper: str
    rows: dict[str, str]
    track: str = ""


PublishedChoices = PublishedChoice | tuple[PublishedChoice, ...] | None
"""The paper that an experiment replicates, or the papers that the experiments of a study replicate."""


def published_choices(published: PublishedChoices) -> tuple[PublishedChoice, ...]:
    """Return `published` as a tuple, which is empty if no paper is replicated."""
    return published if isinstance(published, tuple) else () if published in (None, ABSENT) else (published,)


@dataclass(frozen=True)
class CollectSettings(Settings):
    """Settings of an experiment's tidy tables. `runs` are all runs of the experiment, including external models and
    milestones.

    `alc_steps` is the number of training steps that the area under the learning curve covers.
    """

    experiment: str
    runs: tuple[SeededRun, ...]
    alc_steps: int = ALC_STEPS


@dataclass(frozen=True)
class SummarySettings(Settings):
    """Settings of an experiment's summary: models, suites and tasks in the order of the configuration.

    `published` names the paper that the experiment replicates; None if there is no paper. `objectives` maps each model
    that was not trained on masked text to its objective.
    """

    experiment: str
    runs: tuple[SeededRun, ...]
    suites: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    published: PublishedChoices = None
    baselines: tuple[str, ...] = ()
    objectives: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FigureSettings(Settings):
    """Settings of a figure of an experiment. `figure` and `version` are copied from the registry of figures.

    If a figure needs results of certain kinds, it has additional settings, which `views/figures/needs.py` declares for
    each of these kinds.
    """

    experiment: str
    runs: tuple[SeededRun, ...]
    style: Style = field(default_factory=Style)
    figure: str = ""
    version: int = 1
    # Paper whose values the figure marks, or null for no paper. Figures that never mark published values do not have
    # this key.
    published: PublishedChoices = ABSENT
    # Number of models that the figure omits, because a figure with too many models is unreadable.
    left_out: int = 0
    # Experiments of the study that have no data for the figure.
    without: tuple[str, ...] = ()
    # Grid set of each model; empty if there are few models.
    sets: dict[str, str] = field(default_factory=dict)
    # All models of the study; set only if models of the experiments in `without` precede a drawn model. A model's
    # position in this list determines its colour, so that each model has the same colour in all figures.
    all_models: tuple[str, ...] = ()

    def looks(self, models: Sequence[str]) -> dict[str, ModelStyle]:
        """Return the style of each model, which is the same in all figures of an experiment or a study."""
        styles = model_styles(list(dict.fromkeys((*self.all_models, *models))), self.style)
        return {model: styles[model] for model in models}


def models_in_order(runs: Iterable[SeededRun]) -> list[str]:
    """Return the names of the models in the order of the configuration, without duplicates."""
    return list(dict.fromkeys(run.model for run in runs))


def labels_of(runs: Iterable[SeededRun]) -> dict[str, str]:
    """Return the displayed label of each model, in the order of the configuration."""
    return {run.model: run.label or run.model for run in runs}


def models_with_counts(runs: Sequence[SeededRun]) -> dict[str, str]:
    """Return the legend entry of each model: its label with the number of pretraining seeds. External models have no
    number.
    """
    labels, others = labels_of(runs), {run.model for run in runs if run.is_baseline}
    counts = Counter(run.model for run in runs)
    return {
        model: labels[model] + ("" if model in others else f" ({count} seed{'s' if count > 1 else ''})")
        for model, count in counts.items()
    }


def runs_by_name(runs: Iterable[SeededRun]) -> dict[str, SeededRun]:
    """Return the runs by name. Raises ConfigError if there are no runs, if two runs have the same name, or if two runs
    have the same model and seed.
    """
    named: dict[str, SeededRun] = {}
    seeds: set[tuple[str, int]] = set()
    for run in runs:
        if run.name in named or (run.model, run.seed) in seeds:
            called = f"{run.name!r} (model {run.model!r}, seed {run.seed})"
            raise ConfigError(f"runs: got {called} twice, expected each run, and each seed of a model, only once")
        seeds.add((run.model, run.seed))
        named[run.name] = run
    if not named:
        raise ConfigError("runs: the experiment lists no model")
    return named


def baseline_runs(baselines: Iterable[str], runs: Iterable[SeededRun]) -> tuple[SeededRun, ...]:
    """Return one run for each baseline (an external model), with the baseline's name as the name of its model. Raises
    ConfigError if another model or run has this name.
    """
    taken = {name for run in runs for name in (run.name, run.model)}
    made: list[SeededRun] = []
    for name in baselines:
        if name in taken:
            raise ConfigError(f"baselines: got {name!r}, expected a name that no other model or run has")
        taken.add(name)
        made.append(SeededRun.of_baseline(name))
    return tuple(made)


MOST_BY_NAME = 12
"""Maximum number of models that a figure or a table distinguishes by name."""


def asked_tasks(experiment: "experiment_file.Experiment") -> dict[str, str]:
    """Return, by name of the run, the objective with which each run of an experiment is scored on held-out text."""
    return {run: entry.pretraining.objective.asked_as for run, entry in experiment.runs.items()}


def published_of(
    project: "Project", experiment: str
) -> "experiment_file.Published | list[experiment_file.Published] | None":
    """Return the published rows that an experiment replicates or, for a study, a list with the published rows of its
    experiments.
    """
    if not project.is_study(experiment):
        return project.experiment(experiment).published
    return under_names_of_study({part: project.experiment(part).published for part in project.members(experiment)})


def under_names_of_study(chosen: Mapping[str, "experiment_file.Published | None"]) -> list["experiment_file.Published"]:
    """Return the published rows that several experiments replicate, with `<experiment>/` before the names of our
    models, as in a study.
    """
    return [
        replace(block, rows={f"{part}/{model}": row for model, row in block.rows.items()})
        for part, block in chosen.items()
        if block is not None
    ]


def sets_of_many(project: "Project", experiment: str, models: Sequence[str]) -> dict[str, str]:
    """Return the grid set of each model, for figures with many models. A grid set is an entry of `sets` in the grid of
    an experiment.

    The result is empty if there are at most MOST_BY_NAME models, or if some models are in no grid set.
    """
    if len(models) <= MOST_BY_NAME:
        return {}
    study = project.is_study(experiment)
    sets = project.sets_of(project.members(experiment)) if study else project.expansion(experiment).sets()
    parts: dict[str, set[str]] = {}
    for model, name in sets.items():
        parts.setdefault(name, set()).add(model.partition("/")[0] if study else "")
    named = {
        model: f"{model.partition('/')[0]}: {name}" if len(parts[name]) > 1 else name for model, name in sets.items()
    }
    return {model: named[model] for model in models} if set(models) <= set(named) else {}
