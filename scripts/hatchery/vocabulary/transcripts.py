"""Utterances of adults from CHILDES tables (docs/papers/reduced-vocabulary.md, "Words of child-directed speech"): one
row per utterance, streamed.

Dropped are utterances to children older than six years (2,190 days; rows without an age stay), those without tokens,
those of children, and those of collections other than the North American one. The text is the raw `gloss` column.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from hatchery.corpora.rows import cell, csv_rows, has_surplus
from hatchery.corpora.text_files import Lines
from hatchery.errors import SourceError
from hatchery.raw.registration import RawSource

OLDEST_DAYS = 2190.0
CHILDREN = frozenset({"Target_Child", "Child"})
COLLECTION = "Eng-NA"
# How the exports write a missing value.
_MISSING = frozenset({None, "", "NA"})


def utterances(source: RawSource, file: str, encoding: str, counts: Counter[str]) -> Iterator[str]:
    """The utterances of one table that count, in order; `counts` takes what was seen and dropped.

    Raises SourceError naming file and line for a table that is not well formed, lacks a column, or has a number that
    is none.
    """
    for place, row in table_rows(source, file, encoding):
        counts["rows"] += 1
        gloss = cell(row, "gloss", place)
        reason = _dropped(row, place)
        if reason is not None:
            counts[f"dropped_{reason}"] += 1
        elif gloss is None or gloss in _MISSING:
            counts["dropped_no_text"] += 1
        else:
            counts["utterances"] += 1
            yield gloss


def table_rows(source: RawSource, file: str, encoding: str) -> Iterator[tuple[str, Mapping[str, str | None]]]:
    """Pairs of a place for messages and the row of a CSV table with a header, streamed.

    Raises SourceError for a table without header or rows that do not fit it.
    """
    lines = Lines(source, file, encoding)
    for place, row in csv_rows(lines):
        if has_surplus(row) or None in row.values():
            raise SourceError(f"{place}: the row does not have the cells of the header")
        yield place, row
    if not lines.line:
        raise SourceError(f"{lines.where}: line 1: the table is empty; expected a header")


def _dropped(row: Mapping[str, str | None], place: str) -> str | None:
    age = _number(row, "target_child_age", place)
    if age is not None and age > OLDEST_DAYS:
        return "older_child"
    tokens = _number(row, "num_tokens", place)
    if tokens is not None and tokens < 1:
        return "no_tokens"
    if cell(row, "speaker_role", place) in CHILDREN:
        return "child_speech"
    if row.get("collection_name") not in _MISSING | {COLLECTION}:
        return "other_collection"
    return None


def _number(row: Mapping[str, str | None], column: str, place: str) -> float | None:
    text = cell(row, column, place)
    if text in _MISSING or text is None:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise SourceError(f"{place}: {column}: expected a number or NA, got {text[:40]!r}") from error
