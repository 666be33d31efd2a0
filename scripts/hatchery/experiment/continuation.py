"""The initial model of a run: `initialise_from` is resolved to a model, and invalid values are reported at planning
time.

The initial model is a run of the same or of another experiment, or a model in a folder with a manifest. Runs may form a
chain of initial models, but not a circle.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchery.artifacts.links import expanded
from hatchery.errors import ConfigError
from hatchery.experiment.seeded_run import SeededRun
from hatchery.settings.base import shortened
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import alternatives
from hatchery.training.settings import PretrainingSettings
from hatchery.training.start_settings import FREE_KEYS, ModelChoice
from hatchery.typed import keys_of

if TYPE_CHECKING:
    from hatchery.experiment.experiment_file import Experiment
    from hatchery.experiment.project import Project

KEY = "initialise_from"


@dataclass(frozen=True)
class Origin:
    """A pretrained model that another run reads, identified by experiment, run and pretraining seed."""

    experiment: str
    run: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the model in paths, such as `ltg_bert-s42`."""
        return SeededRun.from_seed(self.run, self.seed).name


def path_of(project: "Project", pretraining: PretrainingSettings) -> str | None:
    """Return the path of the manifest of the model that `initialise_from.path` names; None if this key is not set.

    The value of the key is a folder, a manifest, or the name of an entry under `data` of config.yaml that has a path.
    """
    return None if pretraining.initialise_from is None else manifest_of(project, pretraining.initialise_from)


def manifest_of(project: "Project", chosen: ModelChoice) -> str | None:
    """Return the path of the manifest of the model that `chosen.path` names (see `path_of`); None if `path` is not
    set.
    """
    if chosen.path is ABSENT:
        return None
    given = chosen.path
    entry = project.config.data.get(given)
    path = Path(expanded((entry and entry.path) or given))
    return str(path if path.name == "manifest.json" else path / "manifest.json")


def origin_of(project: "Project", experiment: str, run: str, seed: int) -> Origin | None:
    """Return the run whose model initialises a run; None if the run starts from random weights or from a path.

    Raises ConfigError for an unknown experiment, run or seed.
    """
    chosen = project.experiment(experiment).runs[run].pretraining.initialise_from
    if chosen is None or chosen.run is ABSENT:
        return None
    where = f"{project.place('experiment', experiment)}: runs.{run}.pretraining.{KEY}"
    return chosen_run(project, experiment, chosen, seed, where)


def chosen_run(project: "Project", experiment: str, chosen: ModelChoice, seed: int, where: str) -> Origin:
    """Return the run and the seed of the model that `chosen` names. If `chosen` names no experiment, the run belongs to
    `experiment`. If `chosen` names no seed, the result has the only seed of the run or, if the run has several seeds,
    `seed`.

    `where` is the file and key of `chosen`, for messages. Raises ConfigError for an unknown experiment, run or seed.
    """
    other = chosen.experiment or experiment
    project.require("experiment", other, f"{where}.experiment")
    runs = project.experiment(other).runs
    if chosen.run not in runs:
        raise ConfigError(f"{where}.run: got {chosen.run!r}, expected a run of {other}{alternatives(chosen.run, runs)}")
    seeds, given = runs[chosen.run].seeds, chosen.seed
    wanted = (seeds[0] if len(seeds) == 1 else seed) if given is None else given
    if wanted not in seeds:
        raise ConfigError(
            f"{where}.seed: got {wanted}, expected a seed of {chosen.run!r}: {', '.join(map(str, seeds))}"
            + ("" if given is not None else "; set this key to one of these seeds, or give both runs the same seeds")
        )
    return Origin(other, chosen.run, wanted)


def ancestors(project: "Project", experiment: str, run: str, seed: int) -> list[Origin]:
    """Return the initial model of a run, the initial model of that run, and so on: the nearest run first.

    If runs start from each other in a circle, the list ends before the first repetition of a run; `check_continuation`
    reports the circle. Raises the ConfigError of `origin_of`.
    """
    found: list[Origin] = []
    current = origin_of(project, experiment, run, seed)
    while current is not None and current not in found:
        found.append(current)
        current = origin_of(project, current.experiment, current.run, current.seed)
    return found


def trained_before(project: "Project", experiment: str, run: str, seed: int) -> Origin | None:
    """Return the nearest of the `ancestors` that has training steps; None if there is no such ancestor. Runs without
    steps are skipped, because such a run has seen the same words as its initial model.
    """
    chain = ancestors(project, experiment, run, seed)
    return next((one for one in chain if trains(pretraining_of(project, one))), None)


def pretraining_of(project: "Project", origin: Origin) -> PretrainingSettings:
    """Return the pretraining settings of a run."""
    return project.experiment(origin.experiment).runs[origin.run].pretraining


