"""Sweeps: `learning_rate: {sweep: [0.005, 0.01]}` in a run, or in an experiment's `pretraining`, makes a run per value.

This is the one place that knows sweeps. An experiment is written out here before it is validated, so its runs are
judged by the same rules as if somebody had typed them, and nobody else ever sees a sweep. Several sweeps of a run
make all combinations, in the order in which they stand in the file.
"""

import copy
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.errors import ConfigError
from hatchery.settings.walk import key_paths
from hatchery.training.settings import PretrainingSettings

SWEEP = "sweep"
PRETRAINING, MODEL_CHANGES = "pretraining", "model_changes"
HOW = f"write {SWEEP}: [first, second]"
# A longer value is cut in names, and a digest tells it from others.
VALUE_LENGTH = 40

Path = tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """The values of one key; `scope` is the run's key that it belongs to, `of_experiment` whether all runs share it."""

    scope: str
    path: Path
    values: tuple[Any, ...]
    of_experiment: bool


@dataclass
class WrittenOut:
    """An experiment without sweeps. `labels` are the ends of the names for people of the runs that a sweep made."""

    document: dict[str, Any]
    labels: dict[str, str] = field(default_factory=dict)
    # The run in the file that each such run comes from, and the keys that the experiment's own sweeps stand at.
    bases: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    # The values of each such run by what its label calls their keys.
    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_in_the_file(self, message: str) -> str:
        """The lines of an error with the places where the file has them, each once."""
        lines = []
        for line in message.splitlines():
            for run in sorted(self.bases, key=len, reverse=True):
                line = line.replace(f"runs.{run}.", f"runs.{self.bases[run]}.")
            lines.append(re.sub(r"runs\.\w+\.(pretraining\.[\w.]+)", self._shared_place, line))
        return "\n".join(dict.fromkeys(lines))

    def _shared_place(self, match: re.Match[str]) -> str:
        return match[1] if match[1] in self.shared else match[0]


def write_out(experiment: Mapping[str, Any], where: str) -> WrittenOut:
    """The experiment of the file `where`, as it was read, with a run for every combination of its runs' sweeps.

    Rows under `published` that name a run with sweeps stand beside all its runs. Raises ConfigError, with what to do,
    for a sweep in another place, without values, with equal values, or whose runs' names are taken.
    """
    result = WrittenOut(copy.deepcopy(dict(experiment)))
    document, runs = result.document, experiment.get("runs")
    _refuse_elsewhere(experiment, where)
    if not isinstance(runs, Mapping):
        return result
    shared = _sweeps(experiment.get(PRETRAINING), PRETRAINING, where, of_experiment=True)
    result.shared = {_place(PRETRAINING, *sweep.path) for sweep in shared}
    for sweep in shared:
        # What the experiment says for all; every run says its own.
        _set_or_remove(document[PRETRAINING], sweep.path, sweep.values[0])
    document["runs"] = {}
    for name, run in runs.items():
        scopes = [scope for scope in run if scope in (PRETRAINING, MODEL_CHANGES)] if isinstance(run, Mapping) else []
        place = _place(f"{where}: runs", name)
        own = [sweep for scope in scopes for sweep in _sweeps(run[scope], scope, place, of_experiment=False)]
        inherited = [sweep for sweep in shared if isinstance(run, Mapping) and not _says(run, sweep)]
        first_runs = list(experiment).index("runs") < list(experiment).index(PRETRAINING) if shared else False
        sweeps = [*own, *inherited] if first_runs else [*inherited, *own]
        for chosen in itertools.product(*(sweep.values for sweep in sweeps)):
            _add_run(result, name, run, sweeps, chosen, where)
    _check_names(result, runs, where)
    _spread_rows(document, result.bases)
    return result


