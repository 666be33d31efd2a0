"""Score one model on reading times: compute the surprisals of the words, and the fraction of the variance in the times
that these surprisals explain.

The result contains `words.parquet`, `scores.csv` and `predictions.json`. `words.parquet` has the rows of the data:
context, word, and the surprisals in nats of the word and of the previous word. `predictions.json` has the format of
BabyLM's evaluation server (docs/papers/babylm-2026.md, "Reading times").
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from hatchery.artifacts.manifests import StageRun
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.direct.request import Answer, Request
from hatchery.evaluation.minimal_pairs.sentence_model import TokenizedModel
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.scores import Scores
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.human_data import ReadWord, read_words
from hatchery.evaluation.surprisal.reading import reading_scores, reading_surprisals, surprisals_of
from hatchery.evaluation.surprisal.settings import ReadingSettings
from hatchery.raw.registration import open_source

SCORES_FILE = "scores.csv"


def measure(settings: ReadingSettings, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun) -> None:
    """Write the surprisals and scores of a model; see the stage `measure_reading`."""
    words = read_words(open_source(source), settings.files)
    device = prepare_device(runtime.device, runtime.threads)
    asked = load_sentence_model(model, device, settings.scoring, template=True)
    score(asked, words, settings, runtime).write(run)


def evaluate(request: Request) -> Answer:
    """Score a model on a table of reading times with BabyLM's columns. Raises the errors of the stage
    `measure_reading`."""
    settings = request.built(ReadingSettings)
    source = request.source()
    pattern = settings.files if source.names(settings.files) else "*"
    asked = request.model.asked(request.device, settings.scoring, template=True)
    return Answer(score(asked, read_words(source, pattern), settings, request.runtime), settings)


def score(
    model: TokenizedModel | BaselineModel,
    words: Sequence[ReadWord],
    settings: ReadingSettings,
    runtime: EvaluationRuntime,
) -> Scores:
    """Score a model on words with reading times. The caller must load an external model such that the model reads the
    special tokens of its tokenizer's template before a text.

    The tables are words.parquet and scores.csv. In scores.csv, gains in explained variance are fractions. Raises the
    errors of `surprisals_of`.
    """
    if settings.official:
        if isinstance(model, BaselineModel):
            model.gives_types = model.tokenizer.returns_types
        words = [replace(one, before=None) if one.before and one.before[0] == "None" else one for one in words]
    found, before = reading_surprisals(words, lambda pairs: surprisals_of(model, pairs, runtime.tokens_per_batch))
    gains = reading_scores(words, found, before)
    columns = {"context": [one.context for one in words], "word": [one.word for one in words]}
    rows = [
        {"id": index, "pred": pred, "prev_pred": previous}
        for index, (pred, previous) in enumerate(zip(found.tolist(), before.tolist(), strict=True))
    ]
    # NaN is not valid JSON, but the code of BabyLM's server expects missing surprisals as NaN.
    written = json.dumps({"reading": {"predictions": rows}})
    return Scores(
        {
            "words.parquet": pl.DataFrame({**columns, "surprisal_nats": found, "previous_surprisal_nats": before}),
            SCORES_FILE: pl.DataFrame(list(gains.items()), schema=["outcome", "gain"], orient="row"),
        },
        {"words": len(words), "architecture": model.architecture},
        {"predictions.json": f"{written}\n"},
    )
