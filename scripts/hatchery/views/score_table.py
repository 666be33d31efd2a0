"""A table of scores with their deviations, the number of runs, and marks for the best scores.

Summaries, pages and paper tables use these tables. `ScoreTable.shown` returns the table to write as Markdown, HTML,
LaTeX or for a terminal. A displayed number is a number of `summary.csv`, where numbers have four decimals, rounded
again by Python's formatting. In a paper table, the displayed numbers determine the best number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hatchery.analysis.aggregates import least_of_best
from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import SummaryRow, decimals_of
from hatchery.evaluation.basis import differing
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Cell, Column, Content, Group, Table

PUBLISHED = "published"
OURS = "ours"


@dataclass(frozen=True)
class Digits:
    """Format of numbers: decimals, a factor `scale`, a plus sign for changes (`signed`), thousands separators
    (`grouped`).
    """

    decimals: int = 1
    deviation_decimals: int = 1
    scale: float = 1.0
    signed: bool = False
    grouped: bool = False

    def mean(self, value: float) -> str:
        """Return `value`, multiplied by `scale`, as text; zero has no sign."""
        text = _plain(value * self.scale, self.decimals, self.grouped)
        return f"+{text}" if self.signed and float(text.replace(",", "")) > 0 else text

    def deviation(self, value: float) -> str:
        """Return the standard deviation `value`, multiplied by `scale`, as text."""
        return _plain(value * self.scale, self.deviation_decimals, self.grouped)


def _plain(value: float, decimals: int, grouped: bool) -> str:
    # The multiplication by `scale` has a floating-point error, which could decide how a tie is rounded. The inner
    # rounding removes this error.
    text = f"{round(value, 10):{',' if grouped else ''}.{decimals}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


@dataclass(frozen=True)
class Score:
    """One number of a table.

    `mean` is None if no run has a score; then `without_number` is displayed. The mean is over `n` runs, of which
    `n_failed` failed; `n_without_number` further runs have no score. For printed numbers, the three numbers of runs are
    0. `note` is the remark on a printed number, or the reason why the number is not `comparable`. `best` marks the best
    number of a column. If a column shows the changes from the score of one row of the table, `reference` is True for
    this score, which is ranked as a change of 0.

    For our numbers, `seeds` is the number of pretraining seeds, and `basis` is the comparison basis: the conditions
    that must be equal for comparable numbers. If the number has a summary row, `row` is this row, with the published
    value and the result of the comparison.
    """

    mean: float | None
    digits: Digits = Digits()
    deviation: float | None = None
    n: int = 0
    n_failed: int = 0
    n_without_number: int = 0
    comparable: bool = True
    note: str = ""
    best: bool = False
    reference: bool = False
    lower_is_better: bool = False
    without_number: str = "-"
    seeds: int = 0
    basis: str = ""
    row: SummaryRow | None = None

    @property
    def mean_text(self) -> str:
        """Return the displayed number, or `without_number` if there is no number."""
        return self.without_number if self.mean is None else self.digits.mean(self.mean)

    @property
    def deviation_text(self) -> str:
        """Return the displayed standard deviation over runs; empty if the deviation is unknown."""
        return "" if self.mean is None or self.deviation is None else self.digits.deviation(self.deviation)

    @property
    def failures_text(self) -> str:
        """Return a text such as `2 failed, 1 without a number`; empty if all runs succeeded."""
        failed = f"{self.n_failed} failed" if self.n_failed else ""
        without = f"{self.n_without_number} without a number" if self.n_without_number else ""
        return ", ".join(filter(None, (failed, without)))

    def text(self, plus_minus: str = "± ") -> str:
        """Return the mean and the standard deviation over runs as text."""
        return self.mean_text + (f" {plus_minus}{self.deviation_text}" if self.deviation_text else "")

    def cell(self) -> Cell:
        """Return a cell with the mean, the standard deviation over runs, the number of failed runs, and the number of
        runs without a score.
        """
        return Cell(self.mean_text, self.deviation_text, self.failures_text, self.best, self.comparable)


def score_of(row: SummaryRow, best: bool = False) -> Score:
    """Return the score of a summary row with the decimals of its metric."""
    digits = Digits(decimals_of(row.metric), decimals_of(row.metric))
    runs = row.n, row.n_failed, row.n_without_number
    return Score(row.mean, digits, row.std, *runs, best=best, row=row)


@dataclass(frozen=True)
class Line:
    """One line of a table: its label, the source of its numbers (published or ours), the name of our model, and the
    scores.
    """

    label: str
    source: str
    values: tuple[Score | None, ...]
    model: str = ""

    @property
    def runs(self) -> str:
        """Return the number of runs of our scores as text, such as `5`. If the number differs between columns, the text
        is a range, such as `5-9`.

        Empty for printed numbers.
        """
        counts = [value.n for value in self.values if value is not None and value.n + value.n_without_number]
        if not counts:
            return ""
        low, high = min(counts), max(counts)
        return str(low) if low == high else f"{low}-{high}"


@dataclass(frozen=True)
class Block:
    """Lines below a common heading, which may be empty."""

    heading: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ScoreTable:
    """A table of scores; `corner` is the heading of the column of labels, and `headings` are the headings of the
    columns of scores.

    `labels` maps our models to display names. A table of printed numbers and our numbers has a column that states the
    source of each line. There, the source of our line is `ours: NAME`, unless the line is already labelled with this
    name.
    """

    caption: str
    corner: str
    headings: tuple[str, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[Line]:
        """Return the lines of all blocks."""
        return [line for block in self.blocks for line in block.lines]

    def turned(self) -> "ScoreTable":
        """Return the transposed table, in which columns become rows. The table must have one block of lines."""
        columns = zip(*(line.values for line in self.lines), strict=True)
        lines = tuple(Line(heading, "", values) for heading, values in zip(self.headings, columns, strict=True))
        labels = tuple(line.label for line in self.lines)
        return replace(self, corner="measure", headings=labels, blocks=(Block(self.blocks[0].heading, lines),))

    def shown(self, cell: Callable[[Score], Content] = Score.cell, label: str = "", kind: str = "") -> Table:
        """Return the table for display. Missing scores are dashes. If any line of the table states whether its scores
        are published or ours, two columns are added: this source and the number of runs.

        `cell` returns the content of a score's cell.
        """
        said = any(line.source for line in self.lines)
        columns = [Column(self.corner, words=True), *([Column("numbers", words=True), Column("n")] if said else [])]
        columns += [Column(heading) for heading in self.headings]
        groups = [Group(self._rows(block, cell, said), block.heading) for block in self.blocks]
        return Table(columns, groups, self.caption, label, self.notes, kind=kind)

    def _rows(self, block: Block, cell: Callable[[Score], Content], said: bool) -> list[list[Content]]:
        rows: list[list[Content]] = []
        previous = ""
        for line in block.lines:
            # A published line and our line with the same label are neighbours. Show the label only in the first of
            # them.
            label, previous = "" if said and line.label == previous else line.label, line.label
            model = self.labels.get(line.model, line.model)
            source = f"{line.source}: {model}" if model and model != line.label else line.source
            scores = ["-" if value is None else cell(value) for value in line.values]
            rows.append([label, *([source, line.runs] if said else []), *scores])
        return rows


@dataclass(frozen=True, kw_only=True)
class PaperTable(ScoreTable):
    """A table of a paper; `number` is the table's number in the paper.

    `with_times` is True if the table prints training times; then the page of an experiment adds our training times.
    """

    paper: str
    number: str
    with_times: bool = False

    @property
    def name(self) -> str:
        """Return the table's file name without suffix, such as `elc_bert_table_07`."""
        return f"{self.paper}_table_{int(self.number):02d}"

    @property
    def has_ours(self) -> bool:
        """True if the table contains at least one of our numbers."""
        return any(line.source != PUBLISHED and any(line.values) for line in self.lines)


