"""Tables of facts other than scores: sizes of corpora, sizes of tasks, shares of layers.

Sizes of corpora are those of LTG-BERT Table 1 and ELC-BERT Table 6, from the cards of our corpora; sizes of tasks are
those of LTG-BERT Table 4, from the manifests of fine-tuning. A task has the same rows for every model of an
experiment, so the manifests of one model suffice. The contributions of the layers to every probe (LTG-BERT Table 5)
are from our tidy table of layers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from hatchery.analysis.corpus_statistics import ALL, read_published_sizes
from hatchery.analysis.published_values import PAPERS
from hatchery.analysis.read_tables import read_layer_contributions
from hatchery.analysis.settings import labels_of
from hatchery.artifacts.manifests import Manifest, read_manifest
from hatchery.artifacts.records import Record, Strict, read_rows, record
from hatchery.errors import ConfigError
from hatchery.settings.base import Natural
from hatchery.views.paper_tables.layout import LayersLayout, SizeColumn, SizeRow, SizesLayout, TasksLayout
from hatchery.views.paper_tables.printed import PrintedTable, common_notes
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score

CARD_KEY = ("source", "split")
MEASURES = ("documents", "sentences", "words", "pre_tokens", "subwords")
Size = tuple[str, str, str, str]


def sizes_printed_in(path: Path, paper: str, number: str) -> dict[Size, tuple[float, str]]:
    """Return the printed sizes of one table, multiplied out, with their remarks.

    By (corpus, source, split, measure).
    """
    return {
        (row.corpus, row.source, row.split, row.measure): (row.size, row.note)
        for row in read_published_sizes(path)
        if (row.paper, row.table) == (PAPERS[paper], f"Table {number}") and row.size is not None
    }


def read_card_sizes(cards: Mapping[str, Path], corpora: Mapping[str, str]) -> dict[Size, float]:
    """Read our sizes from the `statistics.csv` of corpus cards; `corpora` maps our names to those of the paper.

    A measure that a card lacks (subwords without a tokenizer) is no error. Raises ManifestError for a table that
    differs from the card's manifest.
    """
    sizes: dict[Size, float] = {}
    for corpus, path in cards.items():
        for _, row in read_rows(read_manifest(path.with_name("manifest.json")).file(path.name), CARD_KEY, CARD_KEY):
            source = "total" if row["source"] == ALL else row["source"]
            for measure in (name for name in MEASURES if row.get(name)):
                sizes[corpora.get(corpus, corpus), source, row["split"], measure] = int(row[measure])
    return sizes


def sizes_table(
    number: str,
    layout: SizesLayout,
    settings: PaperTablesSettings,
    published: Mapping[Size, tuple[float, str]],
    ours: Mapping[Size, float],
) -> PaperTable:
    """Return the printed sizes and ours. Raises ConfigError for a printed size without a place, or with more digits."""
    where = f"{settings.published.paper}, table {number}"
    places = {_place(row, column) for row in layout.rows for column in layout.columns}
    if missing := sorted(set(published) - places):
        raise ConfigError(f"{where}: the layout has no place for {', '.join(missing[0])}")
    lines = []
    for row in layout.rows:
        printed = tuple(_printed(published, row, column, bool(settings.caveat), where) for column in layout.columns)
        if not any(printed):
            raise ConfigError(f"{where}: the row {row.source}, {row.split} is not printed")
        lines.append(Line(row.heading, PUBLISHED, printed))
        own = [ours.get(_place(row, column)) for column in layout.columns]
        lines.append(
            Line(
                row.heading,
                OURS,
                tuple(
                    None if size is None else Score(size, _digits(column))
                    for size, column in zip(own, layout.columns, strict=True)
                ),
            )
        )
    headings = tuple(column.heading for column in layout.columns)
    notes = common_notes(settings, lines, headings, layout.remark)
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(layout.caption, "part", headings, blocks, tuple(notes), paper=paper, number=number)


def _printed(
    published: Mapping[Size, tuple[float, str]], row: SizeRow, column: SizeColumn, caveat: bool, where: str
) -> Score | None:
    found = published.get(_place(row, column))
    if found is None:
        return None
    size, note = found
    value = Score(size, _digits(column), comparable=not caveat, note=note)
    if abs(float(value.mean_text.replace(",", "")) * column.unit - size) > 1e-6 * column.unit:
        raise ConfigError(f"{where}: decimals: {row.heading}, {column.heading} is printed as {size / column.unit:g}")
    return value


def _place(row: SizeRow, column: SizeColumn) -> Size:
    return column.corpus, row.source, row.split, column.measure


def _digits(column: SizeColumn) -> Digits:
    return Digits(column.decimals, column.decimals, scale=1 / column.unit, grouped=column.unit == 1)


METRICS = ("train_rows", "validation_rows", "at_least_512_subwords_percent")
HEADINGS = ("Training rows", "Validation rows", "512 subwords or more (%)")


@dataclass(frozen=True)
class TaskSize(Record):
    """Rows of a task of texts, and the number of those truncated, because they exceed `max_length` subwords."""

    train_rows: Annotated[Natural, Strict()]
    validation_rows: Annotated[Natural, Strict()]
    truncated_train_rows: Annotated[Natural, Strict()]
    truncated_validation_rows: Annotated[Natural, Strict()]
    max_length: Annotated[Natural, Strict()]

    @property
    def percent_cut(self) -> float:
        """Return the share of the rows that were truncated, in percent."""
        cut = self.truncated_train_rows + self.truncated_validation_rows
        return 100 * cut / (self.train_rows + self.validation_rows)


def read_task_sizes(
    manifests: Mapping[str, Path], layout: TasksLayout, settings: PaperTablesSettings
) -> dict[str, TaskSize]:
    """Read the sizes of the tasks of a layout, under the paper's names, from fine-tuning manifests by our tasks.

    Raises ManifestError for a manifest that was altered, EvaluationError for one without sizes.
    """
    named = {settings.papers_task(task): path for task, path in manifests.items()}
    return {task: _size(read_manifest(path)) for task, path in named.items() if task in layout.tasks}


def _size(manifest: Manifest) -> TaskSize:
    protocol = manifest.settings.get("protocol", {})
    known = {**manifest.measures, "max_length": protocol.get("max_length")}
    return record(TaskSize, {name: known.get(name) for name in TaskSize.__annotations__}, f"{manifest.path}: measures")


def tasks_table(
    number: str,
    layout: TasksLayout,
    settings: PaperTablesSettings,
    printed: PrintedTable,
    ours: Mapping[str, TaskSize],
) -> PaperTable:
    """Return the printed sizes, with ours below them. Raises ConfigError if layout and printed table do not fit."""
    digits = (Digits(0, grouped=True), Digits(0, grouped=True), Digits(layout.decimals))
    lines = []
    for task, heading in layout.tasks.items():
        places = [("", layout.row, layout.suite, task, metric) for metric in METRICS]
        values = tuple(printed.value(place, how) for place, how in zip(places, digits, strict=True))
        lines.append(Line(heading, PUBLISHED, values))
        if (size := ours.get(task)) is not None:
            found = (size.train_rows, size.validation_rows, size.percent_cut)
            lines.append(Line(heading, OURS, tuple(map(Score, found, digits))))
    printed.check_complete([("", layout.row)])
    limits = sorted({size.max_length for size in ours.values()})
    notes = [
        "The paper does not state the rows of its shares. Ours are shares of training and validation rows together: "
        f"rows that the protocol truncates, with more than {' or '.join(map(str, limits))} subwords, [CLS] and [SEP] "
        "included",
        *common_notes(settings, lines, HEADINGS, layout.remark),
    ]
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(layout.caption, "task", HEADINGS, blocks, tuple(notes), paper=paper, number=number)


@dataclass(frozen=True)
class Shares:
    """The shares of layers 1, 2, ... in percent, and their slope in percent per layer."""

    percent: tuple[float, ...]
    slope: float


def read_shares(path: Path, settings: PaperTablesSettings) -> dict[tuple[str, str], Shares]:
    """Read the shares by model and task (in the paper's names), from the tidy table of layers, in its order.

    Raises ManifestError for a table that was altered, EvaluationError for seeds of a model with different layers.
    """
    # Four decimals, as in all numbers of the tables (`summary.csv`).
    return {
        (entry.model, settings.papers_task(entry.task)): Shares(
            tuple(round(percent, 4) for percent in entry.percent), round(entry.slope, 4)
        )
        for entry in read_layer_contributions(path, settings.runs)
    }


def layers_table(
    number: str,
    layout: LayersLayout,
    settings: PaperTablesSettings,
    printed: PrintedTable,
    shares: Mapping[tuple[str, str], Shares],
) -> PaperTable:
    """Return the printed shares, and below each task those of our models; models of other depths have own columns.

    Raises ConfigError if layout and printed table do not fit.
    """
    own = {key: value for key, value in shares.items() if key[1] in layout.tasks}
    depth = max([layout.layers, *(len(value.percent) for value in own.values())])
    digits = Digits(layout.decimals, layout.decimals)
    lines = []
    for task, heading in layout.tasks.items():
        metrics = [f"layer_{layer:02d}_percent" for layer in range(1, depth + 1)] + ["layer_slope_percent"]
        places = [("", layout.row, layout.suite, task, metric) for metric in metrics]
        lines.append(Line(heading, PUBLISHED, tuple(printed.value(place, digits) for place in places)))
        lines += [
            Line(heading, OURS, _scores(own[model, task], depth, digits), model)
            for model in settings.shown
            if (model, task) in own
        ]
    printed.check_complete([("", layout.row)])
    headings = (*(str(layer) for layer in range(1, depth + 1)), "slope")
    notes = [
        "Softmax weights of the layers in the probe in percent, from the input side to the output side; those of ours"
        " are means over the spans and runs of a task",
        "Slope: of the least-squares line over the layers, in percent per layer; with other numbers of layers it is"
        " another unit",
        *common_notes(settings, lines, headings, layout.remark),
    ]
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(
        layout.caption, "task", headings, blocks, tuple(notes), labels_of(settings.runs), paper=paper, number=number
    )


def _scores(shares: Shares, depth: int, digits: Digits) -> tuple[Score | None, ...]:
    values = [Score(percent, digits) for percent in shares.percent]
    padding = [None] * (depth - len(values))
    return (*values, *padding, Score(shares.slope, digits))
