"""Matrices of almost stochastic order: ELC-BERT Tables 11 and 12.

Each row has three lines: the printed values, our values with a confidence that is corrected for the whole matrix, and
our values computed with the method of the package that ELC-BERT used. Our models that replicate a published row come
first, then our other models.

Almost stochastic order compares single runs, so it is computed from `measurements.parquet`, not from the summary. A run
is identified by its seeds and the rank of its learning rate. The score of a run is the mean over the tasks in the
suite's published average.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from hatchery.analysis.aggregates import by_run, mean_and_deviation
from hatchery.analysis.comparability import ONE_SEED
from hatchery.analysis.published_values import OVER
from hatchery.analysis.read_tables import read_measurements
from hatchery.analysis.settings import labels_of
from hatchery.analysis.stochastic_order import THRESHOLD, OrderMatrix, order_matrix
from hatchery.analysis.task_averages import PUBLISHED_AVERAGES
from hatchery.errors import ConfigError, EvaluationError
from hatchery.settings.base import ReadingName
from hatchery.views.paper_tables.layout import OrderLayout
from hatchery.views.paper_tables.printed import Entry, PrintedTable, common_notes, entry_blocks
from hatchery.views.paper_tables.settings import PaperTablesSettings
from hatchery.views.score_table import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Score

READINGS: dict[ReadingName, str] = {"corrected": OURS, "as_published": f"{OURS}, computed as published"}


def order_table(
    number: str,
    layout: OrderLayout,
    settings: PaperTablesSettings,
    printed: PrintedTable,
    scores: Mapping[str, Sequence[float]],
    left_out: Mapping[str, str],
) -> PaperTable:
    """Return the matrix of the almost stochastic order of each pair of models: the printed values and, if `scores` has
    at least two models, our values.

    `scores` maps our models to the scores of their runs. `left_out` maps each of our models that cannot be compared to
    the reason. Raises ConfigError if `layout` and the printed table have different cells.
    """
    compared = scores if len(scores) > 1 else {}
    seeds = Counter(run.model for run in settings.runs)
    block = entry_blocks((layout.block,), settings, compared)[0]
    order = settings.order
    matrices = {
        reading: order_matrix(
            compared, confidence=order.confidence, draws=order.draws, seed=order.seed, reading=reading
        )
        for reading in READINGS
        if compared
    }
    places = [(entry, model) for entry in block.entries for model in entry.models or ("",)]
    digits = Digits(layout.decimals, layout.decimals)
    lines = []
    for entry in block.entries:
        if entry.row:
            values = [_printed(layout, printed, entry, column, digits) for column in _firsts(places)]
            lines.append(Line(entry.heading, PUBLISHED, tuple(values)))
        for model in entry.models:
            for reading, matrix in matrices.items():
                cells = tuple(_ours(matrix, model, other, digits, seeds) for _, other in places)
                lines.append(Line(entry.heading, READINGS[reading], cells, model))
    printed.check_complete([(layout.block.track, row.row) for row in layout.block.rows if row.printed])
    labels = labels_of(settings.runs)
    headings = tuple(
        f"{entry.heading} (ours: {labels.get(model, model)})" if len(entry.models) > 1 else entry.heading
        for entry, model in places
    )
    named = "; ".join(
        f"{entry.heading} is {labels.get(model, model)}"
        for entry, model in places
        if labels.get(model, model) not in ("", entry.heading)
    )
    notes = _notes(layout, settings, matrices, left_out)
    notes += [ONE_SEED.removesuffix(".")] if any(seeds[model] < 2 for model in compared) else []
    notes += [f"Models of ours: {named}"] if named else []
    notes += common_notes(settings, lines, headings, layout.remark)
    blocks, paper = (Block(block.heading, tuple(lines)),), settings.published.paper
    return PaperTable(
        layout.caption, "row better than column", headings, blocks, tuple(notes), labels, paper=paper, number=number
    )


def _firsts(places: Sequence[tuple[Entry, str]]) -> list[str]:
    """Return the name of the published row for each column of the table. If an earlier column has the same published
    row, return an empty text for the later column.
    """
    seen: set[str] = set()
    rows = []
    for entry, _ in places:
        rows.append("" if entry.row in seen else entry.row)
        seen.add(entry.row)
    return rows


def _printed(layout: OrderLayout, printed: PrintedTable, row: Entry, column: str, digits: Digits) -> Score | None:
    if not column:
        return None
    place = (layout.block.track, row.row, layout.suite, layout.average, f"{OVER}{column}")
    value = printed.value(place, digits)
    return None if value is None or value.mean is None else _judged(value, value.mean)


def _ours(matrix: OrderMatrix, row: str, column: str, digits: Digits, seeds: Mapping[str, int]) -> Score | None:
    if not column or row == column:
        return None
    epsilon = matrix.cell(row, column)
    runs = matrix.runs[matrix.names.index(row)]
    judged = _judged(Score(mean=epsilon, digits=digits, n=runs), epsilon)
    # Runs of one pretraining seed do not show the variance over pretrainings. If either model has only one seed, never
    # mark a model as better.
    return replace(judged, best=judged.best and min(seeds[row], seeds[column]) > 1)


def _judged(value: Score, epsilon: float) -> Score:
    return replace(value, deviation=None, best=bool(np.less(epsilon, THRESHOLD)))


def _notes(
    layout: OrderLayout,
    settings: PaperTablesSettings,
    matrices: Mapping[ReadingName, OrderMatrix],
    left_out: Mapping[str, str],
) -> list[str]:
    notes = [
        "epsilon_min of almost stochastic order: at 0, the row dominates the column; at 1, there is no "
        f"evidence of dominance. Bold values are below {THRESHOLD:g}: the row is better than the column",
        "The compared scores are the means over the tasks of each run. Runs that predict one class for all "
        "rows are included. n is the number of runs of the row",
    ]
    for reading, matrix in matrices.items():
        how = (
            f"corrected by Bonferroni over {matrix.comparisons} comparisons"
            if reading == "corrected"
            else f"increased for {matrix.comparisons} pairs as in the paper's package"
        )
        notes.append(
            f"{READINGS[reading].capitalize()}: confidence {matrix.confidence:g} for the whole matrix,"
            f" {matrix.cell_confidence:.4f} for a cell ({how}); {settings.order.draws} bootstrap draws,"
            f" seed {settings.order.seed}"
        )
    notes += [f"Left out: {reason}" for reason in left_out.values()]
    return notes


def read_runs(settings: PaperTablesSettings, measurements: Path) -> pl.DataFrame:
    """Return the measurements of the models that the tables show: only the first metric of each fine-tuned task.

    Raises ManifestError for an altered table.
    """
    shown = set(settings.shown)
    found = read_measurements(measurements, [run for run in settings.runs if run.model in shown], kind="finetuning")
    return found.filter("primary", "main")


def tasks_of_average(suite: str, average: str) -> tuple[str, ...]:
    """Return the tasks over which a paper computes the average `average` of the suite `suite`.

    Raises ConfigError for an unknown average, or an average over several metrics of a task.
    """
    members = PUBLISHED_AVERAGES.get(suite, {}).get(average, ())
    tasks = tuple(task for member in members for task, metric in member if len(member) == 1 and not metric)
    if not tasks or len(tasks) < len(members):
        raise ConfigError(f"{suite} {average}: expected a published average over the first metric of each task")
    return tasks


def lists_of_models(
    runs: pl.DataFrame, settings: PaperTablesSettings, tasks: Sequence[str]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return two mappings with models as keys. The values of the first mapping are the scores of the model's runs
    (means over `tasks`). The second mapping contains the models that cannot be compared, and its values are the
    reasons.

    Models without any run on the tasks are in neither mapping.
    """
    lists: dict[str, list[float]] = {}
    left_out: dict[str, str] = {}
    labels = labels_of(settings.runs)
    named = runs.with_columns(pl.col("task").map_elements(settings.papers_task, pl.String))
    for model in settings.shown:
        label = labels.get(model, model)
        own = named.filter(pl.col("model") == model, pl.col("task").is_in(tasks))
        if own.is_empty():
            continue
        if missing := sorted(set(tasks).difference(own["task"])):
            left_out[model] = f"{label} was not run on {', '.join(missing)}"
            continue
        try:
            found = run_scores(own, tasks)
        except EvaluationError as error:
            left_out[model] = f"{label}: {error}"
            continue
        if len(found) < 2:
            left_out[model] = f"{label} has a single run"
        else:
            lists[model] = found
    return lists, left_out


