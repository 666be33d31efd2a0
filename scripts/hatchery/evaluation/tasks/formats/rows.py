"""Rows with named fields, by the ending of the file: JSON lines, Parquet, tables between tabs, tables of spreadsheets.

JSON lines are how SuperGLUE, BabyLM 2023 and MSGS are handed out (`.json` or `.jsonl`), Parquet is what a data set of
the hub becomes here, tables between tabs are the original GLUE and HANS (`.tsv`, `.txt`), and `.csv` is what
spreadsheets save. A record is the same in all of them, but that tables hold nothing but text.

- A `.csv` has a header line, quotes where a cell needs them, and commas, semicolons or tabs between its cells.
- Tables between tabs have a header line and no quoting. CoLA has no header; the task names its columns. QQP's training
  file has a few rows that line breaks inside a question tore apart; the hub's copy leaves them out, and so do we, as
  long as they are few.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import PurePosixPath

from hatchery.corpora.rows import csv_rows, has_surplus, parquet_rows
from hatchery.corpora.text_files import Lines
from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, decode_lines, read_json_lines, some
from hatchery.raw.registration import RawSource

MOST_TORN_ROWS = 1e-3
"""Share of the rows that may have a wrong number of cells; QQP has one in some ten thousand."""


def read_tsv(source: RawSource, name: str, columns: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the rows of a table in order; `columns` names the columns of a file without a header.

    Torn rows are left out. Raises EvaluationError naming file and line for a header that repeats a name, and for more
    torn rows than MOST_TORN_ROWS.
    """
    names, rows, torn, first_torn = list(columns), 0, 0, ""
    for line, text in decode_lines(source, name):
        cells = text.split("\t")
        if not names:
            names = [cell.strip() for cell in cells]
            if len(set(names)) < len(names):
                raise EvaluationError(f"{name}:{line}: a name stands twice in the header; does the file have one?")
            continue
        rows += 1
        if len(cells) == len(names):
            yield Record(dict(zip(names, cells, strict=True)), f"{name}:{line}", line)
        else:
            torn += 1
            first_torn = first_torn or f"{name}:{line}: has {len(cells)} cells, expected {len(names)}"
    if torn > rows * MOST_TORN_ROWS:
        raise EvaluationError(f"{first_torn} ({', '.join(names)})")


def read_csv(source: RawSource, name: str) -> Iterator[Record]:
    """Yield the rows of a table as spreadsheets save it; those without any text are left out.

    What stands between the cells is the mark that the header has most of. Raises EvaluationError naming file and line
    for a row with more cells than the header; SourceError for a table that is not well formed or not UTF-8.
    """
    lines, header = Lines(source, name), next(iter(Lines(source, name)), "")
    lines.where, lines.mark = name, ":"
    delimiter = max(",;\t", key=header.count)
    for where, row in csv_rows(lines, delimiter):
        if has_surplus(row):
            marked = "tabs" if delimiter == "\t" else repr(delimiter)
            raise EvaluationError(
                f"{where}: more cells than the header has; put quotes around a text with {marked} in it"
            )
        if any(row.values()):
            yield Record({column: cell or "" for column, cell in row.items()}, where, lines.line)


def read_parquet(source: RawSource, name: str, wanted: Collection[str]) -> Iterator[Record]:
    """Yield the rows of a Parquet file in order, with the columns in `wanted`; `line` is the number of the row, from 1.

    Raises SourceError naming file and row for a damaged file.
    """
    rows = parquet_rows(source, name, wanted, name)
    return (Record(values, where, number) for number, (where, values) in enumerate(rows, 1))


READERS: dict[str, Callable[[RawSource, str, Sequence[str], Collection[str]], Iterator[Record]]] = {
    ".json": lambda source, name, columns, wanted: read_json_lines(source, name),
    ".jsonl": lambda source, name, columns, wanted: read_json_lines(source, name),
    ".parquet": lambda source, name, columns, wanted: read_parquet(source, name, wanted),
    ".csv": lambda source, name, columns, wanted: read_csv(source, name),
    ".tsv": lambda source, name, columns, wanted: read_tsv(source, name, columns),
    ".txt": lambda source, name, columns, wanted: read_tsv(source, name, columns),
}


def read_rows(source: RawSource, name: str, columns: Sequence[str], wanted: Collection[str]) -> Iterator[Record]:
    """The records of one file.

    `columns` names those of a table between tabs that has no header. `wanted` are the fields that will be asked for;
    others may stay unread.

    Raises EvaluationError for an ending that is no format of ours, and naming file and line for damaged rows.
    """
    ending = PurePosixPath(name).suffix.lower()
    if ending not in READERS:
        raise EvaluationError(f"{name}: the ending {ending!r} is unknown; rows come as {', '.join(READERS)}")
    return some(READERS[ending](source, name, columns, wanted), name)
