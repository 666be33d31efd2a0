"""The teachers of a run: `distillation.teachers` resolved to models, and refused at planning time if impossible.

A teacher is a run of the same or of another experiment, or a folder with the manifest of a model. It is an input of the
job, as an initial model is, so the run is trained again when a teacher changes.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.experiment.continuation import Origin, check_choice, chosen_run, manifest_of, origin_of, pretraining_of
from hatchery.training.objective import unable_teacher
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project

KEY = "distillation"


def teachers_of(project: "Project", experiment: str, run: str, seed: int) -> list[Origin | str]:
    """Return the teachers of a run, in their order: runs, or manifests of folders; none with weight 0.

    Raises ConfigError for an unknown experiment, run or seed.
    """
    pretraining = project.experiment(experiment).runs[run].pretraining
    if pretraining.distillation is None or not pretraining.learns_from_teachers:
        return []
    where = f"{project.place('experiment', experiment)}: runs.{run}.pretraining.{KEY}.teachers"
    return [
        manifest_of(project, chosen) or chosen_run(project, experiment, chosen, seed, f"{where}[{number}]")
        for number, chosen in enumerate(pretraining.distillation.teachers)
    ]


def teacher_runs(project: "Project", experiment: str, run: str, seed: int) -> list[Origin]:
    """Return the teachers of a run that are runs themselves."""
    return [one for one in teachers_of(project, experiment, run, seed) if isinstance(one, Origin)]


def teacher_models(project: "Project", experiment: str, run: str, seed: int) -> list[dict[str, object]]:
    """Return the keys of the teachers' models, whose forward passes are part of the cost of a run."""
    return [
        _values_in(Path(one))
        if isinstance(one, str)
        else keys_of(project.model_of(one.experiment, one.run), "description")
        for one in teachers_of(project, experiment, run, seed)
    ]


def taught_by(project: "Project", run: Origin) -> dict[Origin, None]:
    """Return all runs on which the weights of a run depend, each once: initial models, teachers, and theirs in turn.

    The run itself is among them if the runs depend on each other in a circle.
    """
    found: dict[Origin, None] = {}
    waiting = [run]
    while waiting:
        one = waiting.pop(0)
        initial = origin_of(project, one.experiment, one.run, one.seed)
        for other in ([] if initial is None else [initial]) + teacher_runs(project, one.experiment, one.run, one.seed):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return found


def check_distillation(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Check that every run of the experiment `name` can learn from its teachers. Raises ConfigError."""
    for run, entry in experiment.runs.items():
        chosen = entry.pretraining.distillation
        if chosen is None:
            continue
        place = f"{where}: runs.{run}.pretraining.{KEY}"
        for number, given in enumerate(chosen.teachers):
            check_choice(project, given, f"{place}.teachers[{number}]")
        for seed in entry.seeds:
            own = Origin(name, run, seed)
            teachers = teacher_runs(project, name, run, seed)
            if own in taught_by(project, own):
                raise ConfigError(
                    f"{place}: {name}/{own.name} depends on itself through its teachers or its initial model; "
                    "expected teachers that are trained before it"
                )
            for teacher in teachers:
                _check_teacher(project, own, teacher, f"{place}.teachers")


def _check_teacher(project: "Project", own: Origin, teacher: Origin, place: str) -> None:
    ours, theirs = project.experiment(own.experiment), project.experiment(teacher.experiment)
    named = f"{teacher.run!r} of {teacher.experiment}"
    if ours.tokenizer != theirs.tokenizer:
        raise ConfigError(
            f"{place}: {named} has the tokenizer {theirs.tokenizer!r}, {own.run!r} of {own.experiment} the tokenizer "
            f"{ours.tokenizer!r}; expected the same, because a teacher predicts entries of the vocabulary"
        )
    pretraining = ours.runs[own.run].pretraining
    if reason := unable_teacher(pretraining.objective, pretraining_of(project, teacher).objective):
        raise ConfigError(f"{place}: {named} {reason}")
    limit = project.model_of(teacher.experiment, teacher.run).position_limit
    # Planning reads this module, but loads NumPy only for a run with teachers.
    from hatchery.training.step_plan import StepPlan

    longest = max(StepPlan(pretraining.planned()).lengths, default=pretraining.sequence_length)
    if limit is not None and limit < longest:
        raise ConfigError(
            f"{place}: {named} has positions for {limit} tokens, expected at least {longest}, the longest sequence of "
            f"{own.run!r}"
        )


def _values_in(manifest: Path) -> dict[str, object]:
    """Return the keys of the model in the folder of a manifest. Raises ConfigError naming an unreadable file."""
    path = manifest.parent / "config.json"
    try:
        values: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not the configuration of a model, expected one of a teacher: {error}") from error
    return {key: value for key, value in values.items() if key not in ("vocab_size", "causal", "sentence_pair_head")}
