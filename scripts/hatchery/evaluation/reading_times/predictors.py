"""Build the data frame of the regressions: select the included words, add the predictors of previous words, and scale
the predictors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from hatchery.errors import EvaluationError
from hatchery.evaluation.reading_times.settings import LENGTH, ZIPF, ReadingTableSettings
from hatchery.evaluation.reading_times.table import ReadTable, zipf

PLACE = ["item", "position"]


def column_of(name: str, before: int) -> str:
    """Return the column name of a predictor, evaluated at the word `before` words earlier: `surprisal` for 0,
    `surprisal_1p` for 1.
    """
    return f"{name}_{before}p" if before else name


def columns_of(names: Iterable[tuple[str, int]]) -> list[str]:
    """Return the column names of predictors, for the word itself and each previous word. `names` contains each
    predictor's name and number of previous words.
    """
    return [column_of(name, before) for name, most in names for before in range(most + 1)]


def spilled_predictors(settings: ReadingTableSettings) -> dict[str, int]:
    """Return, by name of predictor, the number of previous words at which the predictor is also evaluated; the model's
    predictors come first.
    """
    found: dict[str, int] = dict.fromkeys(settings.of_model, settings.spillover)
    return found | settings.predictors


def drop_sentence_ends(words: pl.DataFrame) -> pl.DataFrame:
    """Return the words without the first and the last word of each sentence.

    Those words of an item that have no sentence number form one sentence.
    """
    own = pl.col("position")
    ends = pl.struct("item", "sentence")
    return words.filter(own != own.min().over(ends), own != own.max().over(ends))


def regression_frame(table: ReadTable, words: pl.DataFrame, settings: ReadingTableSettings) -> pl.DataFrame:
    """Return a row for each reading time of an included word that has enough previous words, in the order of the rows
    of `table`.

    The columns are `item`, `position`, `participant` (if the table has participants), the responses, the predictors,
    and the predictors of previous words (`column_of`). Predictors are not scaled. Responses below `lowest` or above
    `highest` are null; all other responses are logarithms if `log_response` is set. Null or NaN is a missing value.
    Raises EvaluationError for a response without a logarithm.
    """
    rows = table.frame().with_row_index("row")
    values = _values_of_words(words, rows, table, settings)
    kept = drop_sentence_ends(values) if settings.drop_sentence_ends else values
    spilled = spilled_predictors(settings)
    # A predictor that is a column of the table may differ between the rows of a word, and is already in `rows`. All
    # other predictors are joined by word.
    missing = [name for name in spilled if name not in rows.columns]
    frame = rows.join(kept.select(*PLACE, *missing), on=PLACE, how="inner")
    looked_up = kept if settings.spillover_from == "kept_words" else values
    for before in range(1, max(spilled.values()) + 1):
        own = {name: column_of(name, before) for name, most in spilled.items() if before <= most}
        previous = looked_up.select(
            "item", pl.col("position") + before, *(pl.col(name).alias(new) for name, new in own.items())
        )
        frame = frame.join(previous, on=PLACE, how="inner")
    readers = ["participant"] if settings.participant else []
    columns = [*PLACE, *readers, *settings.responses, *columns_of(spilled.items())]
    # The column of positions may also be a predictor. `dict.fromkeys` removes this duplicate name.
    found = frame.sort("row").select(list(dict.fromkeys(columns)))
    return found.with_columns(_response(found, name, settings) for name in settings.responses)


def _values_of_words(
    words: pl.DataFrame, rows: pl.DataFrame, table: ReadTable, settings: ReadingTableSettings
) -> pl.DataFrame:
    """Return the words of the texts with all predictors. If a predictor is a column of the reading-time table, its
    value is read from the first row of each word.
    """
    known = words.with_columns(pl.col("word").str.len_chars().cast(pl.Float64).alias(LENGTH))
    if table.frequencies is not None:
        known = known.with_columns(pl.Series(ZIPF, zipf(words["word"], table.frequencies), pl.Float64))
    own = [name for name in settings.predictors if name in rows.columns and name not in PLACE]
    first = rows.unique(PLACE, keep="first", maintain_order=True).select(*PLACE, *own)
    return known.drop(name for name in own if name in known.columns).join(first, on=PLACE, how="left")


def _response(frame: pl.DataFrame, name: str, settings: ReadingTableSettings) -> pl.Expr:
    value = pl.col(name).fill_nan(None)
    if settings.lowest is not None:
        value = pl.when(value >= settings.lowest).then(value)
    if settings.highest is not None:
        value = pl.when(value <= settings.highest).then(value)
    if not settings.log_response:
        return value.alias(name)
    least = frame.select(value.min()).item()
    if least is not None and least <= 0:
        raise EvaluationError(
            f"log_response: {name}: the smallest response is {least:g}, expected positive numbers; `lowest` excludes "
            "smaller responses"
        )
    return value.log().alias(name)


@dataclass(frozen=True)
class Regression:
    """Rows without missing values: `outcome` float64 [N], scaled `predictors` [N] by name, and the group of each row in
    `groups` [N].

    `clusters` are the names of the groups: participants, or items for a table without participants.
    """

    outcome: np.ndarray
    predictors: Mapping[str, np.ndarray]
    groups: np.ndarray
    clusters: list[str]
    constant: list[str]
    """Names of the omitted predictors: predictors with the same value in all rows."""


def regression_of(frame: pl.DataFrame, response: str, settings: ReadingTableSettings) -> Regression:
    """Return the data of one response's regression. Predictors are first standardised over all rows of `frame`; then
    rows with a missing value are omitted.

    A predictor's mean and standard deviation (n - 1) are computed over its non-missing values. Raises EvaluationError
    if there are too few rows for the coefficients, or if all responses are equal.
    """
    spilled = spilled_predictors(settings)
    names = columns_of(spilled.items())
    numbers = {name: pl.col(name).fill_nan(None) for name in names}
    spread = frame.select(value.std(ddof=1).alias(name) for name, value in numbers.items()).row(0, named=True)
    means = frame.select(value.mean().alias(name) for name, value in numbers.items()).row(0, named=True)
    constant = [name for name in names if not spread[name] or spread[name] <= 1e-12 * abs(means[name] or 0.0)]
    cluster = "participant" if settings.participant else "item"
    whole = frame.select(
        cluster, response, *((value - means[name]) / (spread[name] or 1.0) for name, value in numbers.items())
    ).drop_nulls()
    groups, clusters = _numbered(whole[cluster])
    outcome = whole[response].to_numpy()
    least = len(names) + 2
    if len(outcome) < least or np.ptp(outcome) == 0:
        raise EvaluationError(
            f"{response}: got {len(outcome):,} rows with a response and all predictors ({', '.join(names)}), expected "
            f"at least {least}, with different responses"
        )
    used = {name: whole[name].to_numpy() for name in names if name not in constant}
    return Regression(outcome, used, groups, clusters, constant)


def _numbered(names: pl.Series) -> tuple[np.ndarray, list[str]]:
    """Return the index of each name among the distinct names, and the distinct names in the order of first
    occurrence."""
    distinct = names.unique(maintain_order=True).to_list()
    place = {name: number for number, name in enumerate(distinct)}
    return np.array([place[name] for name in names.to_list()], dtype=np.int64), distinct
