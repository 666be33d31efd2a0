"""Score a model on a table of reading times: compare the likelihood of the times with and without the model's
surprisals as predictors.

The score of a response (a column of times) is a difference of two maximum log-likelihoods in nats, on the same rows.
The first regression has all predictors, including the predictors that the model computes: surprisals and, if set,
entropies. The second regression has only the other predictors. In `words.parquet`, each word of the texts has a row
with the model's surprisal and entropy.
"""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.minimal_pairs.scoring import scoring_name
from hatchery.evaluation.reading_times.mixed_models import Fit, fit_linear, fit_mixed
from hatchery.evaluation.reading_times.passages import Model, passage_words
from hatchery.evaluation.reading_times.predictors import (
    Regression,
    columns_of,
    regression_frame,
    regression_of,
)
from hatchery.evaluation.reading_times.settings import NamedReadingTable, ReadingTableSettings
from hatchery.evaluation.reading_times.table import ReadTable, read_table
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.scores import Scores
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.raw.registration import open_source

MOST_NATS = 700
"""Mean surprisal (nats) from which on the perplexity is None, because its exponential is near the limit of float64."""
WORDS_FILE, SCORES_FILE, COEFFICIENTS_FILE = "words.parquet", "scores.csv", "coefficients.csv"
WORDS = {
    "item": pl.String,
    "position": pl.Float64,
    "word": pl.String,
    "surprisal_nats": pl.Float64,
    "entropy_nats": pl.Float64,
    "tokens": pl.UInt32,
}
SCORES = {
    "response": pl.String,
    "rows": pl.Int64,
    "participants": pl.Int64,
    "log_likelihood": pl.Float64,
    "log_likelihood_without": pl.Float64,
    "gain_nats": pl.Float64,
    "gain_deviation_nats": pl.Float64,
}
COEFFICIENTS = {
    "response": pl.String,
    "regression": pl.String,
    "term": pl.String,
    "estimate": pl.Float64,
    "standard_error": pl.Float64,
    "random_deviation": pl.Float64,
}


def measure(settings: NamedReadingTable, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun) -> None:
    """Write a model's surprisals of words, its scores and the regression coefficients; see the stage
    `measure_reading_times`.
    """
    table = read_table(open_source(source), settings)
    device = prepare_device(runtime.device, runtime.threads)
    score(load_sentence_model(model, device, settings.scoring), table, settings, runtime).write(run)


def evaluate(request: Request) -> Answer:
    """Score a model on a table of reading times. Raises the errors of the stage `measure_reading_times`."""
    settings = request.built(NamedReadingTable, name=request.name)
    table = read_table(request.source(), settings)
    model = request.model.asked(request.device, settings.scoring)
    return Answer(score(model, table, settings, request.runtime), settings)


def score(model: Model, table: ReadTable, settings: ReadingTableSettings, runtime: EvaluationRuntime) -> Scores:
    """Score a model on a table of reading times.

    Raises ConfigError for a model that assigns no surprisals or does not fit the settings, and EvaluationError if a
    regression has too few rows.
    """
    words = passage_words(model, table.passages, settings, runtime.tokens_per_batch)
    scored, coefficients, facts = fit_responses(table, words, settings)
    for note in _notes(table, facts):
        print(f"note: {note}", file=sys.stderr, flush=True)
    named = words.rename({"surprisal": "surprisal_nats", "entropy": "entropy_nats"}).select(list(WORDS))
    whole = {
        "words": len(words),
        "items": len(table.passages),
        **_perplexity(words["surprisal"].drop_nulls().to_numpy()),
        "rows": len(table.columns["item"]),
        "architecture": model.architecture,
        "scoring": scoring_name(settings.scoring, model.architecture, model.predicted_before),
        **facts,
    }
    return Scores({WORDS_FILE: named, SCORES_FILE: scored, COEFFICIENTS_FILE: coefficients}, whole)


