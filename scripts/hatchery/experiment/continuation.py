"""Where a run starts from: its `initialise_from` resolved to a model, and refused when planning if it cannot be.

A run starts from a run of the same or of another experiment, or from a folder with the manifest of a model. Runs may
start from each other in a chain, never in a circle.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatchery.analysis.settings import SeededRun
from hatchery.errors import ConfigError
from hatchery.experiment.block_bodies import without
from hatchery.experiment.blocks import Blocks
from hatchery.experiment.overrides import pretraining_of
from hatchery.objectives.settings import DEFAULT_TASK, objective_settings
from hatchery.settings.problems import offered
from hatchery.training.continuation_settings import FREE_KEYS

KEY = "initialise_from"
# Keys that leave the settings of a run as they were, for as long as nobody uses them.
OPTIONAL = (KEY, "early_stopping", "keep_training_state", "bias_drift")
# All that says what a model without training is, and how text is given to it.
UNTRAINED = ("steps", "sequence_length", "objective", "output_bias", KEY)


@dataclass(frozen=True)
class Origin:
    """A pretrained model of an experiment."""

    experiment: str
    run: str
    seed: int

    @property
    def name(self) -> str:
        """Its name in paths."""
        return SeededRun.of(self.run, self.seed).name


def settings_of(pretraining: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run without what is off, and without the place of its initial model.

    Which model that is, the digest of its manifest says, which is among the inputs: a renamed experiment or a moved
    folder trains nothing anew. Nor does a run of 0 steps depend on how it would be trained.
    """
    kept = {key: value for key, value in pretraining.items() if key not in OPTIONAL or value}
    if not kept["steps"]:
        kept = {key: value for key, value in kept.items() if key in UNTRAINED}
    if kept["objective"]["task"] == DEFAULT_TASK:
        kept["objective"] = without(kept["objective"], "task")
    if KEY in kept:
        kept[KEY] = {"take": kept[KEY].get("take", "weights")}
    return kept


def path_of(blocks: Blocks, pretraining: Mapping[str, Any]) -> str | None:
    """The manifest of the model that `initialise_from.path` names; None without.

    It is a folder, the manifest itself, or the name of an entry under `data` of config.yaml that has a path.
    """
    given = (pretraining[KEY] or {}).get("path")
    if given is None:
        return None
    path = Path(blocks.config["data"].get(given, {}).get("path") or given).expanduser()
    return str(path if path.name == "manifest.json" else path / "manifest.json")


def origin_of(blocks: Blocks, experiment: str, run: str, seed: int) -> Origin | None:
    """The run that a run starts from; None where it starts from random weights or from a path.

    Raises ConfigError for an unknown experiment, run or seed.
    """
    block = blocks.written_experiment(experiment)
    chosen = pretraining_of(block, run)[KEY]
    if chosen is None or "run" not in chosen:
        return None
    where = f"{_file(blocks, experiment)}: runs.{run}.pretraining.{KEY}"
    other = chosen.get("experiment") or experiment
    blocks.require("experiment", other, f"{where}.experiment")
    runs = blocks.written_experiment(other)["runs"]
    if chosen["run"] not in runs:
        raise ConfigError(f"{where}.run: got {chosen['run']!r}, no such run of {other}{offered(chosen['run'], runs)}")
    seeds = runs[chosen["run"]]["seeds"]
    wanted = chosen.get("seed")
    if wanted is None:
        wanted = seeds[0] if len(seeds) == 1 else seed
    if wanted not in seeds:
        raise ConfigError(
            f"{where}.seed: got {wanted}, expected a seed of {chosen['run']!r}: {', '.join(map(str, seeds))}"
            + ("" if chosen.get("seed") is not None else "; name one, or give both runs the same seeds")
        )
    return Origin(other, chosen["run"], wanted)


def check_continuation(name: str, experiment: Mapping[str, Any], where: str, blocks: Blocks) -> None:
    """Every run of the experiment `name` can start from the model that it names. Raises ConfigError."""
    for run, entry in experiment["runs"].items():
        pretraining = pretraining_of(experiment, run)
        if pretraining[KEY] is None:
            continue
        place = f"{where}: runs.{run}.pretraining"
        _check_keys(blocks, pretraining, f"{place}.{KEY}")
        _check_output_bias(pretraining, place)
        for seed in entry["seeds"]:
            origin = origin_of(blocks, name, run, seed)
            if origin is not None:
                _check_circle(blocks, Origin(name, run, seed), f"{place}.{KEY}")
                _check_fit(blocks, name, run, seed, origin, place)


def first_step(blocks: Blocks, experiment: str, run: str, seed: int) -> int:
    """Steps of a run that its initial model has done for it, as far as they are known when planning, else 0."""
    origin = origin_of(blocks, experiment, run, seed)
    if origin is None or _take(blocks, experiment, run) != "training":
        return 0
    earlier = pretraining_of(blocks.written_experiment(origin.experiment), origin.run)
    # A run that may stop early does so nobody knows where.
    return 0 if earlier["early_stopping"] else int(earlier["steps"])


