"""Tables of scores: ELC-BERT Tables 1 to 3 and 7 to 10, LTG-BERT Tables 2, 3 and 6 to 8.

Below the printed line of a model stand those of ours that repeat it, in the same units and digits. Where a paper has
models as columns, every task has a printed line and one of ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hatchery.analysis.published_values import MINUS
from hatchery.analysis.settings import labels_of
from hatchery.errors import ConfigError
from hatchery.views.paper_tables.grid import (
    OURS,
    PUBLISHED,
    Block,
    Digits,
    Line,
    PaperTable,
    Value,
    with_best_bold,
)
from hatchery.views.paper_tables.layout import ColumnLayout, ScoreLayout
from hatchery.views.paper_tables.notes import score_notes
from hatchery.views.paper_tables.printed import PrintedTable
from hatchery.views.paper_tables.scores import Measure, Scores
from hatchery.views.paper_tables.settings import Entry, EntryBlock, PaperTablesSettings, entry_blocks

TRAINING_TIME = ("pretraining", "duration")
"""Suite and task of how long a model trained: a number that tables have of the papers alone."""


@dataclass(frozen=True)
class _Filler:
    """Fills the places of one table, from the printed numbers and from ours."""

    layout: ScoreLayout
    columns: tuple[ColumnLayout, ...]
    printed: PrintedTable
    scores: Scores
    reference: str

    def digits(self, column: ColumnLayout, signed: bool = False) -> Digits:
        assert column.decimals is not None and column.deviation_decimals is not None and column.scale is not None
        return Digits(column.decimals, column.deviation_decimals, column.scale, signed)

    def published(self, track: str, entry: Entry) -> tuple[Value | None, ...]:
        changed = self.layout.change_from not in ("", entry.row)
        values = []
        for column in self.columns:
            metric = column.metric + (f"{MINUS}{self.layout.change_from}" if changed else "")
            place = (track, entry.row, column.suite, column.task, metric)
            reference = entry.row == self.layout.change_from
            digits = self.digits(column, changed)
            values.append(self.printed.value(place, digits, reference, column.lower_is_better))
        return tuple(values)

    def ours(self, entry: Entry, model: str) -> tuple[Value | None, ...]:
        changed = bool(self.layout.change_from) and model != self.reference
        return tuple(self._our_value(column, model, changed) for column in self.columns)

    def _our_value(self, column: ColumnLayout, model: str, changed: bool) -> Value | None:
        measure: Measure = (column.suite, column.task, column.metric)
        score = self.scores[model].get(measure)
        if score is None:
            return None
        mean = score.mean
        if changed:
            start = self.scores.get(self.reference, {}).get(measure)
            if start is None or start.mean is None:
                return None
            mean = None if mean is None else mean - start.mean
        return Value(
            mean=mean,
            deviation=score.std,
            digits=self.digits(column, changed),
            n=score.n,
            n_failed=score.n_failed,
            n_without_number=score.n_without_number,
            reference=bool(self.layout.change_from) and not changed,
            lower_is_better=column.lower_is_better,
        )


def score_table(
    number: str, layout: ScoreLayout, settings: PaperTablesSettings, printed: PrintedTable, scores: Scores
) -> PaperTable:
    """The table with all printed numbers and with ours.

    Raises ConfigError when layout and printed table do not fit: a row that is not printed, a number without a place,
    a reference row of changes that is no row.
    """
    columns = layout.resolved_columns()
    measures = {(column.suite, column.task, column.metric) for column in columns}
    present = [model for model, own in scores.items() if measures & own.keys()]
    blocks = entry_blocks(layout.blocks, settings, present)
    rows = [(block.track, row.row) for block in layout.blocks for row in block.rows if row.printed]
    if layout.change_from and layout.change_from not in {row for _, row in rows}:
        raise ConfigError(f"{printed.where}: change_from: {layout.change_from!r} is none of the rows of the table")
    repeats = settings.published.rows
    reference = next((m for m in scores if layout.change_from and repeats.get(m) == layout.change_from), "")
    filler = _Filler(layout, columns, printed, scores, reference)
    grouped = [_lines(block, filler) for block in blocks]
    printed.check_complete(rows)
    if layout.best_over == "block":
        grouped = [with_best_bold(lines, layout.bold) for lines in grouped]
    else:
        grouped = _split(with_best_bold([line for lines in grouped for line in lines], layout.bold), grouped)
    headings = tuple(column.heading for column in columns)
    notes = score_notes(layout, settings, [line for lines in grouped for line in lines], headings)
    if layout.models == "rows":
        found = tuple(Block(block.heading, tuple(lines)) for block, lines in zip(blocks, grouped, strict=True))
        with_times = any((column.suite, column.task) == TRAINING_TIME for column in columns)
        return PaperTable(settings.published.paper, number, layout.caption, "model", headings, found, notes, with_times)
    return _transposed(number, layout, settings, grouped, headings, notes)


def _lines(block: EntryBlock, filler: _Filler) -> list[Line]:
    lines = []
    for entry in block.entries:
        if entry.row:
            lines.append(Line(entry.heading, PUBLISHED, filler.published(block.track, entry)))
        lines += [Line(entry.heading, OURS, filler.ours(entry, model), model) for model in entry.models]
    return lines


def _split(lines: Sequence[Line], like: Sequence[Sequence[Line]]) -> list[list[Line]]:
    rest = iter(lines)
    return [[next(rest) for _ in block] for block in like]


def _transposed(
    number: str,
    layout: ScoreLayout,
    settings: PaperTablesSettings,
    grouped: Sequence[Sequence[Line]],
    tasks: Sequence[str],
    notes: tuple[str, ...],
) -> PaperTable:
    """Models as columns: one for every published row and, where several of ours repeat it, for every one of ours."""
    pairs: list[tuple[Line | None, Line | None]] = []
    for line in (line for lines in grouped for line in lines):
        if line.source == PUBLISHED:
            pairs.append((line, None))
        elif pairs and pairs[-1][0] is not None and pairs[-1][1] is None and pairs[-1][0].label == line.label:
            pairs[-1] = (pairs[-1][0], line)
        else:
            pairs.append((None, line))
    lines: list[Line] = []
    for index, task in enumerate(tasks):
        for side, source in enumerate((PUBLISHED, OURS)):
            models = [pair[side] for pair in pairs]
            lines.append(Line(task, source, tuple(None if model is None else model.values[index] for model in models)))
    labels = labels_of(settings.runs)
    headings = tuple(_heading(*pair, labels) for pair in pairs)
    named = "; ".join(
        f"{published.label} is {labels.get(ours.model, ours.model)}" for published, ours in pairs if published and ours
    )
    notes = (*notes, f"Models of ours: {named}") if named else notes
    blocks = (Block("", tuple(lines)),)
    return PaperTable(settings.published.paper, number, layout.caption, "task", headings, blocks, notes)


def _heading(published: Line | None, ours: Line | None, labels: Mapping[str, str]) -> str:
    if published is not None:
        return published.label
    return "" if ours is None else f"ours: {labels.get(ours.model, ours.model)}"
