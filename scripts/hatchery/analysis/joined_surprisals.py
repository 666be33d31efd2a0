"""The table of all surprisals: the outputs of `measure_surprisal` for all models and texts, concatenated.

Columns from the user's files are strings. The rows of a file are null in all columns that only other files have.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from hatchery.analysis.collect_measurements import evaluation_of
from hatchery.analysis.settings import CollectSettings, runs_by_name
from hatchery.artifacts.atomic import atomic_path
from hatchery.artifacts.checksums import write_checksums
from hatchery.artifacts.manifests import read_manifest
from hatchery.artifacts.parquet import TableWriter, read_batches
from hatchery.evaluation.evaluation import Result
from hatchery.evaluation.surprisal.measurements import WORDS_FILE
from hatchery.sanitize import csv_text

PLACE = {"experiment": pl.String, "model": pl.String, "run": pl.String, "seed": pl.Int64, "texts": pl.String}
"""Columns that identify the model and the texts. All columns except `texts` are named as in the tidy tables."""
ROWS_AT_ONCE = 1 << 16


def join_words(settings: CollectSettings, models: Mapping[str, Path], words: Mapping[str, Path], output: Path) -> None:
    """Write the surprisals of all models and texts as one table, in Parquet and as CSV, for the stage
    `join_surprisals`.
    """
    named = runs_by_name(settings.runs)
    results = {Result.of_key(key): path for key, path in words.items()}
    trained = {run: read_manifest(models[run]) for run in dict.fromkeys(result.run for result in results)}
    files = {result: evaluation_of(path, trained[result.run]).file(WORDS_FILE) for result, path in results.items()}
    schema = pl.Schema(PLACE)
    for path in files.values():
        schema |= pl.read_parquet_schema(path)
    empty = pl.DataFrame(schema=schema)
    csv_file = output.with_suffix(".csv")
    with (
        atomic_path(output) as parquet_path,
        atomic_path(csv_file) as csv_path,
        TableWriter(parquet_path, empty.to_arrow(compat_level=pl.CompatLevel.oldest()).schema) as writer,
        csv_path.open("w", encoding="utf-8", newline="") as text,
    ):
        text.write(csv_text(empty.columns, ()))
        for result, path in files.items():
            run = named[result.run]
            seed = None if run.is_baseline else run.seed
            place = dict(zip(PLACE, (settings.experiment, run.model, run.name, seed, result.name), strict=True))
            for rows in _batches(path):
                added = {name: pl.lit(value, PLACE[name]) for name, value in place.items()}
                whole = pl.concat([empty, rows.with_columns(**added)], how="diagonal")
                writer.write_table(whole.to_arrow(compat_level=pl.CompatLevel.oldest()))
                text.write(csv_text(None, whole.iter_rows()))
    write_checksums([output, csv_file])


def _batches(path: Path) -> Iterator[pl.DataFrame]:
    for batch in read_batches(path, ROWS_AT_ONCE):
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        yield frame
