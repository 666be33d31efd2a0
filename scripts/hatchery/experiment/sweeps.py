"""Sweeps: several values for one key of an experiment. Each value becomes a run with its own name.

`{sweep: [...]}` is allowed under `pretraining` and under a run's `model_changes`. Several sweeps generate all
combinations, in the order of the file. A sweep at any other key is reported, with advice.
"""

import copy
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.errors import ConfigError
from hatchery.experiment.written_blocks import Document
from hatchery.settings.base import shortened
from hatchery.settings.fields import key_paths
from hatchery.training.distillation_settings import DistillationChoice
from hatchery.training.settings import PretrainingSettings

MODEL_CHANGES = "model_changes"
PRETRAINING = "pretraining"
SWEEP = "sweep"
# Values with more than VALUE_LENGTH characters are truncated in run names, and a digest makes the names unique.
VALUE_LENGTH = 40
# Keys whose value is a list. At any other key, a list is reported, because a sweep was probably meant.
LISTS = frozenset(
    key.name for of in (PretrainingSettings, DistillationChoice) for key in fields(of) if key.default == ()
)
HOW = f"write {SWEEP}: [first, second]"

Path = tuple[str, ...]


@dataclass(frozen=True)
class MadeRun:
    """The origin of a run: its place in the file, and the sweeps or the grid that generated it."""

    place: str
    base: str
    """Name of the run from which the sweeps generated this run; without sweeps, the name of this run."""
    label: str = ""
    """Displayed label of the run, such as `rv, H 256 L 8, untrained`; empty for a run that neither a grid nor a sweep
    generated.
    """
    set: str = ""
    variant: str = ""
    """For a run of a grid, `set` is the grid set that contains the run's row, and `variant` is the name of the grid
    variant.
    """
    values: Mapping[str, Any] = field(default_factory=dict)
    """Swept values of the run by key. The keys are shortened as in the label."""


@dataclass(frozen=True)
class Sweep:
    """The values of one swept key, and its path below `scope` (`pretraining` or `model_changes`)."""

    scope: str
    path: Path
    values: tuple[Any, ...]

    @property
    def place(self) -> str:
        """The full key, such as `pretraining.optimizer.learning_rate`."""
        return ".".join((self.scope, *self.path))


def swept_runs(
    experiment: Mapping[str, Any], made: Mapping[str, MadeRun], shared: Sequence[Sweep], where: str
) -> dict[str, tuple[Any, MadeRun]]:
    """Return the runs of an experiment by name, with one run for each combination of the values of its sweeps.

    `shared` are the experiment's sweeps, which apply to all runs that do not set the same key. `made` are the runs of a
    grid. Raises ConfigError if two runs would have the same name.
    """
    runs, found = experiment["runs"], dict[str, tuple[Any, MadeRun]]()
    first_runs = list(experiment).index("runs") < list(experiment).index(PRETRAINING) if shared else False
    for base, run in runs.items():
        scopes = [scope for scope in run if scope in (PRETRAINING, MODEL_CHANGES)] if isinstance(run, Mapping) else []
        own = [sweep for scope in scopes for sweep in sweeps_below(run[scope], scope, f"{where}: runs.{base}.")]
        inherited = [sweep for sweep in shared if isinstance(run, Mapping) and not _sets_a_key_of(run, sweep)]
        sweeps = [*own, *inherited] if first_runs else [*inherited, *own]
        for chosen in itertools.product(*(sweep.values for sweep in sweeps)):
            name, entry, how = _with_values(run, made.get(base) or MadeRun(f"runs.{base}", base), sweeps, chosen)
            if sweeps and name in runs:
                raise ConfigError(
                    f"{where}: runs.{name}: the sweeps of runs.{how.base} make a run of this name, too; rename one of "
                    "the two runs"
                )
            if sweeps and name in found:
                places = ", ".join(sweep.place for sweep in sweeps)
                raise ConfigError(
                    f"{where}: runs.{how.base}: two runs of the sweeps have the name {name!r}; rename the run "
                    f"{how.base!r}, or give values of {places} that differ in letters or digits"
                )
            found[name] = entry, how
    return found


def _with_values(run: Any, made: MadeRun, sweeps: Sequence[Sweep], chosen: Sequence[Any]) -> tuple[str, Any, MadeRun]:
    """Return name, settings and origin of the run with the values `chosen` for its sweeps."""
    changed = copy.deepcopy(run)
    name, label, values = made.base, made.label or made.base, Document()
    for sweep, value in zip(sweeps, chosen, strict=True):
        # Replace null by an empty mapping: an empty `pretraining:` is null in YAML.
        if changed.get(sweep.scope) is None:
            changed[sweep.scope] = {}
        set_value(changed[sweep.scope], sweep.path, value)
        key = ".".join(_shortest(sweep, sweeps))
        name = f"{name}_{slug(key.replace('.', '_'))}_{slug(text_of(value))}"
        label = f"{label}, {key} {text_of(value)}"
        values[key] = value
    return name, changed, replace(made, label=label, values=values) if sweeps else made


def set_value(tree: Document, path: Path, value: Any) -> None:
    """Set a value at a path of keys, and create missing keys."""
    for key in path[:-1]:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    tree[path[-1]] = copy.deepcopy(value)


