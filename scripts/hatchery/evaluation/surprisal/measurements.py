"""Rows of `measurements.parquet` for surprisals of words. This module imports no code that computes with a model."""

from collections.abc import Iterable

import polars as pl

from hatchery.evaluation.basis import basis, shortened
from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured
from hatchery.sanitize import plain_name

WORDS_FILE, CSV_FILE = "surprisal.parquet", "surprisal.csv"
PLACES = {"file": pl.String, "line": pl.UInt32}
OURS = (
    *("experiment", "model", "run", "seed", "texts", *PLACES),
    *("sentence", "position", "word", "surprisal", "tokens", "unknown", "in_bytes"),
)
"""Columns of surprisal tables. If a column of a user's table has one of these names, it is renamed with the prefix OWN.
"""
OWN = "own_"
MOST_DRAWN = 40
"""Largest number of words of a text that a figure shows."""
SUITE = "surprisal"
WORD_METRIC, MEAN_METRIC = "surprisal_bits", "bits_per_word"


def own_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return a mapping from the columns of a user's table to the names of these columns in surprisal tables. All names
    are distinct.
    """
    found: dict[str, str] = {}
    for column in columns:
        name = column if column and column not in OURS else f"{OWN}{column or 'rows'}"
        while name in found.values():
            name = f"{OWN}{name}"
        found[column] = name
    return found


def surprisal_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return a row for the mean bits per word, and a row for each word whose surprisal a figure shows. These are the
    first MOST_DRAWN words of one text, which the setting `drawn` chooses. Words without a surprisal are omitted.
    """
    manifest, name = evaluated.manifest, evaluated.name
    of_ours = ["sentence", "position", "word", "surprisal"]
    words = pl.read_parquet(manifest.file(WORDS_FILE), columns=of_ours).drop_nulls("surprisal")
    bits = words["surprisal"].to_numpy()
    mean = measured(
        *(SUITE, name, "task", MEAN_METRIC, float(bits.mean())),
        basis=basis_of_words(evaluated, len(bits)),
        items=len(bits),
        sampling_deviation=float(bits.std(ddof=1) / len(bits) ** 0.5) if len(bits) > 1 else None,
    )
    drawn = words.filter(pl.col("sentence") == manifest.settings["drawn"]).head(MOST_DRAWN)
    return [
        mean,
        *(
            measured(
                *(SUITE, word_task(name, position, word), "word", WORD_METRIC, value),
                basis=basis_of_words(evaluated, 1),
            )
            for position, word, value in drawn.select("position", "word", "surprisal").iter_rows()
        ),
    ]


def basis_of_words(evaluated: Evaluated, items: int) -> str:
    """Return the comparison basis of surprisals, a text that must be equal for two results to be compared. The text
    contains the digest of the source of the texts, the number of words (`items`), and the scoring method.
    """
    manifest = evaluated.manifest
    way = manifest.measures.get("scoring") or manifest.measures.get("architecture")
    return basis(text=shortened(manifest.inputs.get("source")), items=items, scoring=way)


def word_task(name: str, position: int, word: str) -> str:
    """Return the task name that a word of the shown text has in `measurements.parquet`. It consists of the name of the
    texts, the word's position and the word.
    """
    return f"{name}/{position:02d}/{plain_name(word)}"
