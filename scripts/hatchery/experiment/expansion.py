"""An experiment's file with every run written out: the rows of its grid, the values of sweeps, what all runs share.

`learning_rate: {sweep: [0.005, 0.01]}` in a run, or in an experiment's `pretraining`, makes a run per value; several
sweeps make all combinations, in the order in which they stand in the file. Everything is written out before the
experiment is validated, so runs are judged by the same rules as if somebody had typed them, and nobody else ever sees a
grid, a sweep, or a run that is not whole.
"""

import copy
import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hatchery.errors import ConfigError
from hatchery.experiment.grids import MODEL_CHANGES, MadeRun, rows_of_grid, slug, text_of
from hatchery.experiment.written_blocks import Document, merged
from hatchery.settings.fields import key_paths
from hatchery.training.settings import PretrainingSettings

SWEEP = "sweep"
PRETRAINING = "pretraining"
# Keys whose value is a list.
LISTS = ("milestones",)
HOW = f"write {SWEEP}: [first, second]"

Path = tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """The values of one key; `scope` is the run's key that it belongs to, `of_experiment` whether all runs share it."""

    scope: str
    path: Path
    values: tuple[Any, ...]
    of_experiment: bool


@dataclass
class Expansion:
    """An experiment with its runs written out, and of each run where the file has it and what made it."""

    document: Document
    runs: dict[str, MadeRun] = field(default_factory=dict)
    models: dict[str, Document] = field(default_factory=dict)
    """The models that stand in the file, by the runs that they stand in."""
    own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each run says itself of its pretraining."""
    shared: set[str] = field(default_factory=set)
    """The keys that the experiment's own sweeps stand at."""

    def as_in_the_file(self, message: str) -> str:
        """The lines of an error with the places where the file has them; what runs only take over is told once."""
        lines = message.splitlines()
        found: dict[str, None] = {}
        for line in lines:
            taken = re.sub(rf": runs\.\w+\.{PRETRAINING}", f": {PRETRAINING}", line)
            place = re.search(rf": ({PRETRAINING}\.[\w.]+)", taken)
            if taken in lines or (place is not None and place[1] in self.shared):
                line = taken
            found[re.sub(r"\bruns\.(\w+)", self._place, line)] = None
        return "\n".join(found)

    def _place(self, match: re.Match[str]) -> str:
        made = self.runs.get(match[1])
        return match[0] if made is None else made.place

    def labels(self) -> dict[str, str]:
        """The names for people of the runs that sweeps or a grid made, by run: `ltg_bert, learning_rate 0.005`."""
        return {run: made.label for run, made in self.runs.items() if made.label}

    def swept(self) -> dict[str, str]:
        """The runs that sweeps made, each with the name of the run that they come from."""
        return {run: made.base for run, made in self.runs.items() if made.values}

    def sets(self) -> dict[str, str]:
        """The set of each run that a grid made: `set_1`. Runs that were made without a grid are in none."""
        return {run: made.set for run, made in self.runs.items() if made.set}

    def swept_values(self) -> dict[str, dict[str, object]]:
        """The runs that sweeps or a grid made: `line`, what they have in common, and the swept `values` by key.

        What a grid makes has its size for a value, which its name does not tell.
        """
        return {
            run: {
                "line": " ".join(filter(None, [made.set, made.variant])) or made.base,
                "sized": bool(made.set),
                "values": {
                    key: value if isinstance(value, int | float) and not isinstance(value, bool) else text_of(value)
                    for key, value in made.values.items()
                },
            }
            for run, made in self.runs.items()
            if made.set or made.values
        }