def _take(blocks: Blocks, experiment: str, run: str) -> str:
    chosen = pretraining_of(blocks.written_experiment(experiment), run)[KEY]
    return str(chosen.get("take", "weights"))


def _check_keys(blocks: Blocks, pretraining: Mapping[str, Any], place: str) -> None:
    chosen = pretraining[KEY]
    if ("run" in chosen) == ("path" in chosen):
        given = "both" if "run" in chosen else "neither"
        raise ConfigError(f"{place}: got {given}, expected either `run` or `path`")
    for key in ("experiment", "seed"):
        if "path" in chosen and chosen.get(key) is not None:
            raise ConfigError(f"{place}.{key}: got {chosen[key]!r} beside `path`, expected it beside `run` only")
    manifest = path_of(blocks, pretraining)
    if manifest is not None and not Path(manifest).is_file():
        raise ConfigError(
            f"{place}.path: got {chosen['path']!r}, there is no {manifest}; expected a folder that "
            "scripts/import_checkpoint.py or a pretraining wrote, or an entry of `data` with such a path"
        )


def _check_output_bias(pretraining: Mapping[str, Any], place: str) -> None:
    output_bias = pretraining["output_bias"]
    for key, allowed in (("kind", ("zero", "none")), ("weight_scale", ("own",))):
        if output_bias[key] not in allowed:
            raise ConfigError(
                f"{place}.output_bias.{key}: got {output_bias[key]!r}, expected {' or '.join(allowed)} with "
                f"{KEY}: the output layer is that of the initial model"
            )


def _check_circle(blocks: Blocks, start: Origin, place: str) -> None:
    passed: list[Origin] = []
    current: Origin | None = start
    while current is not None:
        if current in passed:
            chain = " <- ".join(f"{origin.experiment}/{origin.name}" for origin in [*passed, current])
            raise ConfigError(f"{place}: the runs start from each other in a circle: {chain}")
        passed.append(current)
        current = origin_of(blocks, current.experiment, current.run, current.seed)


def _check_fit(blocks: Blocks, experiment: str, run: str, seed: int, origin: Origin, place: str) -> None:
    ours, theirs = (blocks.written_experiment(name) for name in (experiment, origin.experiment))
    if ours["tokenizer"] != theirs["tokenizer"]:
        raise ConfigError(
            f"{place}.{KEY}: {origin.experiment} has the tokenizer {theirs['tokenizer']!r}, this experiment "
            f"{ours['tokenizer']!r}; a model goes on with its own vocabulary: use the same tokenizer"
        )
    mine, other = _built(blocks, experiment, run), _built(blocks, origin.experiment, origin.run)
    for key in sorted(mine.keys() | other.keys()):
        if mine.get(key) != other.get(key):
            raise ConfigError(
                f"{place}.{KEY}: {origin.run!r} has {key} {_shown(other.get(key))}, this run {_shown(mine.get(key))}; "
                "a model can go on only as it was built"
            )
    if _take(blocks, experiment, run) == "training":
        _check_training(pretraining_of(ours, run), pretraining_of(theirs, origin.run), seed, origin, place)


def _check_training(ours: Mapping[str, Any], theirs: Mapping[str, Any], seed: int, origin: Origin, place: str) -> None:
    if not theirs["keep_training_state"] or not theirs["steps"]:
        raise ConfigError(
            f"{place}.{KEY}.take: got 'training', but the optimiser of {origin.run!r} is not kept; set "
            "`keep_training_state: true` under its `pretraining`, with steps above 0, or take: weights"
        )
    if seed != origin.seed:
        raise ConfigError(
            f"{place}.{KEY}.seed: got {origin.seed}, expected {seed}, the seed of this run: with `take: training` the "
            "data go on in the same order"
        )
    if ours["optimizer"]["name"] != theirs["optimizer"]["name"]:
        raise ConfigError(
            f"{place}.optimizer.name: got {ours['optimizer']['name']!r}, expected {theirs['optimizer']['name']!r}, "
            f"whose state {origin.run!r} has kept"
        )
    if ours["steps"] <= theirs["steps"] and not theirs["early_stopping"]:
        raise ConfigError(
            f"{place}.steps: got {ours['steps']}, expected more than the {theirs['steps']} of {origin.run!r}: with "
            "`take: training`, `steps` counts from the beginning of that run"
        )


def _built(blocks: Blocks, experiment: str, run: str) -> dict[str, Any]:
    """What decides the tensors of a run's model, and how they are read."""
    block = blocks.written_experiment(experiment)
    model = blocks.model_of_run(block["runs"][run], f"experiment {experiment}: runs.{run}")
    pretraining = pretraining_of(block, run)
    objective = objective_settings(pretraining["objective"], "objective")
    return {
        **{key: value for key, value in model.items() if key not in ("description", *FREE_KEYS)},
        **objective.model_values,
        **({"causal": True} if objective.causal else {}),
        "vocabulary_bias": pretraining["output_bias"]["kind"] != "none",
    }


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _file(blocks: Blocks, experiment: str) -> Path:
    return blocks.folder / "experiments" / f"{experiment}.yaml"
