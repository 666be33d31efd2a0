"""Finished models that a run reads: teachers, ensemble members, or the model whose loss determines the data order.

Each of these models is a run of the same or of another experiment, or a folder with the manifest of a model. The models
are inputs of the job, like an initial model. So the run is pretrained again when one of the models changes. A run
cannot have teachers and also be an ensemble of members. Invalid models are reported at planning time.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hatchery.errors import ConfigError
from hatchery.experiment.continuation import Origin, check_choice, chosen_run, manifest_of, origin_of, pretraining_of
from hatchery.training.objective import unable_teacher
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project
    from hatchery.training.settings import PretrainingSettings
    from hatchery.training.start_settings import ModelChoice


def teachers_of(project: "Project", experiment: str, run: str, seed: int) -> list[Origin | str]:
    """Return the teachers of a distilled run, or the members of a run that is an ensemble, in the order in which the
    experiment's file lists them.

    Each teacher or member is a run, or the path of a manifest. A run whose distillation has weight 0 has no teachers.
    Raises ConfigError for an unknown experiment, run or seed.
    """
    pretraining = project.experiment(experiment).runs[run].pretraining
    if not (pretraining.learns_from_teachers or pretraining.ensemble):
        return []
    key, choices = _chosen(pretraining)
    where = f"{project.place('experiment', experiment)}: runs.{run}.pretraining.{key}"
    return [
        manifest_of(project, chosen) or chosen_run(project, experiment, chosen, seed, f"{where}[{number}]")
        for number, chosen in enumerate(choices)
    ]


def _chosen(pretraining: "PretrainingSettings") -> "tuple[str, Sequence[ModelChoice]]":
    """Return the configuration key of the run's teachers or ensemble members, and the value of this key."""
    if pretraining.ensemble:
        return "ensemble", pretraining.ensemble
    return "distillation.teachers", () if pretraining.distillation is None else pretraining.distillation.teachers


def teacher_runs(project: "Project", experiment: str, run: str, seed: int) -> list[Origin]:
    """Return those teachers or ensemble members of a run that are runs of the project. Teachers and members that are
    given as paths of manifests are omitted.
    """
    return [one for one in teachers_of(project, experiment, run, seed) if isinstance(one, Origin)]


def order_place(project: "Project", experiment: str, run: str) -> str:
    """Return, for messages, the file and key of the model whose loss determines the data order."""
    return f"{project.place('experiment', experiment)}: runs.{run}.pretraining.order.model"


def order_model_of(project: "Project", experiment: str, run: str, seed: int) -> list[Origin | str]:
    """Return a list with the model whose loss determines the data order: a run or the path of a manifest.

    Empty if the data order does not depend on a model, or if the run has no steps. Raises ConfigError for an
    unknown experiment, run or seed.
    """
    pretraining = project.experiment(experiment).runs[run].pretraining
    if pretraining.order is None or pretraining.order.model is None or pretraining.steps == 0:
        return []
    chosen = pretraining.order.model
    place = order_place(project, experiment, run)
    return [manifest_of(project, chosen) or chosen_run(project, experiment, chosen, seed, place)]


def _other_models(project: "Project", one: Origin) -> list[Origin]:
    """Return all runs whose models a run reads: its initial model, its teachers or the members of its ensemble, and the
    model that determines its data order.
    """
    of = project, one.experiment, one.run, one.seed
    initial = origin_of(*of)
    ordering = [other for other in order_model_of(*of) if isinstance(other, Origin)]
    return ([] if initial is None else [initial]) + teacher_runs(*of) + ordering


def teacher_models(project: "Project", experiment: str, run: str, seed: int) -> list[dict[str, object]]:
    """Return one mapping for each teacher or ensemble member of a run: the model settings of the teacher or member, by
    key.
    """
    return [
        _values_in(Path(one))
        if isinstance(one, str)
        else keys_of(project.model_of(one.experiment, one.run), "description")
        for one in teachers_of(project, experiment, run, seed)
    ]


def taught_by(project: "Project", run: Origin) -> dict[Origin, None]:
    """Return all runs on which the weights of a run depend, directly or through other runs, without duplicates.

    If runs depend on each other in a circle, the result also contains the run itself.
    """
    found: dict[Origin, None] = {}
    waiting = [run]
    while waiting:
        one = waiting.pop(0)
        for other in _other_models(project, one):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return found