def trains(pretraining: PretrainingSettings) -> bool:
    """Return True unless the number of training steps of a run is 0. A run whose budget determines this number also
    counts as a run with training steps.
    """
    return pretraining.steps != 0


def check_continuation(name: str, experiment: "Experiment", where: str, project: "Project") -> None:
    """Check that every run of the experiment `name` can start from its initial model. Raises ConfigError."""
    for run, entry in experiment.runs.items():
        pretraining = entry.pretraining
        if pretraining.initialise_from is None:
            continue
        place = f"{where}: runs.{run}.pretraining"
        check_choice(project, pretraining.initialise_from, f"{place}.{KEY}")
        _check_output_bias(pretraining, place)
        for seed in entry.seeds:
            origin = origin_of(project, name, run, seed)
            if origin is not None:
                _check_circle(project, Origin(name, run, seed), f"{place}.{KEY}")
                _check_fit(project, name, run, seed, origin, place)


def first_step(project: "Project", experiment: str, run: str, seed: int) -> int:
    """Return the number of a run's steps that its initial model has already done. The result is 0 if the run counts its
    steps from 0, or if the number is unknown at planning time.

    For a budget of words, the number is estimated from the word budget of the initial model's run.
    """
    origin = trained_before(project, experiment, run, seed)
    if origin is None:
        return 0
    ours, earlier = project.experiment(experiment).runs[run].pretraining, pretraining_of(project, origin)
    if ours.words_budget is not None and earlier.words_budget is not None:
        return replace(ours, budget=earlier.budget, checkpoints_at=()).planned().steps
    if _take(project, experiment, run) != "training":
        return 0
    # The last step of a run with early stopping is unknown, so the result is 0.
    return 0 if earlier.early_stopping else earlier.planned().steps


def _take(project: "Project", experiment: str, run: str) -> str | None:
    chosen = project.experiment(experiment).runs[run].pretraining.initialise_from
    return None if chosen is None else chosen.take


def check_choice(project: "Project", chosen: ModelChoice, place: str) -> None:
    """Raise ConfigError unless `chosen` names either a run, or a folder with the manifest of a model. With a folder,
    `chosen` must not set an experiment, a seed or a step.
    """
    if (chosen.run is ABSENT) == (chosen.path is ABSENT):
        given = "neither `run` nor `path`" if chosen.run is ABSENT else "`run` and `path`"
        raise ConfigError(f"{place}: got {given}, expected one of these two keys")
    for key in ("experiment", "seed", "step"):
        if chosen.path is not ABSENT and getattr(chosen, key, None) is not None:
            raise ConfigError(
                f"{place}.{key}: got {shortened(getattr(chosen, key))} with `path`, but this key is allowed only "
                "with `run`"
            )
    manifest = manifest_of(project, chosen)
    if manifest is not None and not Path(manifest).is_file():
        raise ConfigError(
            f"{place}.path: got {chosen.path!r}, there is no {manifest}; expected a folder that "
            "scripts/import_checkpoint.py or a pretraining wrote, or an entry of `data` whose path is such a folder"
        )


def _check_output_bias(pretraining: PretrainingSettings, place: str) -> None:
    for key, allowed in (("kind", ("zero", "none")), ("weight_scale", ("own",))):
        given = getattr(pretraining.output_bias, key)
        if given not in allowed:
            raise ConfigError(
                f"{place}.output_bias.{key}: got {shortened(given)}, expected {' or '.join(allowed)} with {KEY}, "
                "because the output layer is copied from the initial model"
            )


def _check_circle(project: "Project", start: Origin, place: str) -> None:
    passed: list[Origin] = []
    current: Origin | None = start
    while current is not None:
        if current in passed:
            chain = " <- ".join(f"{origin.experiment}/{origin.name}" for origin in [*passed, current])
            raise ConfigError(f"{place}: the runs start from each other in a cycle: {chain}; remove one of these links")
        passed.append(current)
        current = origin_of(project, current.experiment, current.run, current.seed)


