"""Paper tables without scores: sizes of corpora, sizes of tasks, contributions of layers.

Corpus sizes are in LTG-BERT Table 1 and ELC-BERT Table 6; the sizes of our corpora come from their cards. Task sizes
are in LTG-BERT Table 4; the sizes of our tasks come from the manifests of fine-tuning. All models of an experiment have
the same task data, so the manifests of one model suffice. Contributions of layers to probes are in LTG-BERT Table 5;
the contributions in our models come from `layers.parquet`.
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
    """Return (size, note) of each corpus size that the paper prints in its table `number`, by (corpus, source, split,
    measure).

    Sizes are absolute: a size that is printed in millions is multiplied by a million.
    """
    return {
        (row.corpus, row.source, row.split, row.measure): (row.size, row.note)
        for row in read_published_sizes(path)
        if (row.paper, row.table) == (PAPERS[paper], f"Table {number}") and row.size is not None
    }


def read_card_sizes(cards: Mapping[str, Path], corpora: Mapping[str, str]) -> dict[Size, float]:
    """Return the sizes of our corpora, from the `statistics.csv` of corpus cards; `corpora` maps our corpus names to
    the names in the replicated paper.

    A measure that a card lacks is omitted, for example the number of subwords if the corpus has no tokenizer. Raises
    ManifestError for a table that differs from the card's manifest.
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
    """Return the table of the printed sizes of corpora and our sizes. `layout` defines its rows and columns.

    Raises ConfigError in three cases: a printed size has no row and column in `layout`, or has more digits than
    `layout` shows; or a row of `layout` has no printed size.
    """
    where = f"{settings.published.paper}, table {number}"
    places = {_place(row, column) for row in layout.rows for column in layout.columns}
    if missing := sorted(set(published) - places):
        raise ConfigError(
            f"{where}: the layout has no cell for {', '.join(missing[0])}, whose size is printed in the paper"
        )
    lines = []
    for row in layout.rows:
        printed = tuple(_printed(published, row, column, bool(settings.caveat), where) for column in layout.columns)
        if not any(printed):
            raise ConfigError(f"{where}: the layout has a row {row.source}, {row.split}, for which no size is printed")
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
        raise ConfigError(
            f"{where}: decimals: {row.heading}, {column.heading} is printed as {size / column.unit:g}, expected "
            "enough decimals for all digits of this size"
        )
    return value


def _place(row: SizeRow, column: SizeColumn) -> Size:
    return column.corpus, row.source, row.split, column.measure


def _digits(column: SizeColumn) -> Digits:
    return Digits(column.decimals, column.decimals, scale=1 / column.unit, grouped=column.unit == 1)


METRICS = ("train_rows", "validation_rows", "at_least_512_subwords_percent")
HEADINGS = ("Training rows", "Validation rows", "512 subwords or more (%)")


@dataclass(frozen=True)
class TaskSize(Record):
    """Numbers of training and validation rows of a task, and numbers of truncated rows in both sets. A row is truncated
    if it has more than `max_length` subwords.
    """

    train_rows: Annotated[Natural, Strict()]
    validation_rows: Annotated[Natural, Strict()]
    truncated_train_rows: Annotated[Natural, Strict()]
    truncated_validation_rows: Annotated[Natural, Strict()]
    max_length: Annotated[Natural, Strict()]

    @property
    def percent_cut(self) -> float:
        """Return the percentage of rows (training and validation together) that were truncated."""
        cut = self.truncated_train_rows + self.truncated_validation_rows
        return 100 * cut / (self.train_rows + self.validation_rows)


def read_task_sizes(
    manifests: Mapping[str, Path], layout: TasksLayout, settings: PaperTablesSettings
) -> dict[str, TaskSize]:
    """Return the numbers of rows of the tasks in `layout`; the keys are the names that the replicated paper gives to
    the tasks. `manifests` maps our names of the tasks to fine-tuning manifests.

    Raises ManifestError for an altered manifest, and EvaluationError for a manifest without sizes.
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
    """Return the table of the sizes of tasks. For each task, a line with the printed sizes precedes a line with our
    sizes.

    Raises ConfigError if `layout` and the printed table have different rows.
    """
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
        "The paper does not state to which rows its percentages refer. Our percentages refer to the training "
        "and validation rows together, and count truncated rows: rows with more than "
        f"{' or '.join(map(str, limits))} subwords, including [CLS] and [SEP]",
        *common_notes(settings, lines, HEADINGS, layout.remark),
    ]
    blocks = (Block("", tuple(lines)),)
    paper = settings.published.paper
    return PaperTable(layout.caption, "task", HEADINGS, blocks, tuple(notes), paper=paper, number=number)


@dataclass(frozen=True)
class Shares:
    """Contributions of layers 1, 2, ... of a model to the probe of one task, in percent. `slope` is the slope of their
    least-squares line, in percentage points per layer.
    """

    percent: tuple[float, ...]
    slope: float


def read_shares(path: Path, settings: PaperTablesSettings) -> dict[tuple[str, str], Shares]:
    """Return the contributions of layers to probes, by model and by the name that the replicated paper gives to the
    task, in the order of `layers.parquet`.

    Raises ManifestError for an altered table, EvaluationError if the seeds of a model have different numbers of layers.
    """
    # Values are rounded to four decimals, like all numbers of `summary.csv`.
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
    """Return the table of the contributions of layers to probes. For each task, a line with the printed contributions
    precedes lines with the contributions in our models.

    If a model has more layers than the model of the replicated paper, the table has further columns. Raises ConfigError
    if `layout` and the printed table have different cells.
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
        "Softmax weights of the layers in the probe in percent, from the first layer to the last; our weights are means"
        " over the spans and runs of a task",
        "Slope: slope of a least-squares line over the layers, in percent per layer; slopes of models with different"
        " numbers of layers are not comparable",
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
