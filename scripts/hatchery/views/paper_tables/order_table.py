"""Matrices of almost stochastic order: ELC-BERT Tables 11 and 12.

Every row has the printed line, ours with the confidence corrected for the whole matrix, and ours computed as the
package behind the paper does. The rows and columns of ours are the models that repeat a published row, then the others.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hatchery.analysis.published_values import OVER
from hatchery.analysis.settings import labels_of
from hatchery.analysis.stochastic_order import THRESHOLD, OrderMatrix, order_matrix
from hatchery.settings.base import ReadingName
from hatchery.views.paper_tables.grid import OURS, PUBLISHED, Block, Digits, Line, PaperTable, Value
from hatchery.views.paper_tables.layout import OrderLayout
from hatchery.views.paper_tables.notes import common_notes
from hatchery.views.paper_tables.printed import PrintedTable
from hatchery.views.paper_tables.settings import Entry, PaperTablesSettings, entry_blocks

READINGS: dict[ReadingName, str] = {"corrected": OURS, "as_published": f"{OURS}, computed as published"}


def order_table(
    number: str,
    layout: OrderLayout,
    settings: PaperTablesSettings,
    printed: PrintedTable,
    scores: Mapping[str, Sequence[float]],
    left_out: Mapping[str, str],
) -> PaperTable:
    """The matrix with all printed numbers, and ours for `scores` (one score per run) if there are two models or more.

    Raises ConfigError when layout and printed table do not fit.
    """
    compared = scores if len(scores) > 1 else {}
    blocks = entry_blocks((layout.block,), settings, compared)
    block = blocks[0]
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
                cells = tuple(_ours(matrix, model, other, digits) for _, other in places)
                lines.append(Line(entry.heading, READINGS[reading], cells, model))
    printed.check_complete([(layout.block.track, row.row) for row in layout.block.rows if row.printed])
    labels = labels_of(settings.runs)
    headings = tuple(_heading(entry, labels.get(model, model)) for entry, model in places)
    named = "; ".join(
        f"{entry.heading} is {labels.get(model, model)}"
        for entry, model in places
        if labels.get(model, model) not in ("", entry.heading)
    )
    notes = _notes(layout, settings, matrices, left_out)
    notes += [f"Models of ours: {named}"] if named else []
    notes += common_notes(settings, lines, headings, layout.remark)
    return PaperTable(
        settings.published.paper,
        number,
        layout.caption,
        "row better than column",
        headings,
        (Block(block.heading, tuple(lines)),),
        tuple(notes),
    )


def _firsts(places: Sequence[tuple[Entry, str]]) -> list[str]:
    """The published row of every column, once: empty where a further model of ours repeats it."""
    seen: set[str] = set()
    rows = []
    for entry, _ in places:
        rows.append("" if entry.row in seen else entry.row)
        seen.add(entry.row)
    return rows


def _printed(layout: OrderLayout, printed: PrintedTable, row: Entry, column: str, digits: Digits) -> Value | None:
    if not column:
        return None
    place = (layout.block.track, row.row, layout.suite, layout.average, f"{OVER}{column}")
    value = printed.value(place, digits)
    return None if value is None or value.mean is None else _judged(value, value.mean)


def _ours(matrix: OrderMatrix, row: str, column: str, digits: Digits) -> Value | None:
    if not column or row == column:
        return None
    epsilon = matrix.cell(row, column)
    runs = matrix.runs[matrix.names.index(row)]
    return _judged(Value(mean=epsilon, digits=digits, n=runs), epsilon)


def _judged(value: Value, epsilon: float) -> Value:
    return Value(
        mean=value.mean,
        digits=value.digits,
        n=value.n,
        comparable=value.comparable,
        note=value.note,
        bold=bool(np.less(epsilon, THRESHOLD)),
    )


def _heading(entry: Entry, model: str) -> str:
    return f"{entry.heading} (ours: {model})" if len(entry.models) > 1 else entry.heading


def _notes(
    layout: OrderLayout,
    settings: PaperTablesSettings,
    matrices: Mapping[ReadingName, OrderMatrix],
    left_out: Mapping[str, str],
) -> list[str]:
    notes = [
        "epsilon_min of almost stochastic order: 0 is dominance of the row over the column, 1 is no evidence; bold:"
        f" below {THRESHOLD:g}, the row is better",
        "Scores: one per run, the mean over the tasks of the average; runs of a constant answer are among them; n is"
        " the number of runs of the row",
    ]
    for reading, matrix in matrices.items():
        how = (
            f"corrected by Bonferroni over {matrix.comparisons} comparisons"
            if reading == "corrected"
            else f"raised for {matrix.comparisons} pairs as by the package behind the paper"
        )
        notes.append(
            f"{READINGS[reading].capitalize()}: confidence {matrix.confidence:g} for the whole matrix,"
            f" {matrix.cell_confidence:.4f} for a cell ({how}); {settings.order.draws} bootstrap draws,"
            f" seed {settings.order.seed}"
        )
    notes += [f"Left out: {reason}" for reason in left_out.values()]
    return notes
