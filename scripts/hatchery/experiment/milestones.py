"""The intermediate checkpoints (milestones) that an experiment evaluates, and the evaluations that apply to
milestones.
"""

from typing import TYPE_CHECKING

from hatchery.artifacts.manifests import read_manifest
from hatchery.errors import ConfigError
from hatchery.evaluation.kinds import evaluations
from hatchery.experiment.continuation import ancestors, origin_of, path_of, pretraining_of, trained_before
from hatchery.experiment.experiment_file import Experiment
from hatchery.experiment.seeded_run import SeededRun
from hatchery.settings.problems import alternatives
from hatchery.training.milestones import words_seen

if TYPE_CHECKING:
    from hatchery.experiment.project import Project

KEY = "evaluate_milestones"


def milestones_of(project: "Project", experiment: str, run: SeededRun) -> list[SeededRun]:
    """Return the milestones of a run: first the checkpoints after the steps in `milestones`, then the checkpoints after
    the word counts in `checkpoints_at`.
    """
    pretraining = project.experiment(experiment).runs[run.model].pretraining
    marks = own_marks(project, experiment, run.model, run.seed)
    return [*map(run.after, pretraining.milestones), *map(run.after_words, marks)]


def own_marks(project: "Project", experiment: str, run: str, seed: int) -> tuple[int, ...]:
    """Return the word counts at which a run saves checkpoints, without the word counts that its initial model has
    already passed.
    """
    pretraining = project.experiment(experiment).runs[run].pretraining
    before = 0
    if (trained := trained_before(project, experiment, run, seed)) is not None:
        before = pretraining_of(project, trained).words_budget or 0
    else:
        chain = ancestors(project, experiment, run, seed)
        first = pretraining_of(project, chain[-1]) if chain else pretraining
        if path := path_of(project, first):
            before = words_seen(read_manifest(path).measures) or 0
    return tuple(words for words in pretraining.marks if words > before)


def chain_of_marks(project: "Project", experiment: str, run: SeededRun) -> list[tuple[str, SeededRun]]:
    """Return (experiment, checkpoint) for all checkpoints that a run saves at word counts. The checkpoints of its
    initial model, of this model's own initial model and so on come first.

    Each word count occurs once. Checkpoints in a folder outside of the experiments are not included.
    """
    origin = origin_of(project, experiment, run.model, run.seed)
    before: list[tuple[str, SeededRun]] = []
    if origin is not None:
        earlier = project.seeded_run(origin.experiment, origin.name)
        before = chain_of_marks(project, origin.experiment, earlier)
    own = own_marks(project, experiment, run.model, run.seed)
    return before + [(experiment, run.after_words(words)) for words in own]


def is_asked(experiment: Experiment, kind: str, name: str) -> bool:
    """Return True if `evaluate_milestones` requests an evaluation: this list contains `<kind>` or `<kind>/<name>` of
    the evaluation.
    """
    return bool({kind, f"{kind}/{name}"} & set(experiment.evaluate_milestones))


def suite_batches(experiment: Experiment, of_milestone: bool) -> dict[str, list[str]]:
    """Return the suites of each scoring job by the job's name, for finished models or for milestones.

    Empty if each suite has its own job.
    """
    kind, size = "minimal_pairs", experiment.suites_per_job
    suites = [one for one in experiment.minimal_pairs if not of_milestone or is_asked(experiment, kind, one)]
    if size == 1:
        return {}
    name = "milestone_batch" if of_milestone else "batch"
    return {f"{name}_{start // size + 1}": suites[start : start + size] for start in range(0, len(suites), size)}


def check_acquisition(experiment: Experiment, where: str) -> None:
    """Raise ConfigError if ages of acquisition are requested, but no run saves checkpoints at word counts."""
    marked = any(run.pretraining.marks for run in experiment.runs.values())
    if experiment.acquisition is not None and not marked:
        raise ConfigError(
            f"{where}: acquisition: no run has `budget` and `checkpoints_at` under its `pretraining`; add "
            "`checkpoints_at` to a run, or remove this key"
        )


def check_milestones(name: str, experiment: Experiment, where: str, project: "Project") -> None:
    """Raise ConfigError if `evaluate_milestones` names an unknown evaluation, or any evaluation although no run saves
    milestones.
    """
    runs = project.evaluated_runs(name)
    allowed: dict[str, None] = {}
    for kind, evaluation in evaluations().items():
        names = dict.fromkeys(asked for run in runs for asked in evaluation.asked(experiment, run))
        allowed |= dict.fromkeys([kind, *(f"{kind}/{one}" for one in names if one)] if names else [])
    for entry in experiment.evaluate_milestones:
        if entry not in allowed:
            raise ConfigError(
                f"{where}: {KEY}: got {entry!r}, expected an evaluation of the experiment{alternatives(entry, allowed)}"
            )
    if experiment.evaluate_milestones and not project.milestones(name):
        raise ConfigError(
            f"{where}: {KEY}: no run has `milestones` or `checkpoints_at` under its `pretraining`; add one of these "
            "keys to a run, or remove this key"
        )
