"""Texts of a user: the lines of text files, or a column of tables.

Planning reads them, too, so nothing here is slow to import.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import decode_lines, read_json_lines, some
from hatchery.evaluation.surprisal.settings import SurprisalSettings
from hatchery.evaluation.surprisal.splitting import split_words
from hatchery.evaluation.tasks.formats import read_csv, read_parquet
from hatchery.raw.registration import RawSource

LINES = (".txt", ".md")
ROWS = {
    ".csv": lambda source, name, column: some(read_csv(source, name), name),
    ".tsv": lambda source, name, column: some(read_csv(source, name), name),
    ".json": lambda source, name, column: read_json_lines(source, name),
    ".jsonl": lambda source, name, column: read_json_lines(source, name),
    ".parquet": lambda source, name, column: some(read_parquet(source, name, {column, column.partition(".")[0]}), name),
}
SPREADSHEETS = (".xlsx", ".xls", ".ods")


class TextLine(NamedTuple):
    """A text, its file, and the line or row there."""

    text: str
    file: str
    line: int

    @property
    def where(self) -> str:
        """Its place, for messages."""
        return f"{self.file}:{self.line}"


def text_files(source: RawSource, settings: SurprisalSettings) -> list[str]:
    """The names of the files, sorted. Raises EvaluationError where there are none, and for one of another kind."""
    names = source.names(settings.files)
    if not names:
        raise EvaluationError(f"{source.root}: no file matches {settings.files!r}")
    for name in names:
        ending = PurePosixPath(name).suffix.lower()
        if ending in SPREADSHEETS:
            raise EvaluationError(f"{name}: a spreadsheet of this kind is not read; save it as .csv (UTF-8)")
        if ending not in (*LINES, *ROWS):
            raise EvaluationError(f"{name}: the ending {ending!r} is unknown, expected {', '.join((*LINES, *ROWS))}")
        if (settings.column is None) != (ending in LINES):
            wanted = "no `column`: it has lines" if ending in LINES else "`column`, the name of the one with the texts"
            raise EvaluationError(f"{name}: expected {wanted}")
    return names


def texts_of(source: RawSource, settings: SurprisalSettings, name: str) -> Iterator[TextLine]:
    """The texts of one file in order; blank lines of a text file are left out.

    Raises EvaluationError or SourceError naming file and line for bytes that are not UTF-8, for a file without texts,
    a row without the column, and a cell without a word.
    """
    ending = PurePosixPath(name).suffix.lower()
    if settings.column is None:
        found = (TextLine(text, name, line) for line, text in decode_lines(source, name))
    else:
        rows = ROWS[ending](source, name, settings.column)
        found = (TextLine(record.text(settings.column), name, record.line) for record in rows)
    empty = True
    for one in found:
        if not split_words(one.text, settings.separator).spans:
            raise EvaluationError(f"{one.where}: there is no word in {one.text[:60]!r}")
        empty = False
        yield one
    if empty:
        raise EvaluationError(f"{name}: the file holds no text")


def check_drawn(source: RawSource, settings: SurprisalSettings, texts: int) -> None:
    """Raise EvaluationError where the figure is to show a text beyond the last one."""
    if settings.drawn > texts:
        raise EvaluationError(f"{source.root}: drawn: got {settings.drawn:,}, expected at most {texts:,}, the texts")


def read_texts(
    source: RawSource, settings: SurprisalSettings, most: Callable[[str], int | None] = lambda name: None
) -> list[TextLine]:
    """The texts of all files; `most` says how many of a file, None for all. Raises like `texts_of`."""
    names = text_files(source, settings)
    return [line for name in names for line in islice(texts_of(source, settings, name), most(name))]
