"""The numbers of a summary as tables of scores, which summary.md, summary.txt and the page draw each in its own way."""

from collections.abc import Callable, Mapping, Sequence

from hatchery.analysis.scores import Measure, Scores
from hatchery.analysis.summary_rows import SummaryRow
from hatchery.rendering.escaping import readable
from hatchery.rendering.table import Content
from hatchery.views.score_table import Block, Line, Score, ScoreTable, score_of

BLIND_GUESS = "blind guess"
"""What tables call what a guess has that does not see its items."""
# Numbers side by side in one table, and how many models are its rows instead of columns.
SIDE_BY_SIDE, ROWS_FROM = 6, 5
COMPARED = ("model", "task", "metric", "ours", "published", "difference", "verdict", "source", "note")
"""The columns of a table of numbers beside published ones."""


def table_of(
    scores: Scores, measures: Sequence[Measure], models: Sequence[str], caption: str = "", best: bool = False
) -> ScoreTable:
    """Models as lines and measures as columns; with `best`, the best numbers of every column are marked."""
    marked = [scores.best(measure) if best else set() for measure in measures]
    lines = []
    for model in models:
        rows = [(scores.of(measure, model), model in found) for measure, found in zip(measures, marked, strict=True)]
        values = tuple(None if row is None else score_of(row, is_best) for row, is_best in rows)
        lines.append(Line(scores.label(model), "", values, model))
    return ScoreTable(caption, "model", tuple(measure.label for measure in measures), (Block("", tuple(lines)),))


def blind_guesses(scores: Scores, measures: Sequence[Measure], joined: Callable[[list[str]], str]) -> tuple[Line, ...]:
    """What blind guesses have, as a line; none where there is none. `joined` makes one text of those of a measure."""
    guesses = [joined(scores.blind_guesses(measure)) for measure in measures]
    line = Line(BLIND_GUESS, "", tuple(Score(None, words=guess or "-") for guess in guesses))
    return (line,) if any(guesses) else ()


def compared_cells(
    scores: Scores,
    row: SummaryRow,
    remarks: Mapping[tuple[str, str, str, str], str],
    ours: Content,
    decimals: int | None,
) -> list[Content]:
    """A number beside the published one; `remarks` are those of the published table, `decimals` of the published."""
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
    """How many rows have which verdict, such as `3 within, 1 above`; empty without published values."""
    return ", ".join(f"{count} {verdict}" for verdict, count in scores.verdicts().items())
