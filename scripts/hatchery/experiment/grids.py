"""Models from sizes: the `grid` of an experiment, written out as runs.

This is the one place that knows grids. A grid is written out before sweeps are (`sweeps.py`) and before the experiment
is validated, so afterwards there are ordinary runs, and beside them only which set of the grid each belongs to.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hatchery.artifacts.checksums import digest
from hatchery.errors import ConfigError
from hatchery.experiment.experiment_file import Grid
from hatchery.experiment.overrides import merged
from hatchery.experiment.sweeps import MODEL_CHANGES, slug, text_of
from hatchery.settings.problems import offered
from hatchery.typed import validated

Row = tuple[Any, ...]
"""A value for each column of a grid, in their order."""


@dataclass
class WithoutGrid:
    """An experiment whose grid is written out: the set and the variant of each run, and its place in the file.

    `labels` are the names for people of the runs: `rv, H 256 L 8, untrained`.
    """

    document: dict[str, Any]
    sets: dict[str, str] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def as_in_the_file(self, message: str) -> str:
        """The lines of an error with the places where the file has them, each once."""
        lines = (re.sub(r"\bruns\.(\w+)", self._place, line) for line in message.splitlines())
        return "\n".join(dict.fromkeys(lines))

    def _place(self, match: re.Match[str]) -> str:
        return f"{self.places[match[1]]}.run" if match[1] in self.places else match[0]


def write_out_grid(experiment: Mapping[str, Any], where: str) -> WithoutGrid:
    """The experiment of the file `where` with a run for every row of its grid, and for every variant of each.

    Raises ConfigError for a grid that is wrong in itself. Its runs are checked later, like those that somebody typed.
    """
    if not isinstance(experiment.get("grid"), Mapping) or "runs" in experiment:
        return WithoutGrid(dict(experiment))
    grid = validated(Grid, experiment["grid"], f"{where}: grid")
    runs: dict[str, Any] = {}
    result = WithoutGrid({**{key: value for key, value in experiment.items() if key != "grid"}, "runs": runs})
    taken: dict[Row, str] = {}
    columns = list(grid["columns"])
    for name, parts in grid["sets"].items():
        for index, part in enumerate(parts or ()):
            at = f"grid.sets.{name}.{index}"
            for column in part["columns"]:
                _index(column, columns, f"{where}: {at}.columns")
            for row in _rows(part, columns, taken, f"{where}: {at}"):
                if row in taken:
                    raise ConfigError(f"{where}: {at}: the row {list(row)} is already in {taken[row]}; list it once")
                taken[row] = at
                for run, variant, entry in _runs_of(row, part, grid):
                    if run in runs:
                        raise ConfigError(f"{where}: {at}: two runs of the grid would be called {run!r}")
                    runs[run], result.sets[run], result.places[run] = entry, name, at
                    result.variants[run] = variant
                    sizes = " ".join(f"{column} {text_of(value)}" for column, value in zip(columns, row, strict=True))
                    result.labels[run] = ", ".join(filter(None, [grid["name"], sizes, variant]))
    return result


def _rows(part: Mapping[str, Any], columns: list[str], taken: Mapping[Row, str], where: str) -> Iterator[Row]:
    """The rows of a part of a set; `taken` are those of the parts before it."""
    if "rows" in part:
        yield from (_row(row, columns, f"{where}.rows.{index}") for index, row in enumerate(part["rows"]))
    elif "around" in part:
        around = _row(part["around"], columns, f"{where}.around")
        if around not in taken:
            yield around
        for column, values in part["vary"].items():
            at = _index(column, columns, f"{where}.vary")
            yield from ((*around[:at], value, *around[at + 1 :]) for value in values)
    elif "all" in part:
        yield from _combinations(part["all"], columns, f"{where}.all")
    else:
        draw = part["draw"]
        candidates = [row for row in _combinations(draw["among"], columns, f"{where}.draw.among") if row not in taken]
        if len(candidates) < draw["count"]:
            raise ConfigError(f"{where}.draw: count: got {draw['count']}, but only {len(candidates)} rows are left")
        # A digest orders them, so that one more value leaves the order of the others as it is.
        yield from sorted(candidates, key=lambda row: digest(text_of([draw["seed"], *row])))[: draw["count"]]


def _row(values: list[Any], columns: list[str], where: str) -> Row:
    if len(values) != len(columns):
        raise ConfigError(f"{where}: got {len(values)} values, expected {len(columns)}: {', '.join(columns)}")
    return tuple(values)


def _index(column: str, columns: list[str], where: str) -> int:
    if column not in columns:
        raise ConfigError(f"{where}: {column}: unknown column{offered(column, columns, '; the grid has')}")
    return columns.index(column)


def _combinations(values: Mapping[str, Any], columns: list[str], where: str) -> Iterator[Row]:
    for column in values:
        _index(column, columns, where)
    if missing := [column for column in columns if column not in values]:
        raise ConfigError(f"{where}: {missing[0]}: the column is missing; expected values of every column")
    return itertools.product(*(values[column] for column in columns))


def _runs_of(row: Row, part: Mapping[str, Any], grid: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The run of a row and those of its variants, by name and variant.

    What a part says goes before what the grid says.
    """
    columns = {**grid["columns"], **part["columns"]}
    sizes = {key: value for key, value in zip(columns.values(), row, strict=True) if key is not None}
    run = merged(merged(grid["run"], part["run"]), {MODEL_CHANGES: sizes})
    name = "_".join([grid["name"], *(slug(text_of(value)) for value in row)])
    yield name, "", run
    for variant, changes in grid["variants"].items():
        yield f"{name}_{variant}", variant, merged(run, changes)
