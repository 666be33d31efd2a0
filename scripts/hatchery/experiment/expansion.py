"""Expansion of an experiment's file: rows of its grid, values of sweeps and shared settings become full runs.

The expansion precedes validation, so generated runs are validated by the same rules as written ones, and no other
module handles a grid, a sweep, or an incomplete run.
"""

import copy
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Grid, GridRows, Run
from hatchery.experiment.sweeps import (
    MODEL_CHANGES,
    PRETRAINING,
    MadeRun,
    refuse_elsewhere,
    set_value,
    slug,
    sweeps_below,
    swept_runs,
    text_of,
)
from hatchery.experiment.written_blocks import Document, merged
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import alternatives
from hatchery.training.settings import PretrainingSettings
from hatchery.typed import validated

WrittenRow = tuple[Any, ...]
"""A value for each column of a grid, in the order of the columns."""


@dataclass
class Expansion:
    """An experiment with its runs written out, and the origin of each run in the file."""

    document: Document
    runs: dict[str, MadeRun] = field(default_factory=dict)
    models: dict[str, Document] = field(default_factory=dict)
    """Inline models of the file, by run."""
    own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Pretraining keys that each run sets itself."""
    shared: set[str] = field(default_factory=set)
    """Keys for which the experiment itself sets a sweep, for all runs."""

    def as_in_the_file(self, message: str) -> str:
        """Return an error message with the keys that the file contains instead of the keys of expanded runs; errors in
        inherited keys are reported once.
        """
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
        """Return readable labels of the runs that sweeps or a grid made, by run: `ltg_bert, learning_rate 0.005`."""
        return {run: made.label for run, made in self.runs.items() if made.label}

    def swept(self) -> dict[str, str]:
        """Return for each run that sweeps made the name of the run in the file that has the sweeps."""
        return {run: made.base for run, made in self.runs.items() if made.values}

    def sets(self) -> dict[str, str]:
        """Return the set of each run that a grid made, such as `set_1`. Other runs have no set."""
        return {run: made.set for run, made in self.runs.items() if made.set}

    def swept_values(self) -> dict[str, dict[str, object]]:
        """Return for each run of a sweep or a grid: `line`, the name that the runs with different values share;
        `sized`, true for a grid; and the swept `values` by key.

        Runs of a grid differ in their number of parameters, which `values` does not contain.
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
    """Expand the experiment `name` of the file `where`: each run contains all keys that it inherits.

    A row under `published` that names a run with sweeps applies to all runs that the sweeps make. Raises ConfigError,
    with advice, for an invalid grid, and for a sweep at a key that allows none, without values, with equal values, or
    whose runs have the name of another run.
    """
    result = Expansion(copy.deepcopy(dict(experiment)))
    document, runs, made = result.document, experiment.get("runs"), dict[str, MadeRun]()
    if isinstance(experiment.get("grid"), Mapping) and "runs" not in experiment:
        runs = {}
        for run, entry, row in rows_of_grid(document.pop("grid"), where):
            runs[run], made[run] = entry, row
        experiment = {**document, "runs": runs}
    refuse_elsewhere(experiment, where)
    if not isinstance(runs, Mapping):
        return result
    shared = sweeps_below(experiment.get(PRETRAINING), PRETRAINING, f"{where}: ")
    found = swept_runs(experiment, made, shared, where)
    result.shared = {sweep.place for sweep in shared}
    for sweep in shared:
        # Replace or remove the shared sweep, because every run contains its own value now.
        _set_or_remove(document[PRETRAINING], sweep.path, sweep.values[0])
    document["runs"] = {run: entry for run, (entry, _) in found.items()}
    result.runs = {run: how for run, (_, how) in found.items()}
    _spread_rows(document, result.swept())
    for run, entry in document["runs"].items():
        if isinstance(entry, Mapping):
            document["runs"][run] = _whole(result, name, run, entry)
    return result


