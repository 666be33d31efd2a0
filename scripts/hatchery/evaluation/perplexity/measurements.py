"""Perplexity evaluations as rows of the tidy tables. Quantities without an upper bound keep their own unit."""

import math

from hatchery.artifacts.manifests import Manifest
from hatchery.artifacts.records import read_records
from hatchery.evaluation.evaluation import Evaluated, TidyRow, measured
from hatchery.evaluation.perplexity.rows import (
    BITS_PER_BYTE,
    FREQUENCY_FILE,
    PERPLEXITY_FILE,
    WORDS_FILE,
    FrequencyRow,
    SplitScore,
    WordScore,
)
from hatchery.units import bits_per_byte

PERPLEXITY_SUITE = "perplexity"


def perplexity_rows(evaluated: Evaluated) -> list[TidyRow]:
    """The metrics of every held-out split, those of its words behind them, from `perplexity.csv` and `words.csv`.

    A perplexity beyond float64 is None and failed; so is nothing else here. Bits per byte need the number of bytes that
    the predicted tokens represent, so labels that are no text have none. Where it was asked for, also the
    log-probability of tokens by their frequency: bins and slopes.
    """
    manifest, found = evaluated.manifest, list[TidyRow]()
    words: dict[str, WordScore] = {}
    if manifest.listed(WORDS_FILE):
        words = {row.split: row for row in read_records(manifest.file(WORDS_FILE), WordScore, ("split",), True)}
    for row in read_records(manifest.file(PERPLEXITY_FILE), SplitScore, ("split",)):
        unigram = evaluated.unigram_loss(row.split)
        values = row.values() | (words[row.split].values() if row.split in words else {})
        per_byte = evaluated.tokens_per_byte(row.split)
        if row.split in words and (n_bytes := evaluated.n_bytes(row.split)):
            # A score per word is there where every token was asked for.
            per_byte = row.labelled_tokens / n_bytes
        if per_byte is not None:
            values[BITS_PER_BYTE] = bits_per_byte(row.loss_nats, per_byte)
        for metric, number in values.items():
            value = None if math.isinf(number) else number
            found.append(
                measured(
                    *(PERPLEXITY_SUITE, row.split, "split", metric, value),
                    failed="infinite" if value is None else "",
                    items=row.labelled_tokens,
                    blind_guess=unigram_guess(metric, unigram, per_byte),
                )
            )
    return found + _of_frequency(manifest)


def unigram_guess(metric: str, loss: float | None, per_byte: float | None = None) -> float | None:
    """What the unigram distribution has of a metric, if it has loss nats per token and text so many tokens per byte."""
    known = {} if loss is None else {"loss_nats": loss, "perplexity": math.exp(loss)}
    if loss is not None and per_byte is not None:
        known[BITS_PER_BYTE] = bits_per_byte(loss, per_byte)
    return known.get(metric)


def _of_frequency(manifest: Manifest) -> list[TidyRow]:
    if not manifest.listed(FREQUENCY_FILE):
        return []
    return [
        measured(
            *(PERPLEXITY_SUITE, row.task, "split" if row.lowest is None else "bin", row.metric, row.value),
            sampling_deviation=row.standard_error,
            items=row.tokens,
        )
        for row in read_records(manifest.file(FREQUENCY_FILE), FrequencyRow, ("split", "lowest", "metric"))
    ]
