"""Lists of words and their morphemes, which ESMS compares tokens with: the user's, or one of the two shipped.

A list is CSV with the columns `word` and `morphemes`, these separated by blanks; lines that begin with `#` are
comments. The 127 words of the reduced-vocabulary study were never released. `public_13` are the 13 words that its
Table 5 prints; `own` is a longer list that we made ourselves and that is not the paper's.
"""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hatchery.errors import SourceError
from hatchery.storage.raw_source import open_source

COLUMNS = ["word", "morphemes"]


@dataclass(frozen=True)
class Word:
    """A word and the morphemes that spell it."""

    text: str
    morphemes: tuple[str, ...]


def shipped_words(name: str) -> list[Word]:
    """The words of the shipped list `public_13` or `own`."""
    path = Path(__file__).with_name(f"morphemes_{name}.csv")
    return parse_words(path.read_text(encoding="utf-8"), path.name)


def source_words(manifest: str | Path) -> list[Word]:
    """The words of a registered source that holds exactly one CSV file. Raises SourceError naming file and line."""
    source = open_source(manifest)
    names = source.names("*.csv")
    if len(names) != 1:
        raise SourceError(f"{source.root}: expected one .csv file of morphemes in it, found {len(names)}")
    content = source.read_bytes(names[0])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{source.root}: {names[0]!r} is not UTF-8: byte {error.start}") from error
    return parse_words(text, f"{source.root}: {names[0]!r}")


def parse_words(text: str, where: str) -> list[Word]:
    """Parse a list. Raises SourceError naming `where` and the line for morphemes that do not spell their word,

    a word given twice, a missing column, broken CSV, or a list without words.
    """
    lines = list(_lines(text))
    rows = csv.reader((line for _, line in lines), strict=True)
    words: dict[str, Word] = {}
    try:
        header = next(rows, None)
        if header != COLUMNS:
            raise SourceError(f"{where}: expected the columns {', '.join(COLUMNS)}, got {', '.join(header or [])!r}")
        for row in rows:
            place = f"{where}: line {lines[rows.line_num - 1][0]}"
            if len(row) != len(COLUMNS):
                raise SourceError(f"{place}: expected {len(COLUMNS)} columns, got {len(row)}")
            word = Word(row[0].strip(), tuple(row[1].split()))
            if not word.text or "".join(word.morphemes) != word.text:
                raise SourceError(f"{place}: the morphemes {row[1]!r} do not spell the word {row[0]!r}")
            if word.text in words:
                raise SourceError(f"{place}: the word {word.text!r} is listed twice")
            words[word.text] = word
    except csv.Error as error:
        raise SourceError(f"{where}: line {lines[rows.line_num - 1][0]}: not CSV: {error}") from error
    if not words:
        raise SourceError(f"{where}: the list has no words")
    return list(words.values())


def _lines(text: str) -> Iterable[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers."""
    for number, line in enumerate(io.StringIO(text), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line