def refuse_sweeps(document: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError if a file contains a sweep; only files of experiments may contain sweeps."""
    for path in _places(document):
        raise ConfigError(
            f"{where}: {'.'.join(path)}: a sweep is not possible here; sweeps are allowed in an experiment, under "
            f"`{PRETRAINING}` or under a run's `{MODEL_CHANGES}`"
        )


def refuse_elsewhere(experiment: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError, with advice, if an experiment contains a sweep at a key that does not allow sweeps."""
    for path in _places(experiment):
        in_run = path[0] == "runs" and len(path) > 3 and path[2] in (PRETRAINING, MODEL_CHANGES)
        if in_run or (path[0] == PRETRAINING and len(path) > 1):
            continue
        if path[0] == PRETRAINING or (path[0] == "runs" and path[-1] in (PRETRAINING, MODEL_CHANGES)):
            advice = "write the sweep at a key below this key, such as optimizer.learning_rate"
        elif path[0] == "runs" and path[-1] == "seeds":
            advice = "`seeds` is already a list, and every seed is pretrained: write seeds: [1, 2]"
        elif path[0] == "finetuning" and path[-1] in ("learning_rates", "seeds"):
            advice = f"`{path[-1]}` is already a list, and each of its values is run: write {path[-1]}: [first, second]"
        elif path[0] == "runs":
            advice = "write one run for each value"
        else:
            advice = (
                f"only keys under `{PRETRAINING}` and under a run's `{MODEL_CHANGES}` can have a sweep; write one "
                "experiment for each value"
            )
        raise ConfigError(f"{where}: {'.'.join(path)}: a sweep is not possible here; {advice}")


def _places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each `sweep: [...]` in a mapping. An entry called `sweep` whose value is not a list is no
    sweep.
    """
    if isinstance(tree, Mapping):
        if isinstance(tree.get(SWEEP), list) and path:
            yield path
        for key, value in tree.items():
            if key != SWEEP:
                yield from _places(value, (*path, str(key)))


def sweeps_below(tree: Any, scope: str, above: str) -> list[Sweep]:
    """Return the sweeps in `tree`, the value of the key `scope`, in the order of the file. In messages, the text
    `above` precedes keys.
    """
    found = []
    for path, value in _leaves(tree):
        place = f"{above}{'.'.join((scope, *path))}"
        if isinstance(value, list) and path[-1] not in LISTS:
            shown = json.dumps(value)
            raise ConfigError(f"{place}: got the list {shown}; for a run with each value write {{{SWEEP}: {shown}}}")
        if isinstance(value, Mapping) and SWEEP in value:
            found.append(Sweep(scope, path, _values(value, place)))
    return found


def _leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, Mapping) and (SWEEP not in tree or not path):
        for key, value in tree.items():
            yield from _leaves(value, (*path, str(key)))
    elif path:
        yield path, tree


def _values(sweep: Mapping[str, Any], place: str) -> tuple[Any, ...]:
    if further := sorted(sweep.keys() - {SWEEP}):
        raise ConfigError(
            f"{place}: {further[0]}: unknown key in the block of `{SWEEP}`, expected only `{SWEEP}` with a list "
            "of values"
        )
    values = sweep[SWEEP]
    if not isinstance(values, list):
        raise ConfigError(f"{place}.{SWEEP}: got {shortened(values)}, expected a list of values: {HOW}")
    if not values:
        raise ConfigError(f"{place}.{SWEEP}: the list is empty, expected at least one value: {HOW}")
    seen: list[Any] = []
    for value in values:
        if any(isinstance(part, Mapping) and SWEEP in part for part in _parts(value)):
            raise ConfigError(f"{place}.{SWEEP}: got a sweep within a sweep, expected two sweeps, each at its own key")
        # Compare booleans only with booleans: in Python, 1 equals True, but as settings, 1 and true differ. The
        # settings 1 and 1.0 are equal.
        if any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in seen):
            raise ConfigError(f"{place}.{SWEEP}: {text_of(value)} appears twice, expected each value once")
        seen.append(value)
    return tuple(values)


def _parts(value: Any) -> Iterator[Any]:
    yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _parts(part)


def _sets_a_key_of(run: Mapping[str, Any], sweep: Sweep) -> bool:
    """Return True if a run sets the key of a sweep of its experiment. The sweep then does not apply to the run."""
    value = run.get(sweep.scope)
    for key in sweep.path:
        if not isinstance(value, Mapping):
            return value is not None
        if SWEEP in value:
            return True
        if key not in value:
            return False
        value = value[key]
    return True


def _shortest(sweep: Sweep, sweeps: Sequence[Sweep]) -> Path:
    """Return a sweep's key without its first parts, as short as possible but not equal to the end of another key:
    `learning_rate`, or `optimizer.name` if another key also ends in `name`.
    """
    others = {*_known_paths(), *((other.scope, *other.path) for other in sweeps)} - {(sweep.scope, *sweep.path)}
    for start in range(len(sweep.path) - 1, -1, -1):
        tail = sweep.path[start:]
        if not any(other[-len(tail) :] == tail for other in others):
            return tail
    return (sweep.scope, *sweep.path)


@cache
def _known_paths() -> frozenset[Path]:
    """Return the paths of all keys of `pretraining`. The name of a run contains shortened swept keys. A shortened key
    must be unique among all these paths, and not only among the keys in a file, so that the name does not depend on the
    other keys in the file.
    """
    return frozenset((PRETRAINING, *path) for path in key_paths(PretrainingSettings))


# Names.


def text_of(value: Any) -> str:
    """Return the YAML text of a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {text_of(part)}" for key, part in value.items()) + "}"
    return value if isinstance(value, str) else json.dumps(value)


def slug(text: str) -> str:
    """Encode a value in letters, digits and underscores: 0.005 is 0p005, -1 is m1, 1e-06 is 1em06."""
    number = re.sub(r"(?<=\d)\.(?=\d)", "p", text)
    number = re.sub(r"(?:(?<=^)|(?<=\de))-(?=\d)", "m", number)
    name = re.sub(r"[^A-Za-z0-9]+", "_", number).strip("_") or "empty"
    return name if len(name) <= VALUE_LENGTH else f"{name[: VALUE_LENGTH - 9]}_{digest(text)[:8]}"