def with_best(lines: Sequence[Line], within_deviation: bool = False) -> list[Line]:
    """Return the lines with the best number of each column marked, separately among the lines with numbers printed in
    the paper and among the lines with our numbers.

    Numbers with equal displayed digits count as equal, and all best numbers are marked. If `within_deviation` is True,
    a number is also marked if its distance from the best number is at most the deviation of the best number. With
    several best numbers, the largest of their deviations is used: in LTG-BERT's Table 3, 92.3 on SST-2 is bold next to
    92.8 ± 0.5 and 92.8 ± 0.4.

    If a column contains only one printed number, this number is not marked. If a column contains only one of our
    numbers, our number is not marked. None of our numbers in a column is marked if they are not comparable with each
    other. The same holds if one of our best numbers belongs to a model with one pretraining seed, because its variation
    over seeds is unknown.
    """
    columns: dict[tuple[bool, int], list[tuple[float, float]]] = {}
    ours: dict[int, list[tuple[float, Score]]] = {}
    for line in lines:
        for column, value in enumerate(line.values):
            if value is not None and (strength := _strength(value)) is not None:
                reach = float(value.deviation_text or 0) if within_deviation else 0.0
                columns.setdefault((line.source == PUBLISHED, column), []).append((strength, reach))
                if line.source != PUBLISHED:
                    ours.setdefault(column, []).append((strength, value))
    least = {key: least_of_best(found) for key, found in columns.items()}

    def no_claim(column: int) -> bool:
        best = [value for strength, value in ours[column] if strength >= least[False, column]]
        return bool(differing(value.basis for _, value in ours[column])) or any(value.seeds == 1 for value in best)

    none_best = {(False, column) for column in ours if no_claim(column)}

    def marked(value: Score | None, key: tuple[bool, int]) -> Score | None:
        strength = None if value is None else _strength(value)
        if value is None or strength is None or len(columns[key]) < 2 or key in none_best:
            return value
        return replace(value, best=strength >= least[key])

    return [
        replace(line, values=tuple(marked(value, (line.source == PUBLISHED, c)) for c, value in enumerate(line.values)))
        for line in lines
    ]