def run_scores(runs: pl.DataFrame, tasks: Sequence[str]) -> list[float]:
    """Return one mean over `tasks` per run of a model; runs in which a task has no value are left out. `runs` are the
    measurements of the model's runs.

    ELC-BERT, Appendix E, does not state the compared scores. Averaging the tasks within each run reproduces the pattern
    of ELC-BERT's Tables 11 and 12; pooling all scores does not (docs/papers/elc-bert.md, "Significance"). Almost
    stochastic order compares whole distributions, so runs that predict one class for all rows are included. Raises
    EvaluationError if a run has no row or two rows for a task, or if no run has a value for every task.
    """
    scores = []
    for (seed, tuned, rate), rows in by_run(runs.sort("seed", "finetuning_seed", "learning_rate", "task")):
        run, counts = f"seed {seed}, {tuned or 0} at learning rate {rate} of the sweep", Counter(rows["task"])
        if missing := sorted(set(tasks) - counts.keys()):
            raise EvaluationError(f"the run of {run} has no score for {', '.join(missing)}")
        if twice := sorted(task for task, count in counts.items() if count > 1):
            raise EvaluationError(f"the run of {run} has two scores for {', '.join(twice)}")
        # `mean_and_deviation` adds without rounding errors. Otherwise, almost stochastic order would count a rounding
        # error between equal averages as dominance.
        mean, _ = mean_and_deviation(rows["value"].drop_nulls().to_list())
        scores += [] if rows["value"].has_nulls() or mean is None else [mean]
    if not scores:
        raise EvaluationError("got no run with a score for every task, expected at least one")
    return scores
