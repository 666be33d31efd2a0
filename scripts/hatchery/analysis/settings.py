"""Settings of the summary and the figures, and the pairing of their inputs with the cells of an experiment.

A cell is one pretrained model: a run of the configuration with one pretraining seed. The order of the cells is the
order of the configuration, and every table for people and every figure keeps it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hatchery.errors import ConfigError
from hatchery.rendering.style import Style


@dataclass(frozen=True)
class Cell:
    """One pretrained model; `run` is the name of the model in files, `seed` the pretraining seed.

    `label` is what people read instead of `run`, where a sweep made the run: `ltg_bert, learning_rate 0.005`.
    """

    cell: str
    run: str
    seed: int
    label: str = ""


@dataclass(frozen=True)
class PublishedChoice:
    """The published models that ours repeat: `rows` maps our models to the rows of a paper's track."""

    paper: str
    rows: dict[str, str]
    track: str = ""


@dataclass(frozen=True)
class SummarySettings:
    """What an experiment's summary covers.

    `suites` are those of minimal pairs, `tasks` what is fine-tuned (the suites of tasks stand in the results). With
    `perplexity`, every model has been measured on held-out text. `baselines` name models from elsewhere that are scored
    on the minimal pairs alone. `published` is the table of published values, if there is one.
    """

    experiment: str
    cells: tuple[Cell, ...]
    suites: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    published: PublishedChoice | None = None
    perplexity: bool = False
    baselines: tuple[str, ...] = ()


@dataclass(frozen=True)
class FigureSettings:
    """What one figure of an experiment shows; `figure` and `version` are those of the registry of figures."""

    experiment: str
    cells: tuple[Cell, ...]
    style: Style = field(default_factory=Style)
    figure: str = ""
    version: int = 1
    # The paper whose values are marked, in the figures that have such marks.
    published: PublishedChoice | None = None
    # Models of the experiment that are not drawn, because there are too many for one figure.
    left_out: int = 0


def models_in_order(cells: Iterable[Cell]) -> list[str]:
    """The names of the models in the order of the configuration, each once."""
    return list(dict.fromkeys(cell.run for cell in cells))


def labels_of(cells: Iterable[Cell]) -> dict[str, str]:
    """What people read for each model, in the order of the configuration."""
    return {cell.run: cell.label or cell.run for cell in cells}


def models_with_counts(cells: Sequence[Cell]) -> dict[str, str]:
    """Legend entries: every model with the number of pretraining seeds behind it."""
    counts = {model: sum(cell.run == model for cell in cells) for model in models_in_order(cells)}
    labels = labels_of(cells)
    return {model: f"{labels[model]} ({count} seed{'s' if count > 1 else ''})" for model, count in counts.items()}


def cells_by_name(cells: Iterable[Cell]) -> dict[str, Cell]:
    """The cells by name. Raises ConfigError when there is none, or when two share a name or a model and a seed."""
    named: dict[str, Cell] = {}
    for cell in cells:
        twin = next((other for other in named.values() if (other.run, other.seed) == (cell.run, cell.seed)), None)
        if cell.cell in named or twin is not None:
            raise ConfigError(f"cells: {cell.cell!r} (run {cell.run!r}, seed {cell.seed}) is listed twice")
        named[cell.cell] = cell
    if not named:
        raise ConfigError("cells: the experiment lists no model")
    return named


def baseline_cells(baselines: Iterable[str], cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The baselines as models with one run each. Raises ConfigError when a name is taken."""
    taken = {name for cell in cells for name in (cell.cell, cell.run)}
    made: list[Cell] = []
    for name in baselines:
        if name in taken:
            raise ConfigError(f"baselines: the name {name!r} is taken, expected one that no other model has")
        taken.add(name)
        made.append(Cell(name, name, 0))
    return tuple(made)


def match_cells(paths: Mapping[str, Path], cells: Iterable[Cell], flag: str) -> dict[str, Path]:
    """The inputs `CELL=path` in the order of the cells. Raises ConfigError for a missing or an unknown cell."""
    names = list(cells_by_name(cells))
    _check_names(set(paths), set(names), flag)
    return {name: paths[name] for name in names}


def match_evaluations(
    paths: Mapping[str, Path], cells: Iterable[Cell], evaluations: Iterable[str], flag: str
) -> dict[tuple[str, str], Path]:
    """The inputs `CELL:EVALUATION=path` in the order of cells, then evaluations.

    Raises ConfigError when a combination is missing or was not asked for.
    """
    wanted = {f"{cell}:{evaluation}": (cell, evaluation) for cell in cells_by_name(cells) for evaluation in evaluations}
    _check_names(set(paths), set(wanted), flag)
    return {pair: paths[name] for name, pair in wanted.items()}


def evaluations_named(paths: Mapping[str, Path], flag: str) -> list[str]:
    """The evaluations behind `CELL:EVALUATION=path` inputs, each once, in the order in which they are given."""
    names = []
    for name in paths:
        cell, separator, evaluation = name.partition(":")
        if not (cell and separator and evaluation):
            raise ConfigError(f"{flag}: expected CELL:SUITE=path, got the name {name!r}")
        names.append(evaluation)
    return list(dict.fromkeys(names))


def _check_names(given: set[str], wanted: set[str], flag: str) -> None:
    if missing := sorted(wanted - given):
        raise ConfigError(f"{flag}: no input is given for {', '.join(missing)}")
    if unknown := sorted(given - wanted):
        raise ConfigError(f"{flag}: the settings do not list {', '.join(unknown)}")