def _strength(value: Score) -> float | None:
    """Return the displayed number as a float, negated if lower numbers are better; None if there is no number."""
    if value.mean is None:
        return None
    shown = 0.0 if value.reference else float(value.mean_text.replace(",", ""))
    return -shown if value.lower_is_better else shown


BLIND_GUESS = "blind guess"
"""Label in tables for the score of a guess that does not see the test items."""
# SIDE_BY_SIDE is the maximum number of measures that a table shows as columns. With ROWS_FROM or more models, models
# are rows.
SIDE_BY_SIDE, ROWS_FROM = 6, 5
COMPARED = ("model", "task", "metric", "ours", "published", "difference", "verdict", "source", "note")
"""Columns of a table that compares our numbers with published numbers."""


def table_of(
    scores: Scores, measures: Sequence[Measure], models: Sequence[str], caption: str = "", best: bool = False
) -> ScoreTable:
    """Return a table with models as lines and measures as columns; if `best` is True, the best scores are marked."""
    marked = [scores.best(measure) if best else set() for measure in measures]
    lines = []
    for model in models:
        rows = [
            (scores.row_for(measure, model), model in found) for measure, found in zip(measures, marked, strict=True)
        ]
        values = tuple(None if row is None else score_of(row, is_best) for row, is_best in rows)
        lines.append(Line(scores.label(model), "", values, model))
    return ScoreTable(caption, "model", tuple(measure.label for measure in measures), (Block("", tuple(lines)),))


def blind_guesses(scores: Scores, measures: Sequence[Measure], joined: Callable[[list[str]], str]) -> tuple[Line, ...]:
    """Return a line with the scores of blind guesses; empty if no such score is known.

    A blind guess is a guess without seeing the test items. Its score on a measure may differ between models; the
    function `joined` joins the different scores, given as texts, to one text.
    """
    guesses = [joined(scores.blind_guesses(measure)) for measure in measures]
    line = Line(BLIND_GUESS, "", tuple(Score(None, without_number=guess or "-") for guess in guesses))
    return (line,) if any(guesses) else ()


def compared_cells(
    scores: Scores,
    row: SummaryRow,
    remarks: Mapping[tuple[str, str, str, str], str],
    ours: Content,
    decimals: int | None,
) -> list[Content]:
    """Return the cells of a row that compares our number with the published number; COMPARED names the columns.

    `remarks` are remarks on published numbers by (model, suite, task, metric). `ours` is the content of the cell for
    our number. The published number is shown with `decimals` decimals.
    """
    return [
        scores.label(row.model),
        readable(row.task),
        readable(row.metric),
        ours,
        row.published(decimals),
        "" if row.difference is None else f"{row.difference:+.1f}",
        row.verdict,
        row.published_source,
        remarks.get(row.selectors, ""),
    ]


def verdict_counts(scores: Scores) -> str:
    """Return the number of comparisons with each verdict, such as `3 within, 1 above`; empty if there are no published
    values.
    """
    return ", ".join(f"{count} {verdict}" for verdict, count in scores.verdicts().items())
