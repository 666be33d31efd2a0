"""Minimal pairs in memory, converted to data frames with the columns that the readers of suites expect."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from hatchery.errors import ConfigError, EvaluationError, first_line
from hatchery.evaluation.direct.data import as_frame, require_texts
from hatchery.evaluation.json_lines import shorten

GOOD, BAD = ("sentence_good", "good"), ("sentence_bad", "bad")
"""Column names of right and wrong sentences that are recognised if the setting `columns` is not given; BLiMP's names
come first.
"""
OTHERS = {"paradigm": ("paradigm", "UID"), "phenomenon": ("phenomenon", "linguistics_term"), "prefix": ("prefix",)}


def pairs_of(data: Any) -> pl.DataFrame:
    """Return pairs as a data frame. `data` is a table, or a list whose entries are lists: the good text, then the bad
    texts.

    Raises EvaluationError naming the first malformed pair, and ConfigError for other data.
    """
    is_list = isinstance(data, Sequence) and not isinstance(data, str)
    if not is_list or not data or all(isinstance(row, Mapping) for row in data):
        return as_frame(data)
    width = len(data[0]) if isinstance(data[0], Sequence) else 0
    for number, pair in enumerate(data, start=1):
        is_pair = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == max(width, 2)
        if not is_pair or not all(isinstance(text, str) for text in pair):
            raise EvaluationError(
                f"pair {number:,}: got {shorten(pair)}, expected {max(width, 2)} texts, the correct text first"
            )
    names = [GOOD[1], *(f"{BAD[1]}_{number}" if width > 2 else BAD[1] for number in range(1, width))]
    return pl.DataFrame([tuple(pair) for pair in data], schema=names, orient="row")


def settings_of_pairs(frame: pl.DataFrame, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings (`SuiteSettings`) with which a table of pairs is read, including the names of its columns.

    Raises ConfigError for a table without columns of correct and wrong sentences, and EvaluationError for a cell of
    these columns that is not a text. If the table is multiple-choice, its reader checks the columns later.
    """
    if settings.get("format") == "multiple_choice":
        return {**settings, "files": "*.parquet"}
    if "columns" in settings:
        columns = dict(settings["columns"])
    else:
        bad = [name for name in frame.columns if name.startswith(f"{BAD[1]}_")]
        columns = {
            "good": next((name for name in GOOD if name in frame.columns), None),
            "bad": next((name for name in BAD if name in frame.columns), bad or None),
        }
        if None in columns.values():
            raise ConfigError(
                f"columns: got a table with {', '.join(frame.columns)}, expected {GOOD[1]} and {BAD[1]}, or {GOOD[0]} "
                f"and {BAD[0]}; columns={{'good': ..., 'bad': ...}} sets other names"
            )
        for key, names in OTHERS.items():
            found = next((name for name in names if name in frame.columns), None)
            columns |= {} if found is None else {key: found}
    wrong = columns.get("bad")
    texts = [columns.get("good"), *([wrong] if isinstance(wrong, str) else wrong or ())]
    require_texts(frame, [name for name in texts if name is not None])
    return {**settings, "format": "rows", "files": "*.parquet", "columns": columns}


READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".csv": lambda path: pl.read_csv(path, infer_schema=False),
    ".tsv": lambda path: pl.read_csv(path, infer_schema=False, separator="\t"),
    ".jsonl": pl.read_ndjson,
    ".parquet": pl.read_parquet,
}
"""Functions that read a file of minimal pairs, by file suffix."""


def read_pairs(path: Path) -> pl.DataFrame:
    """Return a file of pairs as a data frame. Raises EvaluationError for a file that is not a table."""
    try:
        return READERS[path.suffix](path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise EvaluationError(f"{path}: cannot be read as a table of pairs: {first_line(error)}") from error
