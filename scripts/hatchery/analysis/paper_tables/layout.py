"""What each table of a paper looks like, read from `config/paper_tables/<paper>.yaml`.

A table is a small entry: number, caption, blocks of published rows, columns as (suite, task, metric), digits. The five
kinds share one mechanism of drawing; which numbers fill the places comes from the published values and from ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hatchery.analysis.published_values import PAPERS
from hatchery.errors import ConfigError
from hatchery.storage.yaml_files import read_yaml
from hatchery.typed import build


@dataclass(frozen=True)
class RowLayout:
    """A published row under its printed name.

    `answered_by` is the published row that our model has to repeat to stand here, where it is called differently in
    this table. A row that is not `printed` has room for ours alone.
    """

    row: str
    heading: str
    answered_by: str = ""
    printed: bool = True


@dataclass(frozen=True)
class BlockLayout:
    """Rows below one heading; `track` is the one whose numbers they are, empty where a paper has no tracks."""

    heading: str
    rows: tuple[RowLayout, ...]
    track: str = ""


@dataclass(frozen=True)
class ColumnLayout:
    """One number per row: that of `suite`, `task` and `metric`, times `scale`, with so many decimals.

    What is left out is taken from the table; `deviation_decimals` are at last those of the number itself.
    """

    heading: str
    task: str
    suite: str = ""
    metric: str = ""
    scale: float | None = None
    decimals: int | None = None
    deviation_decimals: int | None = None
    lower_is_better: bool = False


@dataclass(frozen=True)
class ScoreLayout:
    """Scores of models. `models` says whether they are rows or columns, `best_over` among which the best is sought.

    With `change_from`, a published row, all others are printed as changes from it.
    """

    kind: Literal["scores"]
    caption: str
    blocks: tuple[BlockLayout, ...]
    columns: tuple[ColumnLayout, ...]
    suite: str = ""
    metric: str = ""
    scale: float = 1.0
    decimals: int = 1
    deviation_decimals: int | None = None
    models: Literal["rows", "columns"] = "rows"
    best_over: Literal["block", "table"] = "block"
    change_from: str = ""
    remark: str = ""

    def resolved_columns(self) -> tuple[ColumnLayout, ...]:
        """The columns with what they take from the table filled in."""
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
class OrderLayout:
    """Almost stochastic order of every row over every other, on the average that `summary.csv` calls `average`."""

    kind: Literal["order"]
    caption: str
    block: BlockLayout
    suite: str
    average: str = "average"
    decimals: int = 2
    remark: str = ""


@dataclass(frozen=True)
class LayersLayout:
    """Shares of the layers in every probed task, in percent, and the slope over the layers."""

    kind: Literal["layers"]
    caption: str
    row: str
    layers: int
    tasks: dict[str, str]
    suite: str = "probing"
    decimals: int = 2
    remark: str = ""


@dataclass(frozen=True)
class SizeRow:
    """A row of a table of corpus sizes: a source and a split of it; `total` is the whole corpus."""

    heading: str
    source: str
    split: str


@dataclass(frozen=True)
class SizeColumn:
    """A column of a table of corpus sizes: a measure of a corpus, shown divided by `unit`."""

    heading: str
    corpus: str
    measure: str
    unit: float = 1.0
    decimals: int = 0


@dataclass(frozen=True)
class SizesLayout:
    """Sizes of corpora."""

    kind: Literal["sizes"]
    caption: str
    rows: tuple[SizeRow, ...]
    columns: tuple[SizeColumn, ...]
    remark: str = ""


TableLayout = ScoreLayout | OrderLayout | LayersLayout | SizesLayout
_KINDS: dict[str, type[TableLayout]] = {
    "scores": ScoreLayout,
    "order": OrderLayout,
    "layers": LayersLayout,
    "sizes": SizesLayout,
}


@dataclass(frozen=True)
class PaperLayout:
    """The tables of one paper by their printed numbers, in the order of the file."""

    paper: str
    tables: dict[str, TableLayout]


def read_layout(path: str | Path) -> PaperLayout:
    """Read the layout of a paper's tables.

    Raises ConfigError naming the file and the key for an unknown paper, kind or key, a missing key, a row or a column
    that stands twice, and a column of scores without suite or metric.
    """
    document = read_yaml(path)
    if unknown := sorted(set(document) - {"paper", "tables"}):
        raise ConfigError(f"{path}: {unknown[0]}: unknown key; allowed are: paper, tables")
    paper, tables = document.get("paper"), document.get("tables")
    if paper not in PAPERS:
        raise ConfigError(f"{path}: paper: {paper!r} is none of {', '.join(PAPERS)}")
    if not isinstance(tables, dict) or not tables:
        raise ConfigError(f"{path}: tables: expected a mapping of table numbers to layouts, got {tables!r}")
    return PaperLayout(paper, {number: _table(entry, f"{path}: tables.{number}") for number, entry in tables.items()})


def _table(entry: Mapping[str, Any], where: str) -> TableLayout:
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if kind not in _KINDS:
        raise ConfigError(f"{where}.kind: {kind!r} is none of {', '.join(_KINDS)}")
    layout = build(_KINDS[kind], entry, where)
    for name, places in _places(layout):
        seen = set()
        for place in places:
            if place in seen:
                raise ConfigError(f"{where}.{name}: {', '.join(filter(None, place))} stands there twice")
            seen.add(place)
    if isinstance(layout, ScoreLayout):
        for column in layout.resolved_columns():
            if not (column.suite and column.metric):
                raise ConfigError(f"{where}.columns: {column.heading} has no suite or no metric, nor has the table")
    return layout


def _places(layout: TableLayout) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """What must be distinct in a layout, by the name of its key."""
    if isinstance(layout, ScoreLayout):
        yield "blocks", [(block.track, row.row) for block in layout.blocks for row in block.rows]
        yield "columns", [(column.suite, column.task, column.metric) for column in layout.resolved_columns()]
    elif isinstance(layout, OrderLayout):
        yield "block", [(layout.block.track, row.row) for row in layout.block.rows]
    elif isinstance(layout, SizesLayout):
        yield "rows", [(row.source, row.split) for row in layout.rows]
        yield "columns", [(column.corpus, column.measure) for column in layout.columns]
