"""Models from sizes: the rows of the `grid` of an experiment, as runs that somebody could have typed."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Grid, GridPart
from hatchery.experiment.written_blocks import Document, merged
from hatchery.settings.fields import ABSENT
from hatchery.settings.problems import offered
from hatchery.typed import validated

MODEL_CHANGES = "model_changes"
# A longer value is cut in names, and a digest tells it from others.
VALUE_LENGTH = 40

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
