"""What makes several runs of one entry of an experiment: the rows of a `grid` of sizes, and the values of sweeps.

Rows become runs that somebody could have typed. `{sweep: [...]}` stands under `pretraining` or under a run's
`model_changes`; in any other place it is refused with what to write there.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Grid, GridPart
from hatchery.experiment.written_blocks import Document, merged
from hatchery.settings.fields import ABSENT, key_paths
from hatchery.settings.problems import offered
from hatchery.training.settings import PretrainingSettings
from hatchery.typed import validated

MODEL_CHANGES = "model_changes"
PRETRAINING = "pretraining"
SWEEP = "sweep"
# A longer value is cut in names, and a digest tells it from others.
VALUE_LENGTH = 40

# Keys whose value is a list.
LISTS = ("milestones",)
HOW = f"write {SWEEP}: [first, second]"

Path = tuple[str, ...]
Row = tuple[Any, ...]
"""A value for each column of a grid, in their order."""


@dataclass(frozen=True)
class MadeRun:
    """Where the file has a run, and what made it, if it does not stand there as it is."""

    place: str
    base: str
    """The run before sweeps."""
    label: str = ""
    """Its name for people: `rv, H 256 L 8, untrained`; empty where it is the run of the file."""
    set: str = ""
    variant: str = ""
    """The set of a grid that its row is in, and which of the runs of the row it is."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The values of sweeps by what the label calls their keys."""


def rows_of_grid(grid: Mapping[str, Any], where: str) -> Iterator[tuple[str, Document, MadeRun]]:
    """A run for every row of the grid in the file `where`, and for every variant of each, by name.

    Raises ConfigError for a grid that is wrong in itself. Its runs are checked later, like those that somebody typed.
    """
    read = validated(Grid, grid, f"{where}: grid")
    columns, taken, named = list(read.columns), dict[Row, str](), set[str]()
    for name, parts in read.sets.items():
        for index, part in enumerate(parts or ()):
            at = f"grid.sets.{name}.{index}"
            for column in part.columns:
                _index(column, columns, f"{where}: {at}.columns")
            for row in _rows(part, columns, taken, f"{where}: {at}"):
                if row in taken:
                    raise ConfigError(f"{where}: {at}: the row {list(row)} is already in {taken[row]}; list it once")
                taken[row] = at
                sizes = " ".join(f"{column} {text_of(value)}" for column, value in zip(columns, row, strict=True))
                for run, variant, entry in _runs_of(row, part, read):
                    if run in named:
                        raise ConfigError(f"{where}: {at}: two runs of the grid would be called {run!r}")
                    named.add(run)
                    label = ", ".join(filter(None, [read.name, sizes, variant]))
                    yield run, entry, MadeRun(f"{at}.run", run, label, name, variant)


def _rows(part: GridPart, columns: list[str], taken: Mapping[Row, str], where: str) -> Iterator[Row]:
    """The rows of a part of a set; `taken` are those of the parts before it."""
    if part.rows is not ABSENT:
        yield from (_row(row, columns, f"{where}.rows.{index}") for index, row in enumerate(part.rows))
    elif part.around is not ABSENT:
        around = _row(part.around, columns, f"{where}.around")
        if around not in taken:
            yield around
        for column, values in part.vary.items():
            at = _index(column, columns, f"{where}.vary")
            yield from ((*around[:at], value, *around[at + 1 :]) for value in values)
    elif part.all is not ABSENT:
        yield from _combinations(part.all, columns, f"{where}.all")
    else:
        draw = part.draw
        candidates = [row for row in _combinations(draw.among, columns, f"{where}.draw.among") if row not in taken]
        if len(candidates) < draw.count:
            raise ConfigError(f"{where}.draw: count: got {draw.count}, but only {len(candidates)} rows are left")
        # A digest orders them, so that one more value leaves the order of the others as it is.
        yield from sorted(candidates, key=lambda row: digest(text_of([draw.seed, *row])))[: draw.count]


def _row(values: Row, columns: list[str], where: str) -> Row:
    if len(values) != len(columns):
        raise ConfigError(f"{where}: got {len(values)} values, expected {len(columns)}: {', '.join(columns)}")
    return values


def _index(column: str, columns: list[str], where: str) -> int:
    if column not in columns:
        raise ConfigError(f"{where}: {column}: unknown column{offered(column, columns, '; the grid has')}")
    return columns.index(column)


def _combinations(values: Mapping[str, Row], columns: list[str], where: str) -> Iterator[Row]:
    for column in values:
        _index(column, columns, where)
    if missing := [column for column in columns if column not in values]:
        raise ConfigError(f"{where}: {missing[0]}: the column is missing; expected values of every column")
    return itertools.product(*(values[column] for column in columns))


def _runs_of(row: Row, part: GridPart, grid: Grid) -> Iterator[tuple[str, str, Document]]:
    """The run of a row and those of its variants, by name and variant.

    What a part says goes before what the grid says.
    """
    columns = {**grid.columns, **part.columns}
    sizes = {key: value for key, value in zip(columns.values(), row, strict=True) if key is not None}
    run = merged(merged(grid.run, part.run), {MODEL_CHANGES: sizes})
    name = "_".join([grid.name, *(slug(text_of(value)) for value in row)])
    yield name, "", run
    for variant, changes in grid.variants.items():
        if changes is not None:
            yield f"{name}_{variant}", variant, _of_its_row(merged(run, changes), name)


def _of_its_row(run: Document, name: str) -> Document:
    """The run of a variant, which starts from the run `name` of its row where it says no more than the step."""
    start = run.get("pretraining", {}).get("initialise_from")
    if not isinstance(start, Mapping) or {"run", "path"} & start.keys():
        return run
    return merged(run, {"pretraining": {"initialise_from": {"run": name}}})


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


# Sweeps.


@dataclass(frozen=True)
class Sweep:
    """The values of one key; `scope` is the run's key that it belongs to, `of_experiment` whether all runs share it."""

    scope: str
    path: Path
    values: tuple[Any, ...]
    of_experiment: bool

    @property
    def place(self) -> str:
        """Its key in the run or in the experiment."""
        return ".".join((self.scope, *self.path))


def refuse_sweeps(document: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError for a sweep in a file that is not an experiment's."""
    for path in _places(document):
        raise ConfigError(
            f"{where}: {'.'.join(path)}: a sweep is not possible here; sweeps stand in an experiment, under "
            f"`{PRETRAINING}` or under a run's `{MODEL_CHANGES}`"
        )


def refuse_elsewhere(experiment: Mapping[str, Any], where: str) -> None:
    """Raise ConfigError, with what to write, for a sweep at a key of an experiment that cannot have one."""
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
        raise ConfigError(f"{where}: {'.'.join(path)}: a sweep is not possible here; {advice}")


def _places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Where a mapping says `sweep: [...]`; a run or a task may be called so."""
    if isinstance(tree, Mapping):
        if isinstance(tree.get(SWEEP), list) and path:
            yield path
        for key, value in tree.items():
            if key != SWEEP:
                yield from _places(value, (*path, str(key)))


def sweeps_below(tree: Any, scope: str, where: str, of_experiment: bool) -> list[Sweep]:
    """The sweeps below `scope`, in the order of the file."""
    found = []
    for path, value in _leaves(tree):
        separator = ": " if of_experiment else "."
        place = f"{where}{separator}{'.'.join((scope, *path))}"
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


def says(run: Mapping[str, Any], sweep: Sweep) -> bool:
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


def shortest(sweep: Sweep, sweeps: Sequence[Sweep]) -> Path:
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
