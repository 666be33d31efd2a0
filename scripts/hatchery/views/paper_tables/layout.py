"""The layouts of a paper's tables, read from `config/paper_tables/<paper>.yaml`.

A table is a small entry: number, caption, blocks of published rows, columns as (suite, task, metric), digits. The five
kinds share one mechanism of drawing; the numbers are the published values and ours.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import MinLen

from hatchery.analysis.published_values import PAPERS
from hatchery.artifacts.yaml_files import read_yaml
from hatchery.errors import ConfigError
from hatchery.settings.base import Settings, require
from hatchery.settings.fields import ChosenBy
from hatchery.typed import validated

BoldRule = Literal["best", "within_deviation"]
"""Rule for bold face: the best number, or all numbers within one standard deviation of it."""


@dataclass(frozen=True)
class RowLayout(Settings):
    """A published row under its printed name."""

    row: str
    """The row, as config/published/values calls it."""
    heading: str
    """What stands before it."""
    answered_by: str = ""
    """The published row that our model has to repeat to stand here, where it is called differently in this table."""
    printed: bool = True
    """A row that is not printed has room for ours alone."""


@dataclass(frozen=True)
class BlockLayout(Settings):
    """Rows below one heading."""

    heading: str
    """What stands above them."""
    rows: tuple[RowLayout, ...]
    """The rows."""
    track: str = ""
    """The track whose numbers they are; empty where a paper has no tracks."""


@dataclass(frozen=True)
class ColumnLayout(Settings):
    """One number of every row. What is left out is taken from the table."""

    heading: str
    """What stands above it."""
    task: str
    """Task of the number, as `summary.csv` calls it."""
    suite: str = ""
    """Suite of the number; empty takes that of the table."""
    metric: str = ""
    """Metric of the number; empty takes that of the table."""
    scale: float | None = None
    """What the number is multiplied by; null takes that of the table."""
    decimals: int | None = None
    """Decimals of the number; null takes those of the table."""
    deviation_decimals: int | None = None
    """Decimals of the deviation; null takes those of the table, or of the number itself."""
    lower_is_better: bool = False
    """Whether the lowest number is the best."""


@dataclass(frozen=True)
class ScoreLayout(Settings):
    """Scores of models."""

    kind: Literal["scores"]
    """What the table shows: scores, an order of the models, shares of layers, or sizes of corpora or tasks."""
    caption: str
    """What stands below the number of the table."""
    blocks: tuple[BlockLayout, ...]
    """The models."""
    columns: tuple[ColumnLayout, ...]
    """The numbers of each model."""
    suite: str = ""
    """Suite of all columns that name none."""
    metric: str = ""
    """Metric of all columns that name none."""
    scale: float = 1.0
    """What numbers are multiplied by."""
    decimals: int = 1
    """Decimals of the numbers."""
    deviation_decimals: int | None = None
    """Decimals of the deviations; null takes those of the number."""
    models: Literal["rows", "columns"] = "rows"
    """Whether models are rows or columns."""
    best_over: Literal["block", "table"] = "block"
    """Among which models the best is sought."""
    bold: BoldRule = "best"
    """What the caption says of bold face: the best numbers, or also those within one deviation of them."""
    change_from: str = ""
    """A published row: all others are printed as changes from it."""
    remark: str = ""
    """A note below the table."""

    def resolved_columns(self) -> tuple[ColumnLayout, ...]:
        """Return the columns, completed by the defaults of the table."""
        return tuple(self._resolved(column) for column in self.columns)

    def _resolved(self, column: ColumnLayout) -> ColumnLayout:
        decimals = self.decimals if column.decimals is None else column.decimals
        deviation = column.deviation_decimals if column.deviation_decimals is not None else self.deviation_decimals
        return replace(
            column,
            suite=column.suite or self.suite,
            metric=column.metric or self.metric,
            scale=self.scale if column.scale is None else column.scale,
            decimals=decimals,
            deviation_decimals=decimals if deviation is None else deviation,
        )


@dataclass(frozen=True)
class OrderLayout(Settings):
    """Almost stochastic order of every row over every other."""

    kind: Literal["order"]
    """What the table shows."""
    caption: str
    """What stands below the number of the table."""
    block: BlockLayout
    """The models."""
    suite: str
    """Suite whose average is compared."""
    average: str = "average"
    """What `summary.csv` calls that average."""
    decimals: int = 2
    """Decimals of the numbers."""
    remark: str = ""
    """A note below the table."""


@dataclass(frozen=True)
class LayersLayout(Settings):
    """Shares of the layers in every probed task, in percent, and the slope over the layers."""

    kind: Literal["layers"]
    """What the table shows."""
    caption: str
    """What stands below the number of the table."""
    row: str
    """The published row of the model."""
    layers: int
    """Its number of layers."""
    tasks: dict[str, str]
    """The probed tasks, each with what stands above its column."""
    suite: str = "probing"
    """Suite of the tasks."""
    decimals: int = 2
    """Decimals of the numbers."""
    remark: str = ""
    """A note below the table."""


@dataclass(frozen=True)
class SizeRow(Settings):
    """A row of a table of corpus sizes."""

    heading: str
    """What stands before it."""
    source: str
    """A source of the corpus; `total` is the whole corpus."""
    split: str
    """The split of it that is counted."""


@dataclass(frozen=True)
class SizeColumn(Settings):
    """A column of a table of corpus sizes."""

    heading: str
    """What stands above it."""
    corpus: str
    """The corpus, as the paper's numbers call it."""
    measure: str
    """What is counted, such as `documents`, `words` or `subwords`."""
    unit: float = 1.0
    """What the number is divided by."""
    decimals: int = 0
    """Decimals of the numbers."""


