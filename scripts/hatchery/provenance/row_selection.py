"""Rows of a summary, found by what a person knows of them; a word that does not occur gets its nearest match.

Apart from `summary_rows`, so that the page of provenance needs nothing of the configuration.
"""

from collections.abc import Mapping, Sequence

from hatchery.analysis.summary_rows import SummaryRow
from hatchery.errors import EvaluationError
from hatchery.settings.problems import offered


def select(
    rows: Sequence[SummaryRow], wanted: Mapping[str, str | None], number: int | None, where: str
) -> list[SummaryRow]:
    """The rows that have all `wanted` values (None leaves a column open) and, if given, this number; at least one.

    Raises EvaluationError with the nearest match when a value does not occur, and when no row has all of them.
    """
    if number is not None:
        if not 1 <= number <= len(rows):
            raise EvaluationError(f"{where}: there is no row {number}; expected 1 to {len(rows)}")
        rows = [rows[number - 1]]
    chosen = {column: value for column, value in wanted.items() if value is not None}
    matching = list(rows)
    for column, value in chosen.items():
        known = sorted({getattr(row, column) for row in rows})
        if value not in known:
            raise EvaluationError(f"{where}: {column}: got {value!r}, no such row{offered(value, known)}")
        narrowed = [row for row in matching if getattr(row, column) == value]
        if not narrowed:
            there = ", ".join(sorted({getattr(row, column) for row in matching}))
            raise EvaluationError(f"{where}: {column}: got {value!r}, but the rows so chosen have: {there}")
        matching = narrowed
    return matching
