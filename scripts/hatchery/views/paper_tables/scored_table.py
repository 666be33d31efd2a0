"""Tables of scores: ELC-BERT Tables 1 to 3 and 7 to 10, GPT-BERT Tables 1 and 3 to 8 (Tables 3 and 4 contain
hyperparameters), LTG-BERT Tables 2, 3 and 6 to 8.

The line with the printed scores of a model is followed by a line for each of our models that replicate this model, in
the same units and with the same digits. If a paper's table has models as columns, each task has a printed line and a
line with our score.

Our scores are read from `summary.parquet`, and our names of suites and tasks are replaced by the names in the
replicated paper. Two scores of the organisers of BabyLM 2023 have no row in the summary
(docs/papers/babylm-evaluation.md, "Leaderboard"): the mean over 17 files of BLiMP and supplement, and the weighted
total. This module adds a suite `leaderboard` with these two scores and the summary's averages of GLUE and MSGS.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hatchery.analysis.aggregates import Aggregate, average_of_tasks
from hatchery.analysis.published_values import MINUS
from hatchery.analysis.settings import labels_of
from hatchery.analysis.summary_rows import read_summary
from hatchery.analysis.task_averages import (
    AVERAGE,
    AVERAGE_METRIC,
    PARADIGMS_OF_PHENOMENON,
    SUPPLEMENT_FILES,
    dynabench_score,
)
from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.basis import differing
from hatchery.evaluation.minimal_pairs.measurements import ACCURACY
from hatchery.views.paper_tables.hyperparameters import SETTINGS, VALUE
from hatchery.views.paper_tables.layout import ColumnLayout, ScoreLayout
from hatchery.views.paper_tables.printed import Entry, EntryBlock, PrintedTable, entry_blocks, score_notes
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score, with_best

LEADERBOARD = "leaderboard"
LEADERBOARD_FILES = (
    *(("blimp_filtered", phenomenon) for phenomenon in PARADIGMS_OF_PHENOMENON),
    *(("supplement_filtered", file) for file in SUPPLEMENT_FILES),
)
Measure = tuple[str, str, str]
Scores = Mapping[str, Mapping[Measure, Aggregate]]
"""Scores by model, then by (suite, task, metric), with the names that the replicated paper gives to them."""


def scores_of_models(path: Path, settings: PaperTablesSettings) -> dict[str, dict[Measure, Aggregate]]:
    """Return, for each model of `settings`, a mapping from (suite, task, metric) to the score. Hyperparameters of the
    model are further entries of this mapping. A model without scores and hyperparameters has an empty mapping.

    Raises ManifestError for an altered file or a file that is not a summary. Raises EvaluationError, which names the
    file, for a summary of another experiment, and for a model that the settings do not list. Also raises
    EvaluationError if the names of two rows become equal when our names are replaced by the names in the replicated
    paper.
    """
    scores: dict[str, dict[Measure, Aggregate]] = {model: {} for model in settings.models}
    for row in read_summary(path):
        if row.experiment != settings.experiment or row.model not in scores:
            raise EvaluationError(
                f"{path}: got the model {row.model!r} of {row.experiment!r}, expected a model of"
                f" {settings.experiment!r}: {', '.join(scores)}"
            )
        measure = (settings.papers_suite(row.suite), settings.papers_task(row.task), row.metric)
        own = scores[row.model]
        if measure in own:
            raise EvaluationError(
                f"{path}: two rows are named {', '.join(measure)} after removal of the prefix {settings.prefix!r}"
            )
        counts = row.n, row.n_failed, row.mean_without_failed, row.n_without_number
        own[measure] = Aggregate(row.mean, row.std, *counts, seeds=row.seeds, basis=row.basis)
    for own in scores.values():
        own |= leaderboard_scores(own)
    for model, numbers in settings.hyperparameters.items():
        scores[model] |= {(SETTINGS, path, VALUE): Aggregate(number, None, 0) for path, number in numbers.items()}
    return scores


def leaderboard_scores(scores: Mapping[Measure, Aggregate]) -> dict[Measure, Aggregate]:
    """Return the columns of the leaderboard, computed from one model's scores; columns with missing inputs are omitted.

    There are four columns: BLiMP (mean over 17 files), GLUE (mean over eleven tasks), MSGS, and their total with the
    weights 0.5, 0.3 and 0.2. How the leaderboard computes MSGS is unpublished; here, MSGS is the mean over the six
    ambiguous tasks, as in the paper of ELC-BERT. The deviation of an average is the root mean square of the deviations
    of its parts. The total has no deviation.
    """
    found: dict[str, Aggregate] = {}
    files = [scores.get((suite, name, ACCURACY)) for suite, name in LEADERBOARD_FILES]
    known = [score for score in files if score is not None and score.mean is not None]
    if len(known) == len(files):
        found["blimp"] = average_of_tasks(known)
    for name, suite in (("glue", "babylm_glue"), ("msgs", "msgs")):
        if (average := scores.get((suite, AVERAGE, AVERAGE_METRIC))) is not None:
            found[name] = average
    averages = {name: score.mean for name, score in found.items() if score.mean is not None}
    if len(averages) == 3:
        total = average_of_tasks(list(found.values()))
        found[AVERAGE] = replace(total, mean=dynabench_score(averages), std=None)
    return {(LEADERBOARD, name, AVERAGE_METRIC): score for name, score in found.items()}


TRAINING_TIME = ("pretraining", "duration")
"""Suite and task of a model's training time. Tables contain only printed training times; our training times are
omitted.
"""


@dataclass(frozen=True)
class _Filler:
    """Makes the cells of one table, from printed numbers and from our scores."""

    layout: ScoreLayout
    columns: tuple[ColumnLayout, ...]
    printed: PrintedTable
    scores: Scores
    reference: str

    def digits(self, column: ColumnLayout, signed: bool = False) -> Digits:
        assert column.decimals is not None and column.deviation_decimals is not None and column.scale is not None
        return Digits(column.decimals, column.deviation_decimals, column.scale, signed)

    def published(self, track: str, entry: Entry) -> tuple[Score | None, ...]:
        changed = self.layout.change_from not in ("", entry.row)
        values = []
        for column in self.columns:
            metric = column.metric + (f"{MINUS}{self.layout.change_from}" if changed else "")
            place = (track, entry.row, column.suite, column.task, metric)
            reference = entry.row == self.layout.change_from
            digits = self.digits(column, changed)
            values.append(self.printed.value(place, digits, reference, column.lower_is_better))
        return tuple(values)

    def ours(self, entry: Entry, model: str) -> tuple[Score | None, ...]:
        changed = bool(self.layout.change_from) and model != self.reference
        return tuple(self._our_value(column, model, changed) for column in self.columns)

    def _our_value(self, column: ColumnLayout, model: str, changed: bool) -> Score | None:
        measure: Measure = (column.suite, column.task, column.metric)
        score = self.scores[model].get(measure)
        if score is None:
            return None
        mean = score.mean
        if changed:
            start = self.scores.get(self.reference, {}).get(measure)
            if start is None or start.mean is None or differing((score.basis, start.basis)):
                return None
            mean = None if mean is None else mean - start.mean
        return Score(
            mean=mean,
            deviation=score.std,
            digits=self.digits(column, changed),
            n=score.n,
            n_failed=score.n_failed,
            n_without_number=score.n_without_number,
            reference=bool(self.layout.change_from) and not changed,
            lower_is_better=column.lower_is_better,
            seeds=score.seeds,
            basis=score.basis,
        )


def score_table(
    number: str, layout: ScoreLayout, settings: PaperTablesSettings, printed: PrintedTable, scores: Scores
) -> PaperTable:
    """Return the table with all printed numbers and our scores.

    Raises ConfigError in three cases: a row of `layout` has no printed numbers, a printed number has no cell in
    `layout`, or the row `layout.change_from`, from which changes are computed, is not in the table.
    """
    columns = layout.resolved_columns()
    measures = {(column.suite, column.task, column.metric) for column in columns}
    present = [model for model, own in scores.items() if measures & own.keys()]
    blocks = entry_blocks(layout.blocks, settings, present)
    rows = [(block.track, row.row) for block in layout.blocks for row in block.rows if row.printed]
    if layout.change_from and layout.change_from not in {row for _, row in rows}:
        raise ConfigError(
            f"{printed.where}: change_from: got {layout.change_from!r}, expected a printed row of the table"
        )
    repeats = settings.published.rows
    reference = next((m for m in scores if layout.change_from and repeats.get(m) == layout.change_from), "")
    filler = _Filler(layout, columns, printed, scores, reference)
    grouped = [_lines(block, filler) for block in blocks]
    printed.check_complete(rows)
    within = layout.bold == "within_deviation"
    if layout.best_over == "block":
        grouped = [with_best(lines, within) for lines in grouped]
    else:
        marked = iter(with_best([line for lines in grouped for line in lines], within))
        grouped = [[next(marked) for _ in lines] for lines in grouped]
    headings = tuple(column.heading for column in columns)
    lines = [line for part in grouped for line in part]
    notes = score_notes(layout, settings, lines, headings)
    labels, paper = labels_of(settings.runs), settings.published.paper
    if layout.models == "rows":
        found = tuple(Block(block.heading, tuple(part)) for block, part in zip(blocks, grouped, strict=True))
        times = any((column.suite, column.task) == TRAINING_TIME for column in columns)
        return PaperTable(
            layout.caption, "model", headings, found, notes, labels, paper=paper, number=number, with_times=times
        )
    models, lines, named = _transposed(lines, headings, labels)
    notes = (*notes, f"Models of ours: {named}") if named else notes
    return PaperTable(
        layout.caption, "task", models, (Block("", tuple(lines)),), notes, labels, paper=paper, number=number
    )


def _lines(block: EntryBlock, filler: _Filler) -> list[Line]:
    lines = []
    for entry in block.entries:
        if entry.row:
            lines.append(Line(entry.heading, PUBLISHED, filler.published(block.track, entry)))
        lines += [Line(entry.heading, OURS, filler.ours(entry, model), model) for model in entry.models]
    return lines


def _transposed(
    lines: Sequence[Line], tasks: Sequence[str], labels: Mapping[str, str]
) -> tuple[tuple[str, ...], list[Line], str]:
    """Return headings and lines with models as columns, and a note that names our model in each printed column.

    The column of a published model shows the printed numbers and, on separate lines, the numbers of the first of our
    models that replicates it. Our other models have separate columns.
    """
    pairs: list[tuple[Line | None, Line | None]] = []
    for line in lines:
        if line.source == PUBLISHED:
            pairs.append((line, None))
        elif pairs and pairs[-1][0] is not None and pairs[-1][1] is None and pairs[-1][0].label == line.label:
            pairs[-1] = (pairs[-1][0], line)
        else:
            pairs.append((None, line))
    turned = []
    for index, task in enumerate(tasks):
        for side, source in enumerate((PUBLISHED, OURS)):
            models = [pair[side] for pair in pairs]
            turned.append(Line(task, source, tuple(None if model is None else model.values[index] for model in models)))
    named = "; ".join(
        f"{published.label} is {labels.get(ours.model, ours.model)}" for published, ours in pairs if published and ours
    )
    return tuple(_heading(*pair, labels) for pair in pairs), turned, named


def _heading(published: Line | None, ours: Line | None, labels: Mapping[str, str]) -> str:
    if published is not None:
        return published.label
    return "" if ours is None else f"ours: {labels.get(ours.model, ours.model)}"
