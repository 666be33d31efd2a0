"""The surprisals of words in the tidy table, where nothing that computes with a model need be installed."""

import polars as pl

from hatchery.evaluation.basis import basis, shortened
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
    """What surprisals of the same words share: the text, and what a model had seen when it was asked."""
    manifest = evaluated.manifest
    way = manifest.measures.get("scoring") or manifest.measures.get("architecture")
    return basis(text=shortened(manifest.inputs.get("source")), items=items, scoring=way)


def word_task(name: str, position: int, word: str) -> str:
    """What the tidy table calls a word of a text that is drawn."""
    return f"{name}/{position:02d}/{plain_name(word)}"