def fit_responses(
    table: ReadTable, words: pl.DataFrame, settings: ReadingTableSettings
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Return the rows of `scores.csv`, the rows of `coefficients.csv`, and facts for the manifest: the number of
    omitted rows by reason, and the names of constant predictors.

    Rows that the setting `drop_sentence_ends` omits are counted under the reason `without_previous_words`. `words`
    contains a row for each word of the texts: `item`, `position`, `word`, `sentence`, `surprisal`, `entropy`.
    """
    frame = regression_frame(table, words, settings)
    values = set(columns_of((name, settings.spillover) for name in settings.of_model))
    scored: list[list[Any]] = []
    coefficients: list[list[Any]] = []
    constant: dict[str, None] = {}
    for response in settings.responses:
        data = regression_of(frame, response, settings)
        constant |= dict.fromkeys(data.constant)
        without = [name for name in data.predictors if name not in values]
        fits = {"with": list(data.predictors), "without": without}
        fitted = {kind: fit(data, names, settings.random_effects) for kind, names in fits.items()}
        gain = fitted["with"].log_likelihood - fitted["without"].log_likelihood
        deviation = deviation_of_sum(fitted["with"].by_group - fitted["without"].by_group)
        readers = len(data.clusters) if settings.participant else None
        likelihoods = [one.log_likelihood for one in fitted.values()]
        scored.append([response, len(data.outcome), readers, *likelihoods, gain, deviation])
        for kind, names in fits.items():
            coefficients += _terms(response, kind, names, fitted[kind])
    facts = {
        "left_out": {**table.counts, "without_previous_words": len(table.columns["item"]) - len(frame)},
        "constant_predictors": list(constant),
    }
    return (
        pl.DataFrame(scored, schema=SCORES, orient="row"),
        pl.DataFrame(coefficients, schema=COEFFICIENTS, orient="row"),
        facts,
    )


def fit(data: Regression, names: list[str], random_effects: str) -> Fit:
    """Return the fitted regression of the outcome in `data` on the predictors `names`, with the setting
    `random_effects`.
    """
    columns = [data.predictors[name] for name in names]
    predictors = np.column_stack(columns) if columns else np.empty((len(data.outcome), 0))
    if random_effects == "none":
        return fit_linear(data.outcome, predictors, data.groups)
    return fit_mixed(data.outcome, predictors, data.groups, slopes=random_effects == "slopes")


def deviation_of_sum(parts: np.ndarray) -> float | None:
    """Return the standard deviation of the sum of `parts`. The parts are independent terms, one for each participant or
    item. Return None if there is only one part.
    """
    return float(parts.std(ddof=1) * len(parts) ** 0.5) if len(parts) > 1 else None


def _perplexity(nats: np.ndarray) -> dict[str, Any]:
    """Return the number of words with a surprisal, and their perplexity. The perplexity is None if the mean surprisal
    is MOST_NATS or more, or if no word has a surprisal.
    """
    mean = float(nats.mean()) if len(nats) else math.inf
    return {"scored_words": len(nats), "perplexity_of_words": math.exp(mean) if mean < MOST_NATS else None}


def _terms(response: str, kind: str, names: list[str], fitted: Fit) -> list[list[Any]]:
    deviations = [*fitted.random_deviations.tolist(), *[None] * (len(names) + 1)]
    rows = zip(["intercept", *names], fitted.coefficients.tolist(), fitted.errors.tolist(), deviations, strict=False)
    found: list[list[Any]] = [[response, kind, *row] for row in rows]
    return [*found, [response, kind, "residual", None, None, fitted.residual_deviation]]


def _notes(table: ReadTable, facts: Mapping[str, Any]) -> list[str]:
    found = []
    if others := table.counts.get("other_word"):
        found.append(f"{others:,} rows are omitted, because the text has another word at the position of the row")
    if missing := table.counts.get("without_word"):
        found.append(f"{missing:,} rows are omitted, because they have no word or no position")
    if constant := facts["constant_predictors"]:
        found.append(f"predictors that are equal in all rows are omitted: {', '.join(constant)}")
    return found