@dataclass(frozen=True)
class SizesLayout(Settings):
    """Sizes of corpora."""

    kind: Literal["sizes"]
    """What the table shows."""
    caption: str
    """What stands below the number of the table."""
    rows: tuple[SizeRow, ...]
    """The parts of the corpora."""
    columns: tuple[SizeColumn, ...]
    """The numbers of each part."""
    remark: str = ""
    """A note below the table."""


@dataclass(frozen=True)
class TasksLayout(Settings):
    """Sizes of tasks: rows for training and validation, and the share of them that is as long as a model reads."""

    kind: Literal["tasks"]
    """What the table shows."""
    caption: str
    """What stands below the number of the table."""
    tasks: dict[str, str]
    """The tasks, each with what stands before its row."""
    row: str = "task_sizes"
    """What the published values call the row of the numbers."""
    suite: str = "glue"
    """Suite of the tasks."""
    decimals: int = 2
    """Decimals of the shares."""
    remark: str = ""
    """A note below the table."""


TableLayout = ScoreLayout | OrderLayout | LayersLayout | SizesLayout | TasksLayout


@dataclass(frozen=True)
class PaperLayout(Settings):
    """The tables of one paper, whose numbers are in config/published/values/<paper>.csv."""

    paper: str
    """The paper."""
    tables: Annotated[dict[str, Annotated[TableLayout, ChosenBy("kind")]], MinLen(1)]
    """The tables by their printed numbers, in the order of the file."""

    def __post_init__(self) -> None:
        require(self.paper in PAPERS, "paper", self.paper, f"one of {', '.join(PAPERS)}")


def read_layout(path: str | Path) -> PaperLayout:
    """Read the layout of a paper's tables.

    Raises ConfigError naming the file and the key for an unknown paper, kind or key, a missing key, a row or a column
    that occurs twice, and a column of scores without suite or metric.
    """
    layout = validated(PaperLayout, read_yaml(path), str(path))
    for number, table in layout.tables.items():
        _check_table(table, f"{path}: tables.{number}")
    return layout


def _check_table(layout: TableLayout, where: str) -> None:
    for name, places in _places(layout):
        seen = set()
        for place in places:
            if place in seen:
                raise ConfigError(f"{where}.{name}: {', '.join(filter(None, place))} appears twice")
            seen.add(place)
    if isinstance(layout, ScoreLayout):
        for column in layout.resolved_columns():
            if not (column.suite and column.metric):
                raise ConfigError(f"{where}.columns: {column.heading} has no suite or no metric, nor has the table")


def _places(layout: TableLayout) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield the lists of a layout whose entries must be distinct, by the name of their key."""
    if isinstance(layout, ScoreLayout):
        yield "blocks", [(block.track, row.row) for block in layout.blocks for row in block.rows]
        yield "columns", [(column.suite, column.task, column.metric) for column in layout.resolved_columns()]
    elif isinstance(layout, OrderLayout):
        yield "block", [(layout.block.track, row.row) for row in layout.block.rows]
    elif isinstance(layout, SizesLayout):
        yield "rows", [(row.source, row.split) for row in layout.rows]
        yield "columns", [(column.corpus, column.measure) for column in layout.columns]