def write_out(name: str, experiment: Mapping[str, Any], where: str) -> Expansion:
    """The experiment `name` of the file `where`, as it was read, with all its runs, which say everything themselves.

    Rows under `published` that name a run with sweeps stand beside all its runs. Raises ConfigError, with what to do,
    for a grid that is wrong in itself, and for a sweep in another place, without values, with equal values, or whose
    runs' names are taken.
    """
    result = Expansion(copy.deepcopy(dict(experiment)))
    document, runs, made = result.document, experiment.get("runs"), dict[str, MadeRun]()
    if isinstance(experiment.get("grid"), Mapping) and "runs" not in experiment:
        runs = {}
        for run, entry, row in rows_of_grid(document.pop("grid"), where):
            runs[run], made[run] = entry, row
        experiment = {**document, "runs": runs}
    _refuse_elsewhere(experiment, where)
    if not isinstance(runs, Mapping):
        return result
    shared = _sweeps(experiment.get(PRETRAINING), PRETRAINING, where, of_experiment=True)
    result.shared = {_place(PRETRAINING, *sweep.path) for sweep in shared}
    for sweep in shared:
        # What the experiment says for all; every run says its own.
        _set_or_remove(document[PRETRAINING], sweep.path, sweep.values[0])
    document["runs"] = {}
    for base, run in runs.items():
        scopes = [scope for scope in run if scope in (PRETRAINING, MODEL_CHANGES)] if isinstance(run, Mapping) else []
        place = _place(f"{where}: runs", base)
        own = [sweep for scope in scopes for sweep in _sweeps(run[scope], scope, place, of_experiment=False)]
        inherited = [sweep for sweep in shared if isinstance(run, Mapping) and not _says(run, sweep)]
        first_runs = list(experiment).index("runs") < list(experiment).index(PRETRAINING) if shared else False
        sweeps = [*own, *inherited] if first_runs else [*inherited, *own]
        for chosen in itertools.product(*(sweep.values for sweep in sweeps)):
            _add_run(result, made.get(base) or MadeRun(f"runs.{base}", base), run, sweeps, chosen, runs, where)
    _spread_rows(document, result.swept())
    for run, entry in document["runs"].items():
        if isinstance(entry, Mapping):
            document["runs"][run] = _whole(result, name, run, entry)
    return result


def _whole(result: Expansion, experiment: str, run: str, entry: Mapping[str, Any]) -> Document:
    """A run with what all runs share; a model that stands in it is called after both, as no file can be."""
    whole, shared, own = dict(entry), result.document.get(PRETRAINING), entry.get(PRETRAINING, {})
    if isinstance(own, Mapping):
        result.own[run] = own
        whole[PRETRAINING] = merged(shared, own) if isinstance(shared, Mapping) else shared
        if PRETRAINING not in result.document:
            del whole[PRETRAINING]
    if isinstance(entry.get("model"), Mapping):
        result.models[run], whole["model"] = entry["model"], f"{experiment}.{run}"
    return whole


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
        if isinstance(value, list) and path[-1] not in LISTS:
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
    result: Expansion,
    made: MadeRun,
    run: Any,
    sweeps: Sequence[Sweep],
    chosen: Sequence[Any],
    taken: Collection[str],
    where: str,
) -> None:
    changed = copy.deepcopy(run)
    name, label, values = made.base, made.label or made.base, Document()
    for sweep, value in zip(sweeps, chosen, strict=True):
        # `pretraining:` without anything is null.
        if changed.get(sweep.scope) is None:
            changed[sweep.scope] = {}
        _set(changed[sweep.scope], sweep.path, value)
        key = ".".join(_shortest(sweep, sweeps))
        name = f"{name}_{slug(key.replace('.', '_'))}_{slug(text_of(value))}"
        label = f"{label}, {key} {text_of(value)}"
        values[key] = value
    if sweeps:
        if name in taken:
            raise ConfigError(
                f"{where}: runs.{name}: the sweeps of runs.{made.base} make a run of this name too; rename one of the "
                "two"
            )
        if name in result.runs:
            raise ConfigError(
                f"{where}: runs.{made.base}: two runs of the sweeps would be called {name!r}; "
                f"{_rename(made.base, sweeps)}"
            )
        made = replace(made, label=label, values=values)
    result.document["runs"][name], result.runs[name] = changed, made


def _rename(base: str, sweeps: Sequence[Sweep]) -> str:
    places = ", ".join(_place(sweep.scope, *sweep.path) for sweep in sweeps)
    return f"rename the run {base!r}, or give values of {places} that differ in letters or digits"


def _spread_rows(document: Document, bases: Mapping[str, str]) -> None:
    """A published row of a run with sweeps stands beside all its runs, unless one of them has a row of its own."""
    published = document.get("published")
    if not isinstance(published, Mapping) or not isinstance(published.get("rows"), Mapping):
        return
    rows: Document = {}
    for model, row in published["rows"].items():
        for run in [run for run, base in bases.items() if base == model] or [model]:
            rows.setdefault(run, row)
            if run == model:
                rows[run] = row
    document["published"] = {**published, "rows": rows}


def _set(tree: Document, path: Path, value: Any) -> None:
    for key in path[:-1]:
        if not isinstance(tree.get(key), dict):
            tree[key] = {}
        tree = tree[key]
    tree[path[-1]] = copy.deepcopy(value)


def _set_or_remove(tree: Document, path: Path, value: Any) -> None:
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


def _place(*path: str) -> str:
    return ".".join(path)