def check_distillation(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Raise ConfigError if a run of the experiment `name` cannot learn from its teachers, be an ensemble of its
    members, or order its data by the loss of the chosen model.
    """
    for run, entry in experiment.runs.items():
        _check_order(name, run, project)
        key, choices = _chosen(entry.pretraining)
        if not choices:
            continue
        place = f"{where}: runs.{run}.pretraining.{key}"
        for number, given in enumerate(choices):
            check_choice(project, given, f"{place}[{number}]")
        for seed in entry.seeds:
            own = Origin(name, run, seed)
            teachers = teacher_runs(project, name, run, seed)
            if own in taught_by(project, own):
                raise ConfigError(
                    f"{place}: {name}/{own.name} depends on itself through its teachers or its initial model; "
                    "expected teachers and an initial model that do not depend on this run"
                )
            for teacher in teachers:
                _check_teacher(project, own, teacher, place)
            if entry.pretraining.ensemble and teachers:
                _check_first_member(project, own, teachers[0], place)


def _check_order(name: str, run: str, project: "Project") -> None:
    """Raise ConfigError if the model that determines the data order depends on the run. If this model is also a run,
    raise ConfigError if it has another tokenizer, an unsuitable objective, or too few positions for the sequences.
    """
    place = order_place(project, name, run)
    entry = project.experiment(name).runs[run]
    if entry.pretraining.order is not None and entry.pretraining.order.model is not None:
        check_choice(project, entry.pretraining.order.model, place)
    for seed in entry.seeds:
        own = Origin(name, run, seed)
        for model in order_model_of(project, name, run, seed):
            if own in taught_by(project, own):
                raise ConfigError(
                    f"{place}: {name}/{own.name} depends on itself through the model that determines its data order; "
                    "expected a model that does not depend on this run"
                )
            if isinstance(model, Origin):
                _check_teacher(project, own, model, place)


def _check_first_member(project: "Project", own: Origin, first: Origin, place: str) -> None:
    ours, theirs = (keys_of(project.model_of(one.experiment, one.run), "description") for one in (own, first))
    if ours != theirs:
        raise ConfigError(
            f"{place}: the ensemble {own.run!r} has another `model` than its first member, {first.run!r} of "
            f"{first.experiment}; expected the same `model`, because tables show the ensemble's `model`"
        )


def _check_teacher(project: "Project", own: Origin, teacher: Origin, place: str) -> None:
    ours, theirs = project.experiment(own.experiment), project.experiment(teacher.experiment)
    named = f"{teacher.run!r} of {teacher.experiment}"
    if ours.tokenizer != theirs.tokenizer:
        raise ConfigError(
            f"{place}: {named} has the tokenizer {theirs.tokenizer!r}, {own.run!r} of {own.experiment} has the "
            f"tokenizer {ours.tokenizer!r}; expected the same tokenizer, because both models predict entries of one "
            "vocabulary"
        )
    pretraining = ours.runs[own.run].pretraining
    if reason := unable_teacher(pretraining.objective, pretraining_of(project, teacher).objective):
        raise ConfigError(f"{place}: {named} {reason}")
    limit = project.model_of(teacher.experiment, teacher.run).position_limit
    # Import here, because planning imports this module, but NumPy is only needed for runs with teachers.
    from hatchery.training.step_plan import StepPlan

    longest = max(StepPlan(pretraining.planned()).lengths, default=pretraining.sequence_length)
    if limit is not None and limit < longest:
        raise ConfigError(
            f"{place}: {named} has positions for {limit} tokens, expected at least {longest}, the longest sequence of "
            f"{own.run!r}"
        )


def _values_in(manifest: Path) -> dict[str, object]:
    """Return the model settings, by key, from config.json next to a manifest. Raises ConfigError for an unreadable
    file.
    """
    path = manifest.parent / "config.json"
    try:
        values: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: not the configuration of a model, expected the configuration of a teacher: {error}"
        ) from error
    return {key: value for key, value in values.items() if key not in ("vocab_size", "causal", "sentence_pair_head")}
