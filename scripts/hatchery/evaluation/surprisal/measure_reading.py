"""One model beside people who read: surprisals of their words, and how much of their times these explain.

Writes `words.parquet` (the rows of the data: context, word, its surprisal and that of the word before, in nats),
`scores.csv` and `predictions.json`, as BabyLM's server takes it (docs/papers/babylm-2026.md, "Reading times").
"""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parquet import write_table
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.human_data import read_words
from hatchery.evaluation.surprisal.reading import reading_scores, reading_surprisals, surprisals_of
from hatchery.evaluation.surprisal.settings import ReadingSettings
from hatchery.raw.registration import open_source
from hatchery.sanitize import csv_text


def measure(settings: ReadingSettings, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun) -> None:
    """Write the surprisals and scores; see the stage `measure_reading`."""
    words = read_words(open_source(source), settings.files)
    device = prepare_device(runtime.device, runtime.threads)
    asked = load_sentence_model(model, device, settings.scoring, template=True)
    assert isinstance(asked, HatcheryModel | BaselineModel)
    if settings.official:
        if isinstance(asked, BaselineModel):
            asked.gives_types = asked.tokenizer.returns_types
        words = [replace(one, before=None) if one.before and one.before[0] == "None" else one for one in words]
    found, before = reading_surprisals(words, lambda pairs: surprisals_of(asked, pairs, runtime.tokens_per_batch))
    scores = reading_scores(words, found, before)
    columns = {"context": [one.context for one in words], "word": [one.word for one in words]}
    table = pl.DataFrame({**columns, "surprisal_nats": found, "previous_surprisal_nats": before})
    write_table(run.add_output(run.folder / "words.parquet"), table.to_arrow(compat_level=pl.CompatLevel.oldest()))
    write_text(run.add_output(run.folder / "scores.csv"), csv_text(("outcome", "gain"), scores.items()))
    rows = [
        {"id": index, "pred": pred, "prev_pred": previous}
        for index, (pred, previous) in enumerate(zip(found.tolist(), before.tolist(), strict=True))
    ]
    # NaN, which is no JSON, stands for what is missing: the server's code reads it.
    written = json.dumps({"reading": {"predictions": rows}})
    write_text(run.add_output(run.folder / "predictions.json"), f"{written}\n")
    run.measures |= {"words": len(words), "architecture": asked.architecture}
