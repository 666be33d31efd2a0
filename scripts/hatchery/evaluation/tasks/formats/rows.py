"""Rows with named fields, by the ending of the file: JSON lines, Parquet, tab-separated tables.

JSON lines are how SuperGLUE, BabyLM 2023 and MSGS are handed out (`.json` or `.jsonl`), Parquet is what a data set of
the hub becomes here, and tables are the original GLUE and HANS (`.tsv`, `.txt`). A record is the same in all three,
but that tables hold nothing but text.
"""

from collections.abc import Callable, Collection, Iterator
from pathlib import PurePosixPath

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, read_json_lines
from hatchery.evaluation.tasks.formats.parquet import read_parquet
from hatchery.evaluation.tasks.formats.tsv import read_tsv
from hatchery.evaluation.tasks.settings import TaskSettings
from hatchery.storage.sources import RawSource

READERS: dict[str, Callable[[RawSource, str, TaskSettings, Collection[str]], Iterator[Record]]] = {
    ".json": lambda source, name, task, wanted: read_json_lines(source, name),
    ".jsonl": lambda source, name, task, wanted: read_json_lines(source, name),
    ".parquet": lambda source, name, task, wanted: read_parquet(source, name, wanted),
    ".tsv": lambda source, name, task, wanted: read_tsv(source, name, task.columns),
    ".txt": lambda source, name, task, wanted: read_tsv(source, name, task.columns),
}


def read_rows(source: RawSource, task: TaskSettings, name: str, wanted: Collection[str]) -> Iterator[Record]:
    """The records of one file; `wanted` are the fields that will be asked for, others may stay unread.

    Raises EvaluationError for an ending that is no format of ours, and naming file and line for damaged rows.
    """
    ending = PurePosixPath(name).suffix.lower()
    if ending not in READERS:
        raise EvaluationError(f"{name}: the ending {ending!r} is unknown; rows come as {', '.join(READERS)}")
    return READERS[ending](source, name, task, wanted)
