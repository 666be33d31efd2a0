"""The layouts of a paper's tables, read from `config/paper_tables/<paper>.yaml`.

A layout states the table's number, its caption, its rows in blocks with headings, its columns as (suite, task, metric),
and its number of digits. There are five kinds of tables: scores (of models), order (almost stochastic order of models),
layers (contributions of layers), sizes (of corpora), and tasks (sizes of tasks).
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
"""Rule for bold face: the best number, or all numbers within one standard deviation of the best number."""


@dataclass(frozen=True)
class RowLayout(Settings):
    """A row of the table: the name of the published row in config/published/values, and the heading of the row in the
    paper.
    """

    row: str
    """Name of the published row in config/published/values."""
    heading: str
    """Heading of the row in the table."""
    answered_by: str = ""
    """Name of the published row that the model in our line of this row replicates; empty uses `row`."""
    printed: bool = True
    """True if the paper prints this row; otherwise, the row contains only our number."""


@dataclass(frozen=True)
class BlockLayout(Settings):
    """Block of rows under a common heading."""

    heading: str
    """Heading above the rows of the block."""
    rows: tuple[RowLayout, ...]
    """Rows of the block."""
    track: str = ""
    """Track of the paper (such as strict) to which the rows belong; empty if the paper has no tracks."""


@dataclass(frozen=True)
class ColumnLayout(Settings):
    """A column with one number per row. Omitted keys are inherited from the table."""

    heading: str
    """Heading of the column."""
    task: str
    """Task of the column's numbers, named as in `summary.csv`."""
    suite: str = ""
    """Suite of the column's numbers; empty uses the table's suite."""
    metric: str = ""
    """Metric of the column's numbers; empty uses the table's metric."""
    scale: float | None = None
    """Factor by which the column's numbers are multiplied; `null` uses the table's factor."""
    decimals: int | None = None
    """Number of decimals of the column's numbers; `null` uses the table's value."""
    deviation_decimals: int | None = None
    """Number of decimals of the deviations; `null` uses the table's value or, if the table's value is also `null`,
    `decimals`.
    """
    lower_is_better: bool = False
    """True if the lowest number of the column is the best."""


@dataclass(frozen=True)
class ScoreLayout(Settings):
    """Table of scores of models."""

    kind: Literal["scores"]
    """Kind of the table: `scores` (scores of models), `order` (almost stochastic order of models), `layers`
    (contributions of layers), `sizes` (sizes of corpora), or `tasks` (sizes of tasks).
    """
    caption: str
    """Caption of the table, which is printed below the table's number."""
    blocks: tuple[BlockLayout, ...]
    """Blocks of rows; each row is a model."""
    columns: tuple[ColumnLayout, ...]
    """Columns with the scores of each model."""
    suite: str = ""
    """Suite of all columns that do not set `suite`."""
    metric: str = ""
    """Metric of all columns that do not set `metric`."""
    scale: float = 1.0
    """Factor by which numbers are multiplied in all columns that do not set `scale`."""
    decimals: int = 1
    """Number of decimals of all columns that do not set `decimals`."""
    deviation_decimals: int | None = None
    """Number of decimals of the deviations; `null` uses `decimals`."""
    models: Literal["rows", "columns"] = "rows"
    """Orientation of the table: models as rows or as columns."""
    best_over: Literal["block", "table"] = "block"
    """Models among which the best number of a column is determined: the models of a block, or all models of the table.
    """
    bold: BoldRule = "best"
    """Numbers in bold face according to the paper's caption: only the best number, or also the numbers within one
    deviation of the best number.
    """
    change_from: str = ""
    """Published row whose numbers are subtracted from the numbers of all other rows; empty prints scores instead of
    changes.
    """
    remark: str = ""
    """Note below the table."""

    def resolved_columns(self) -> tuple[ColumnLayout, ...]:
        """Return the columns. If a column omits a key, the table's value of this key is used."""
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
    """Table that compares each pair of models by almost stochastic order. Models have the names of rows of the paper's
    tables.
    """

    kind: Literal["order"]
    """Kind of the table: `order` is a table of the almost stochastic order of models."""
    caption: str
    """Caption of the table, which is printed below the table's number."""
    block: BlockLayout
    """Block of rows; each row is a model."""
    suite: str
    """Suite whose average is compared."""
    average: str = "average"
    """Name of the average in `summary.csv`."""
    decimals: int = 2
    """Number of decimals of the values."""
    remark: str = ""
    """Note below the table."""


