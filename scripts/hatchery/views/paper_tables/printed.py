"""The printed part of a paper's table: rows, our models that replicate the rows, printed numbers, and notes.

Each printed number must have a cell in the table's layout, and each row of the layout must have a printed number
(except rows with `printed: false`). The notes explain the origin of the numbers, the deviations (such as a sample
standard deviation), the number of runs, bold face, and the reasons why numbers are not comparable.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hatchery.analysis.comparability import ONE_SEED, not_compared
from hatchery.analysis.published_values import PAPERS, PublishedNumber
from hatchery.analysis.settings import labels_of
from hatchery.errors import ConfigError
from hatchery.evaluation.basis import differing
from hatchery.settings.problems import nearest
from hatchery.views.paper_tables.layout import BlockLayout, ScoreLayout
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import PUBLISHED, Digits, Line, Score


@dataclass(frozen=True)
class Entry:
    """A row of a paper's table. `row` is the name of the published row, and `models` are our models that replicate this
    row. For our model that replicates no published row, `row` is empty.
    """

    heading: str
    row: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class EntryBlock:
    """Rows of a table under a common heading, this heading, and the track of BabyLM (such as `strict`) to which the
    rows belong.
    """

    heading: str
    track: str
    entries: tuple[Entry, ...]


def check_rows(settings: PaperTablesSettings, numbers: Iterable[PublishedNumber]) -> None:
    """Raise ConfigError if the experiment's key `published` names an unknown model, track or row."""
    choice = settings.published
    numbers = list(numbers)
    tracks = {number.track for number in numbers if number.track}
    if choice.track and choice.track not in tracks:
        raise ConfigError(
            f"published.track: got {choice.track!r}, expected one of: {', '.join(sorted(tracks)) or 'no track'}"
        )
    rows = {number.row for number in numbers if number.track in ("", choice.track)}
    models = settings.models
    for model, row in choice.rows.items():
        if model not in models:
            raise ConfigError(f"published.rows: got {model!r}, expected one of the models {', '.join(models)}")
        if row not in rows:
            raise ConfigError(f"published.rows.{model}: got {row!r}, expected one of: {', '.join(sorted(rows))}")


def entry_blocks(
    blocks: Sequence[BlockLayout], settings: PaperTablesSettings, present: Iterable[str]
) -> list[EntryBlock]:
    """Return the rows of a table in blocks. Each row contains those of our models that replicate the row. `present` are
    the models with a score.

    The rows of a block may belong to one track of BabyLM, such as `strict`. Our models are only in blocks without a
    track, and in blocks with the track of the experiment. The last of these blocks ends with our models that replicate
    no published row, under their labels. Models that replicate a row of another table are omitted.
    """
    choice = settings.published
    present = set(present)
    models = [model for model in settings.shown if model in present]
    ours = [index for index, block in enumerate(blocks) if block.track in ("", choice.track)]
    found = []
    for index, block in enumerate(blocks):
        entries = []
        for row in block.rows:
            wanted = row.answered_by or row.row
            repeated = [model for model in models if index in ours and choice.rows.get(model) == wanted]
            entries.append(Entry(row.heading, row.row if row.printed else "", tuple(repeated)))
        if ours and index == ours[-1]:
            labels = labels_of(settings.runs)
            entries += [Entry(labels.get(model, model), "", (model,)) for model in models if model not in choice.rows]
        kept = tuple(entry for entry in entries if entry.row or entry.models)
        found.append(EntryBlock(block.heading, block.track, kept))
    return [block for block in found if block.entries]


CellKey = tuple[str, str, str, str, str]


class PrintedTable:
    """The printed numbers of a table by (track, row, suite, task, metric). The object records the numbers that `value`
    has returned.
    """

    def __init__(self, numbers: Iterable[PublishedNumber], paper: str, table: str, caveat: str = "") -> None:
        self.where = f"{paper}, table {table}"
        self._caveat = caveat
        self._numbers: dict[CellKey, PublishedNumber] = {
            (number.track, number.row, number.suite, number.task, number.metric): number
            for number in numbers
            if (number.paper, number.table) == (paper, table)
        }
        self._placed: set[CellKey] = set()

    def value(
        self, place: CellKey, digits: Digits, reference: bool = False, lower_is_better: bool = False
    ) -> Score | None:
        """Return the printed number of the cell `place` (track, row, suite, task, metric). None if the table of the
        replicated paper does not print this number.

        Raises ConfigError if `digits` would show fewer digits than are printed.
        """
        number = self._numbers.get(place)
        if number is None:
            return None
        self._placed.add(place)
        for kind, printed, shown in (
            ("decimals", number.value, digits.mean(number.value)),
            ("deviation_decimals", number.spread, "" if number.spread is None else digits.deviation(number.spread)),
        ):
            if printed is not None and abs(float(shown.replace(",", "")) - printed * digits.scale) > 1e-9:
                raise ConfigError(
                    f"{self.where}: {kind}: {', '.join(filter(None, place))} is printed as"
                    f" {printed * digits.scale:g}, but this number of decimals would show {shown}"
                )
        return Score(
            mean=number.value,
            deviation=number.spread,
            digits=digits,
            comparable=number.comparable and not self._caveat,
            note=number.note,
            reference=reference,
            lower_is_better=lower_is_better,
        )

    def check_complete(self, rows: Iterable[tuple[str, str]]) -> None:
        """Raise ConfigError for a row (track, name) without a printed number, and for a printed number that was not
        requested by `value`.
        """
        known = {place[:2] for place in self._numbers}
        for track, row in rows:
            if (track, row) not in known:
                hint = nearest(row, {name for _, name in known})
                name = " ".join(filter(None, (track, row)))
                raise ConfigError(
                    f"{self.where}: the published table has no number for the row {name} of the layout{hint}"
                )
        if missing := sorted(set(self._numbers) - self._placed):
            name = ", ".join(filter(None, missing[0]))
            raise ConfigError(f"{self.where}: the layout has no cell for the published number of {name}")


