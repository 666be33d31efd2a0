"""Rows of `measurements.parquet` for reading times. This module imports no code that computes with a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hatchery.artifacts.records import Record
from hatchery.evaluation.basis import basis, digest_of, shortened
from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured

if TYPE_CHECKING:
    import polars as pl

SUITE = "reading_times"
PER_WORD, LOG_LIKELIHOOD = "gain_millinats_per_word", "gain_log_likelihood"
GAINS = (PER_WORD, LOG_LIKELIHOOD)
PERPLEXITY_OF_WORDS = "perplexity_of_words"
MILLINATS = 1000
OF_MODEL = ("scoring", "name", "stage", "stage_version")
"""Settings that do not enter the digest of the evaluation rules. The scoring method is a separate part of the
comparison basis, and the other settings do not affect the scores.
"""


def item_words(words: "pl.DataFrame") -> dict[str, float]:
    """Return surprisals in nats by `item:position`, the keys that BabyLM's prediction files use for the MECO data.

    `words` are the rows of `words.parquet`.
    """
    rows = words.drop_nulls("surprisal_nats").select("item", "position", "surprisal_nats")
    found: dict[str, float] = {}
    for item, position, value in rows.iter_rows():
        found.setdefault(f"{item}:{int(position) if position.is_integer() else position}", value)
    return found


@dataclass(frozen=True)
class _Gain(Record):
    response: str
    rows: int
    gain_nats: float
    gain_deviation_nats: float | None


def gain_rows(evaluated: Evaluated) -> list[TidyRow]:
    """Return one row with the perplexity of the texts' words, and two rows for each response: the total gain in
    log-likelihood over the regression without the model's predictors, and the mean gain per row of the regression.

    The standard deviation of a gain is computed over participants, or over items if the table has no participants.
    """
    manifest, name = evaluated.manifest, evaluated.name
    rules = digest_of(sorted((key, str(value)) for key, value in manifest.settings.items() if key not in OF_MODEL))

    def about(items: int) -> str:
        text, scoring = shortened(manifest.inputs.get("source")), manifest.measures["scoring"]
        return basis(text=text, items=items, scoring=scoring, rules=rules)

    found = []
    scores = evaluated.records("scores.csv", _Gain, ("response",))
    for row in scores:
        task = name if len(scores) == 1 else f"{name}/{row.response}"
        for metric, factor in ((PER_WORD, MILLINATS / row.rows), (LOG_LIKELIHOOD, 1)):
            found.append(
                measured(
                    *(SUITE, task, "task", metric, factor * row.gain_nats),
                    items=row.rows,
                    blind_guess=0.0,
                    primary=metric == PER_WORD,
                    sampling_deviation=row.gain_deviation_nats and factor * row.gain_deviation_nats,
                    basis=about(row.rows),
                )
            )
    words = manifest.measures["scored_words"]
    perplexity = manifest.measures["perplexity_of_words"]
    own = measured(SUITE, name, "task", PERPLEXITY_OF_WORDS, perplexity, items=words, primary=False, basis=about(words))
    return [*found, own]