@dataclass(frozen=True)
class LayersLayout(Settings):
    """Table of the contributions of the layers to each probed task, in percent, with the slope of the contributions
    over the layers.
    """

    kind: Literal["layers"]
    """Kind of the table: `layers` is a table of contributions of layers to probed tasks."""
    caption: str
    """Caption of the table, which is printed below the table's number."""
    row: str
    """Name of the model's published row in config/published/values."""
    layers: int
    """Number of layers of the model."""
    tasks: dict[str, str]
    """Probed tasks, each with the heading of its row."""
    suite: str = "probing"
    """Suite of the tasks."""
    decimals: int = 2
    """Number of decimals of the contributions and slopes."""
    remark: str = ""
    """Note below the table."""


@dataclass(frozen=True)
class SizeRow(Settings):
    """A row of a table of corpus sizes."""

    heading: str
    """Heading of the row."""
    source: str
    """Source of the corpus whose size is printed; `total` is the whole corpus."""
    split: str
    """Split of the source whose size is printed."""


@dataclass(frozen=True)
class SizeColumn(Settings):
    """A column of a table of corpus sizes."""

    heading: str
    """Heading of the column."""
    corpus: str
    """Name of the corpus in the table of published sizes."""
    measure: str
    """Counted unit, such as `documents`, `words` or `subwords`."""
    unit: float = 1.0
    """Number by which sizes are divided, such as 1000000 for sizes in millions."""
    decimals: int = 0
    """Number of decimals of the sizes."""


@dataclass(frozen=True)
class SizesLayout(Settings):
    """Table of sizes of corpora."""

    kind: Literal["sizes"]
    """Kind of the table: `sizes` is a table of corpus sizes."""
    caption: str
    """Caption of the table, which is printed below the table's number."""
    rows: tuple[SizeRow, ...]
    """Rows of the table; each row is a source or split of the corpora."""
    columns: tuple[SizeColumn, ...]
    """Columns with the sizes of each part."""
    remark: str = ""
    """Note below the table."""


@dataclass(frozen=True)
class TasksLayout(Settings):
    """Table of sizes of tasks: number of training rows, number of validation rows, and percentage of rows that exceed
    the model's input length.
    """

    kind: Literal["tasks"]
    """Kind of the table: `tasks` is a table of task sizes."""
    caption: str
    """Caption of the table, which is printed below the table's number."""
    tasks: dict[str, str]
    """Tasks, each with the heading of its row."""
    row: str = "task_sizes"
    """Name of the row in config/published/values that contains the sizes."""
    suite: str = "glue"
    """Suite of the tasks."""
    decimals: int = 2
    """Number of decimals of the percentages."""
    remark: str = ""
    """Note below the table."""


TableLayout = ScoreLayout | OrderLayout | LayersLayout | SizesLayout | TasksLayout


@dataclass(frozen=True)
class PaperLayout(Settings):
    """Layouts of the tables of one paper. The printed numbers are in config/published/values/<paper>.csv."""

    paper: str
    """Name of the paper."""
    tables: Annotated[dict[str, Annotated[TableLayout, ChosenBy("kind")]], MinLen(1)]
    """Layout of each table, by the table's number in the paper, in the order of the file."""

    def __post_init__(self) -> None:
        require(self.paper in PAPERS, "paper", self.paper, f"one of {', '.join(PAPERS)}")


def read_layout(path: str | Path) -> PaperLayout:
    """Return the layout of a paper's tables, read from a file.

    Raises ConfigError, which names file and key, for an unknown paper, kind or key, a missing key, a row or column that
    occurs twice, and a column of scores without suite or metric.
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
                raise ConfigError(
                    f"{where}.columns: {column.heading}: suite or metric is missing; set both keys in the column or in "
                    "the table"
                )


def _places(layout: TableLayout) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield (key, entries) for each key of a layout that contains a list of rows or columns. The entries of a list must
    differ from each other.
    """
    if isinstance(layout, ScoreLayout):
        yield "blocks", [(block.track, row.row) for block in layout.blocks for row in block.rows]
        yield "columns", [(column.suite, column.task, column.metric) for column in layout.resolved_columns()]
    elif isinstance(layout, OrderLayout):
        yield "block", [(layout.block.track, row.row) for row in layout.block.rows]
    elif isinstance(layout, SizesLayout):
        yield "rows", [(row.source, row.split) for row in layout.rows]
        yield "columns", [(column.corpus, column.measure) for column in layout.columns]