def _check_fit(project: "Project", experiment: str, run: str, seed: int, origin: Origin, place: str) -> None:
    ours, theirs = project.experiment(experiment), project.experiment(origin.experiment)
    if ours.tokenizer != theirs.tokenizer:
        raise ConfigError(
            f"{place}.{KEY}: {origin.experiment} has the tokenizer {theirs.tokenizer!r}, this experiment has the "
            f"tokenizer {ours.tokenizer!r}; expected the same tokenizer, because a trained model keeps its vocabulary"
        )
    mine, other = _built(project, experiment, run), _built(project, origin.experiment, origin.run)
    for key in sorted(mine.keys() | other.keys()):
        if mine.get(key) != other.get(key):
            raise ConfigError(
                f"{place}.{KEY}: {origin.run!r} has {key} {_shown(other.get(key))}, this run has {key} "
                f"{_shown(mine.get(key))}; expected equal values, because the architecture of a trained model cannot "
                "change"
            )
    chosen, kept = ours.runs[run].pretraining.initialise_from, theirs.runs[origin.run].pretraining.milestones
    if chosen is not None and chosen.step is not None and chosen.step not in kept:
        there = f"has {', '.join(map(str, kept))}" if kept else "has none"
        raise ConfigError(
            f"{place}.{KEY}.step: got {chosen.step}, expected one of the `milestones` under the `pretraining` of "
            f"{origin.run!r}, which {there}"
        )
    _check_budget(project, experiment, run, seed, place)
    if _take(project, experiment, run) == "training":
        _check_training(ours.runs[run].pretraining, theirs.runs[origin.run].pretraining, seed, origin, place)


def _check_budget(project: "Project", experiment: str, run: str, seed: int, place: str) -> None:
    """Raise ConfigError for a budget of words that does not exceed the word budget of the initial model's run. Also
    raise ConfigError if a run with a budget in minutes continues the training state of another run (`take: training`).

    If the run has `checkpoints_at`, also raise ConfigError if the number of words that the initial model has read is
    unknown: its run has no word budget, or `initialise_from.step` selects an intermediate checkpoint. Without this
    number, it is unknown which word counts in `checkpoints_at` the initial model has already passed.
    """
    ours = project.experiment(experiment).runs[run].pretraining
    if ours.budget is None or ours.steps == 0:
        return
    if ours.words_budget is None:
        if _take(project, experiment, run) == "training":
            raise ConfigError(f"{place}.{KEY}.take: got 'training', expected 'weights' with a budget in minutes")
        return
    origin = trained_before(project, experiment, run, seed)
    if origin is None:
        return
    theirs = pretraining_of(project, origin)
    if ours.marks and (theirs.words_budget is None or (ours.initialise_from and ours.initialise_from.step)):
        raise ConfigError(
            f"{place}.checkpoints_at: got word counts, but the number of words that the initial model has read is "
            f"unknown; set `budget.words_seen` of {origin.run!r}, and start from its finished model (without "
            f"`{KEY}.step`)"
        )
    if theirs.words_budget is not None and ours.words_budget <= theirs.words_budget:
        raise ConfigError(
            f"{place}.budget.words_seen: got {ours.words_budget:,}, expected more than "
            f"{theirs.words_budget:,}, the budget of {origin.run!r}, because a budget also counts the words that the "
            "initial models have seen"
        )


def _check_training(
    ours: PretrainingSettings, theirs: PretrainingSettings, seed: int, origin: Origin, place: str
) -> None:
    if ours.initialise_from is not None and ours.initialise_from.step is not None:
        step = ours.initialise_from.step
        raise ConfigError(f"{place}.{KEY}.step: got {step}, which requires take: weights, but take is training")
    if not theirs.keep_training_state or not theirs.steps:
        raise ConfigError(
            f"{place}.{KEY}.take: got 'training', but the optimiser state of {origin.run!r} is not kept; set "
            f"`keep_training_state: true` and steps above 0 under the `pretraining` of {origin.run!r}, or take: weights"
        )
    if seed != origin.seed:
        raise ConfigError(
            f"{place}.{KEY}.seed: got {origin.seed}, expected {seed}, the seed of this run: with `take: training` the "
            "order of the data continues"
        )
    if ours.optimizer.name != theirs.optimizer.name:
        raise ConfigError(
            f"{place}.optimizer.name: got {ours.optimizer.name!r}, expected {theirs.optimizer.name!r}, whose state "
            f"{origin.run!r} has saved"
        )
    if (ours.budget is None) != (theirs.budget is None):
        raise ConfigError(
            f"{place}.budget: with `take: training`, expected a budget in both this run and {origin.run!r}, or in "
            "neither run"
        )
    if ours.budget is None and ours.steps <= theirs.steps and not theirs.early_stopping:
        raise ConfigError(
            f"{place}.steps: got {ours.steps}, expected more than the {theirs.steps} steps of {origin.run!r}: with "
            "`take: training`, `steps` counts from the beginning of that run"
        )


def _built(project: "Project", experiment: str, run: str) -> dict[str, object]:
    """Return the settings that determine the tensors of a run's model, and the settings that determine the computation
    with these tensors.
    """
    pretraining = project.experiment(experiment).runs[run].pretraining
    objective = pretraining.objective
    return {
        **keys_of(project.model_of(experiment, run), "description", *FREE_KEYS),
        **objective.model_values,
        "causal": objective.causal,
        "vocabulary_bias": pretraining.output_bias.kind != "none",
    }


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
