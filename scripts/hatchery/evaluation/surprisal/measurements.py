"""The surprisals of words in the tidy table, where nothing that computes with a model need be installed."""

import polars as pl

from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured
from hatchery.sanitize import plain_name

WORDS_FILE = "surprisal.parquet"
MOST_DRAWN = 40
"""Words of a text that a figure has room for."""
SUITE = "surprisal"
WORD_METRIC, MEAN_METRIC = "surprisal_bits", "bits_per_word"


def surprisal_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Bits per word of all texts, and those of every word of the text that is drawn."""
    manifest, name = evaluated.manifest, evaluated.name
    words = pl.read_parquet(manifest.file(WORDS_FILE)).drop_nulls("surprisal")
    bits = words["surprisal"].to_numpy()
    mean = measured(
        *(SUITE, name, "task", MEAN_METRIC, float(bits.mean())),
        items=len(bits),
        sampling_deviation=float(bits.std(ddof=1) / len(bits) ** 0.5) if len(bits) > 1 else None,
    )
    drawn = words.filter(pl.col("sentence") == manifest.settings["drawn"]).head(MOST_DRAWN)
    return [
        mean,
        *(
            measured(SUITE, word_task(name, position, word), "word", WORD_METRIC, value)
            for position, word, value in drawn.select("position", "word", "surprisal").iter_rows()
        ),
    ]


def word_task(name: str, position: int, word: str) -> str:
    """What the tidy table calls a word of a text that is drawn."""
    return f"{name}/{position:02d}/{plain_name(word)}"