SAMPLE_DEVIATION = (
    "± is the sample standard deviation over n runs (divided by n - 1). A run has one pretraining seed and, "
    "in fine-tuning, one fine-tuning seed and one learning rate. All runs are included"
)
AVERAGE_DEVIATION = (
    "For an average over tasks, ± is the root mean square of the deviations of the tasks, as in the papers, "
    "and not the deviation of the average"
)
FAILED = (
    "(1 failed): one of the n runs failed: it predicted only one class, has MCC 0, or has constant output. "
    "As in the papers, mean and deviation include failed runs (summary.csv also has the mean without them). "
    "(1 without a number): a run in addition to the n runs diverged, and no mean includes it. For an "
    "average, n is the smallest number of runs of a task; the two other numbers count runs of all tasks"
)

DASH = (
    "A dash marks a missing number. In a published line, the paper prints no number. In our lines, there is "
    "no such evaluation, no complete average, or no run with a number"
)


def score_notes(
    layout: ScoreLayout, settings: PaperTablesSettings, lines: Sequence[Line], headings: Sequence[str]
) -> tuple[str, ...]:
    """Return the notes of a table of scores, as sentences without a full stop."""
    paper = PAPERS[settings.published.paper]
    ours = [line for line in lines if line.source != PUBLISHED]
    values = [value for line in ours for value in line.values if value is not None]
    below = "our line is below the printed line"
    notes = [f"Published: as printed in the {paper} paper; ours: experiment {settings.experiment}; {below}"]
    if any(value.deviation_text for value in values):
        notes.append(SAMPLE_DEVIATION)
        if any("average" in column.task or column.suite == "leaderboard" for column in layout.resolved_columns()):
            notes.append(AVERAGE_DEVIATION)
    if any(value.n for value in values):
        notes.append("n is the number of runs of a line; 5-9 means 5 to 9 runs, depending on the column")
    if any(value.failures_text for value in values):
        notes.append(FAILED)
    if layout.change_from:
        notes.append(
            "The first row shows scores. All other rows show the changes of their scores from the first row; "
            "there, ± is the standard deviation of the row's scores, not of the changes"
        )
    # The displayed digits determine the best number, so numbers that look equal are equally good.
    where = "the table" if layout.best_over == "table" else "its block"
    among = "rows" if layout.models == "columns" else "columns"
    if any(value is not None and value.best for line in lines for value in line.values):
        best = "the best number" if layout.bold == "best" else "all numbers within one standard deviation of the best"
        apart = "separately for printed numbers and our numbers; if several numbers are the best, all are bold"
        notes.append(f"Bold: {best} of {where} in each of the {among}, {apart}")
    different = {
        heading: differing(value.basis for line in ours if (value := line.values[place]) is not None)
        for place, heading in enumerate(headings)
    }
    notes += [note.removesuffix(".") for note in not_compared(different)]
    if any(value.seeds == 1 for value in values) and len(ours) > 1:
        notes.append(ONE_SEED.removesuffix("."))
    return (*notes, *common_notes(settings, lines, headings, layout.remark))


def common_notes(
    settings: PaperTablesSettings, lines: Sequence[Line], headings: Sequence[str], remark: str
) -> list[str]:
    """Return the notes that tables of all kinds have: `remark`, explanations of dashes and omitted models, the reason
    (if any) why none of our numbers is comparable with a printed number, and the remarks on printed numbers.
    """
    notes = [remark] if remark else []
    if any(value is None or value.mean is None for line in lines for value in line.values):
        notes.append(DASH)
    if rest := len(settings.models) - len(settings.shown):
        notes.append(f"{len(settings.shown)} of our models are shown; {rest:,} more are in summary.csv")
    if settings.caveat:
        notes.append(f"† None of our numbers is comparable with a printed number: {settings.caveat}")
    if reasons := remarks(lines, headings, comparable=False):
        title = "Remarks on printed numbers" if settings.caveat else "† Not comparable with our numbers"
        notes.append(f"{title}: {'; '.join(reasons)}")
    if about := remarks(lines, headings, comparable=True):
        notes.append(f"Remarks on printed numbers: {'; '.join(about)}")
    return notes


def remarks(lines: Iterable[Line], headings: Sequence[str], comparable: bool) -> list[str]:
    """Return each different remark on printed numbers, with the rows and columns of these numbers.

    If `comparable` is True, only remarks on printed numbers that are comparable with our numbers are returned, else
    only remarks on the other printed numbers.
    """
    places: dict[str, list[str]] = {}
    for line in lines:
        for heading, value in zip(headings, line.values, strict=True):
            if value is None or not value.note or value.comparable != comparable:
                continue
            # The remarks of many comparable numbers agree only in part. Split each remark at semicolons, so that the
            # common part is printed once.
            for remark in [value.note] if not comparable else value.note.split("; "):
                places.setdefault(remark, []).append(f"{line.label}, {heading}")
    return [f"{note} ({_named(where)})" for note, where in places.items()]


def _named(places: list[str]) -> str:
    distinct = list(dict.fromkeys(places))
    return "; ".join(distinct) if len(distinct) <= 3 else f"{len(distinct)} numbers"