def refuse_sweeps(document: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for a sweep in a file that is not an experiment's."""
    for path in _places(document):
        raise ConfigError(
            f"{where}: {_place(*path)}: a sweep is not possible here; sweeps stand in an experiment, under "
            f"`{PRETRAINING}` or under a run's `{MODEL_CHANGES}`"
        )


def _refuse_elsewhere(experiment: Mapping[str, Any], where: str) -> None:
    for path in _places(experiment):
        in_run = path[0] == "runs" and len(path) > 3 and path[2] in (PRETRAINING, MODEL_CHANGES)
        if in_run or (path[0] == PRETRAINING and len(path) > 1):
            continue
        if path[0] == PRETRAINING or (path[0] == "runs" and path[-1] in (PRETRAINING, MODEL_CHANGES)):
            advice = "give it to the keys below, such as optimizer.learning_rate"
        elif path[0] == "runs" and path[-1] == "seeds":
            advice = "`seeds` is a list as it is, and each seed is pretrained: write seeds: [1, 2]"
        elif path[0] == "finetuning" and path[-1] in ("learning_rates", "seeds"):
            advice = f"`{path[-1]}` is a list as it is, and all its values are run: write {path[-1]}: [first, second]"
        elif path[0] == "runs":
            advice = "write one run for each value"
        else:
            advice = (
                f"only keys under `{PRETRAINING}` and under a run's `{MODEL_CHANGES}` can have one; write one "
                "experiment for each value"
            )
        raise ConfigError(f"{where}: {_place(*path)}: a sweep is not possible here; {advice}")


def _places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Where a mapping says `sweep: [...]`; a run or a task may be called so."""
    if isinstance(tree, Mapping):
        if isinstance(tree.get(SWEEP), list) and path:
            yield path
        for key, value in tree.items():
            if key != SWEEP:
                yield from _places(value, (*path, str(key)))


def _sweeps(tree: Any, scope: str, where: str, of_experiment: bool) -> list[Sweep]:
    """The sweeps below `scope`, in the order of the file."""
    found = []
    for path, value in _leaves(tree):
        separator = ": " if of_experiment else "."
        place = f"{where}{separator}{_place(scope, *path)}"
        if isinstance(value, list):
            shown = json.dumps(value)
            raise ConfigError(f"{place}: got the list {shown}; for a run with each value write {{{SWEEP}: {shown}}}")
        if isinstance(value, Mapping) and SWEEP in value:
            found.append(Sweep(scope, path, _values(value, place), of_experiment))
    return found


def _leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, Mapping) and (SWEEP not in tree or not path):
        for key, value in tree.items():
            yield from _leaves(value, (*path, str(key)))
    elif path:
        yield path, tree


def _values(sweep: Mapping[str, Any], place: str) -> tuple[Any, ...]:
    if further := sorted(sweep.keys() - {SWEEP}):
        raise ConfigError(f"{place}: {further[0]}: unknown key beside `{SWEEP}`, expected its list of values alone")
    values = sweep[SWEEP]
    if not isinstance(values, list):
        raise ConfigError(f"{place}.{SWEEP}: got {values!r}, expected a list of values: {HOW}")
    if not values:
        raise ConfigError(f"{place}.{SWEEP}: the list is empty, expected at least one value: {HOW}")
    seen: list[Any] = []
    for value in values:
        if any(isinstance(part, Mapping) and SWEEP in part for part in _parts(value)):
            raise ConfigError(f"{place}.{SWEEP}: a sweep within a sweep; write two sweeps, each at its own key")
        # 1 and 1.0 are the same setting, 1 and true are not.
        if any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in seen):
            raise ConfigError(f"{place}.{SWEEP}: {text_of(value)} is given twice, expected each value once")
        seen.append(value)
    return tuple(values)


def _parts(value: Any) -> Iterator[Any]:
    yield value
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _parts(part)


def _says(run: Mapping[str, Any], sweep: Sweep) -> bool:
    """Whether a run has a value of its own where the experiment has a sweep."""
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


def _add_run(
    result: WrittenOut, base: str, run: Any, sweeps: Sequence[Sweep], chosen: Sequence[Any], where: str
) -> None:
    changed = copy.deepcopy(run)
    name, label, values = base, "", dict[str, Any]()
    for sweep, value in zip(sweeps, chosen, strict=True):
        # `pretraining:` without anything is null.
        if changed.get(sweep.scope) is None:
            changed[sweep.scope] = {}
        _set(changed[sweep.scope], sweep.path, value)
        key = _shortest(sweep, sweeps)
        name = f"{name}_{slug('_'.join(key))}_{slug(text_of(value))}"
        label = f"{label}, {'.'.join(key)} {text_of(value)}"
        values[".".join(key)] = value
    if sweeps:
        if name in result.document["runs"]:
            raise ConfigError(
                f"{where}: runs.{base}: two runs of the sweeps would be called {name!r}; {_rename(base, sweeps)}"
            )
        result.labels[name], result.bases[name], result.values[name] = label, base, values
    result.document["runs"][name] = changed


def _check_names(result: WrittenOut, runs: Mapping[str, Any], where: str) -> None:
    for name, base in result.bases.items():
        if name in runs:
            raise ConfigError(
                f"{where}: runs.{name}: the sweeps of runs.{base} make a run of this name too; rename one of the two"
            )


def _rename(base: str, sweeps: Sequence[Sweep]) -> str:
    places = ", ".join(_place(sweep.scope, *sweep.path) for sweep in sweeps)
    return f"rename the run {base!r}, or give values of {places} that differ in letters or digits"


def _spread_rows(document: dict[str, Any], bases: Mapping[str, str]) -> None:
    """A published row of a run with sweeps stands beside all its runs, unless one of them has a row of its own."""
    published = document.get("published")
    if not isinstance(published, Mapping) or not isinstance(published.get("rows"), Mapping):
        return
    rows: dict[str, Any] = {}
    for model, row in published["rows"].items():
        for run in [run for run, base in bases.items() if base == model] or [model]:
            rows.setdefault(run, row)
            if run == model:
                rows[run] = row
    document["published"] = {**published, "rows": rows}


def _set(tree: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    tree[path[-1]] = copy.deepcopy(value)


def _set_or_remove(tree: dict[str, Any], path: Path, value: Any) -> None:
    """Keys of one value must not be inherited by the runs with another one, so a value with keys is left out."""
    if not isinstance(value, Mapping):
        _set(tree, path, value)
        return
    for key in path[:-1]:
        tree = tree[key]
    del tree[path[-1]]


# Names.


def _shortest(sweep: Sweep, sweeps: Sequence[Sweep]) -> Path:
    """The end of a key's path that no other key has: `learning_rate`, but `optimizer.name`."""
    others = {*_known_paths(), *((other.scope, *other.path) for other in sweeps)} - {(sweep.scope, *sweep.path)}
    for start in range(len(sweep.path) - 1, -1, -1):
        tail = sweep.path[start:]
        if not any(other[-len(tail) :] == tail for other in others):
            return tail
    return (sweep.scope, *sweep.path)


@cache
def _known_paths() -> frozenset[Path]:
    """The paths of all keys of `pretraining`, so that a name does not depend on which of them a file has."""
    return frozenset((PRETRAINING, *path) for path in key_paths(PretrainingSettings))


def text_of(value: Any) -> str:
    """A value as the file could have it, on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {text_of(part)}" for key, part in value.items()) + "}"
    return value if isinstance(value, str) else json.dumps(value)


def slug(text: str) -> str:
    """Letters, digits and underscores that stand for a value: 0.005 is 0p005, -1 is m1, 1e-06 is 1em06."""
    number = re.sub(r"(?<=\d)\.(?=\d)", "p", text)
    number = re.sub(r"(?:(?<=^)|(?<=\de))-(?=\d)", "m", number)
    name = re.sub(r"[^A-Za-z0-9]+", "_", number).strip("_") or "empty"
    return name if len(name) <= VALUE_LENGTH else f"{name[: VALUE_LENGTH - 9]}_{digest(text)[:8]}"


def _place(*path: str) -> str:
    return ".".join(path)