def _whole(result: Expansion, experiment: str, run: str, entry: Mapping[str, Any]) -> Document:
    """Return a run with the shared settings; an inline model gets the name `<experiment>.<run>`, which no file can
    have.
    """
    whole, shared, own = dict(entry), result.document.get(PRETRAINING), entry.get(PRETRAINING, {})
    if isinstance(own, Mapping):
        result.own[run] = own
        whole.pop(PRETRAINING, None)
        if PRETRAINING in result.document:
            whole[PRETRAINING] = merged(shared, own, PretrainingSettings) if isinstance(shared, Mapping) else shared
    if isinstance(entry.get("model"), Mapping):
        result.models[run], whole["model"] = entry["model"], f"{experiment}.{run}"
    return whole


def _spread_rows(document: Document, bases: Mapping[str, str]) -> None:
    """Apply the published row of a run with sweeps to all runs of its sweeps that have no row."""
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


def _set_or_remove(tree: Document, path: tuple[str, ...], value: Any) -> None:
    """Set a plain value, or remove a mapping, because its keys must not be merged into runs with another value."""
    if not isinstance(value, Mapping):
        set_value(tree, path, value)
        return
    for key in path[:-1]:
        tree = tree[key]
    del tree[path[-1]]


# Grids: models from sizes.


def rows_of_grid(grid: Mapping[str, Any], where: str) -> Iterator[tuple[str, Document, MadeRun]]:
    """Yield name, settings and origin of a run for every row of the grid in the file `where`, and for every variant of
    each row.

    Raises ConfigError for an invalid grid. The runs are validated later, like the runs in a file.
    """
    read = validated(Grid, grid, f"{where}: grid")
    columns, taken, named = list(read.columns), dict[WrittenRow, str](), set[str]()
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
                        raise ConfigError(f"{where}: {at}: two runs of the grid have the name {run!r}")
                    named.add(run)
                    label = ", ".join(filter(None, [read.name, sizes, variant]))
                    yield run, entry, MadeRun(f"{at}.run", run, label, name, variant)


def _rows(part: GridRows, columns: list[str], taken: Mapping[WrittenRow, str], where: str) -> Iterator[WrittenRow]:
    """Yield the rows of one part of a set of the grid; `taken` are the rows of earlier parts."""
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
        # The digest of a row is its random number, so that an additional row does not change the order of the other
        # rows.
        yield from sorted(candidates, key=lambda row: digest(text_of([draw.seed, *row])))[: draw.count]


def _row(values: WrittenRow, columns: list[str], where: str) -> WrittenRow:
    if len(values) != len(columns):
        raise ConfigError(f"{where}: got {len(values)} values, expected {len(columns)}: {', '.join(columns)}")
    return values


def _index(column: str, columns: list[str], where: str) -> int:
    if column not in columns:
        raise ConfigError(f"{where}: {column}: unknown column{alternatives(column, columns, '; the grid has')}")
    return columns.index(column)


def _combinations(values: Mapping[str, WrittenRow], columns: list[str], where: str) -> Iterator[WrittenRow]:
    for column in values:
        _index(column, columns, where)
    if missing := [column for column in columns if column not in values]:
        raise ConfigError(f"{where}: {missing[0]}: the column is missing; expected values of every column")
    return itertools.product(*(values[column] for column in columns))


def _runs_of(row: WrittenRow, part: GridRows, grid: Grid) -> Iterator[tuple[str, str, Document]]:
    """Yield the run of a row and its variants, as name, variant and settings.

    Keys of the part override keys of the grid.
    """
    columns = {**grid.columns, **part.columns}
    sizes = {key: value for key, value in zip(columns.values(), row, strict=True) if key is not None}
    run = merged(merged(grid.run, part.run, Run), {MODEL_CHANGES: sizes})
    name = "_".join([grid.name, *(slug(text_of(value)) for value in row)])
    yield name, "", run
    for variant, changes in grid.variants.items():
        if changes is not None:
            yield f"{name}_{variant}", variant, _of_its_row(merged(run, changes, Run), name)


def _of_its_row(run: Document, name: str) -> Document:
    """Return the run of a variant.

    If `initialise_from` names neither a run nor a path, the variant starts from `name`, the run of its row.
    """
    start = run.get("pretraining", {}).get("initialise_from")
    if not isinstance(start, Mapping) or {"run", "path"} & start.keys():
        return run
    return merged(run, {"pretraining": {"initialise_from": {"run": name}}})
