"""The words of a user's texts under one model.

`surprisal.parquet` and `surprisal.csv` have a row for each word: the file, the line (of Parquet the row) that the text
stands in, and what `words.SCHEMA` says.
"""

from pathlib import Path

import polars as pl

from hatchery.artifacts.atomic import write_text
from hatchery.artifacts.manifests import StageRun
from hatchery.artifacts.parquet import write_table
from hatchery.evaluation.baselines.encoder import BaselineModel
from hatchery.evaluation.minimal_pairs.scoring import scoring_name
from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel
from hatchery.evaluation.runtime import load_sentence_model, prepare_device
from hatchery.evaluation.settings import EvaluationRuntime
from hatchery.evaluation.surprisal.measurements import WORDS_FILE
from hatchery.evaluation.surprisal.settings import NamedTexts
from hatchery.evaluation.surprisal.texts import check_drawn, read_texts
from hatchery.evaluation.surprisal.words import word_surprisals
from hatchery.raw.registration import open_source
from hatchery.sanitize import csv_text


def measure_texts(settings: NamedTexts, runtime: EvaluationRuntime, model: Path, source: Path, run: StageRun) -> None:
    """Write the surprisals of the words of the texts; see the stage `measure_surprisal`."""
    opened = open_source(source)
    lines = read_texts(opened, settings)
    check_drawn(opened, settings, len(lines))
    device = prepare_device(runtime.device, runtime.threads)
    asked = load_sentence_model(model, device, settings.scoring)
    assert isinstance(asked, HatcheryModel | BaselineModel)
    words = word_surprisals(
        asked,
        [line.text for line in lines],
        separator=settings.separator,
        scoring=settings.scoring,
        leading_blank=settings.leading_blank,
        tokens_per_batch=runtime.tokens_per_batch,
        place=lambda index: lines[index].where,
    )
    places = pl.DataFrame(
        {"file": [line.file for line in lines], "line": [line.line for line in lines]},
        schema={"file": pl.String, "line": pl.UInt32},
    ).with_columns(sentence=pl.int_range(1, len(lines) + 1, dtype=pl.UInt32))
    table = words.join(places, on="sentence", how="left", maintain_order="left").select("file", "line", *words.columns)
    write_table(run.add_output(run.folder / WORDS_FILE), table.to_arrow(compat_level=pl.CompatLevel.oldest()))
    write_text(run.add_output(run.folder / "surprisal.csv"), csv_text(table.columns, table.iter_rows()))
    run.measures |= {
        "scoring": scoring_name(settings.scoring, asked.architecture),
        "architecture": asked.architecture,
        "texts": len(lines),
        "words": len(words),
        "tokens": int(words["tokens"].sum()),
        "unknown_words": int(words["unknown"].sum()),
    }
