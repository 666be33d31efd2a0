"""Sentences of CoNLL-2012 (OntoNotes 5) with all their annotations, from files in the column format (`*.gold_conll`).

Columns are separated by white space: document, part, word number, word, part of speech, parse, lemma, frameset, sense,
speaker, entities, one column per predicate, coreference. The data need a licence, so only the reader is here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import decode_lines, shorten
from hatchery.storage.sources import RawSource

FIRST_PREDICATE = 11
WORD_NUMBER, WORD, PART_OF_SPEECH, ENTITIES, COREFERENCE = 2, 3, 4, 10, -1
# What stands in the files for the words before they are merged with the licensed text.
MASKED_WORD = "[WORD]"

_OPENED = re.compile(r"\(([^()*|\s]+)")


@dataclass(frozen=True)
class LabelledSpan:
    """Words [start, end) and what they are."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class AnnotatedSentence:
    """A sentence with four layers of annotation; `parts_of_speech` are the pre-terminals of its constituency tree.

    `frames` hold the arguments of one predicate each, the predicate itself labelled V; `mentions` are labelled with
    the number of their cluster, which holds inside one part of a document.
    """

    words: tuple[str, ...]
    parts_of_speech: tuple[str, ...]
    entities: tuple[LabelledSpan, ...]
    frames: tuple[tuple[LabelledSpan, ...], ...]
    mentions: tuple[LabelledSpan, ...]
    document: str
    part: str
    where: str


def read_gold_conll(source: RawSource, name: str) -> Iterator[AnnotatedSentence]:
    """Yield the sentences of a file.

    Raises EvaluationError naming file and line for broken rows, masked words, and brackets that do not close.
    """
    rows: list[list[str]] = []
    previous, first, found = 0, 0, False
    for line, text in decode_lines(source, name):
        if rows and (line != previous + 1 or text.startswith("#")):
            yield _sentence(rows, f"{name}:{first}")
            rows = []
        previous = line
        if text.startswith("#"):
            continue
        first, found = (line, True) if not rows else (first, found)
        rows.append(_fields(text, f"{name}:{line}", rows))
    if rows:
        yield _sentence(rows, f"{name}:{first}")
    if not found:
        raise EvaluationError(f"{name}: the file holds no sentences")


def _fields(text: str, where: str, rows: list[list[str]]) -> list[str]:
    fields = text.split()
    if len(fields) <= FIRST_PREDICATE or (rows and len(fields) != len(rows[0])):
        expected = str(len(rows[0])) if rows else f"{FIRST_PREDICATE + 1} or more"
        raise EvaluationError(f"{where}: {len(fields)} columns, expected {expected} of CoNLL-2012")
    if fields[WORD_NUMBER] != str(len(rows)):
        raise EvaluationError(f"{where}: the word number is {shorten(fields[WORD_NUMBER])}, expected {len(rows)}")
    if fields[WORD] == MASKED_WORD:
        raise EvaluationError(f"{where}: the word is {MASKED_WORD}; merge the file with the text of OntoNotes first")
    return fields


def _sentence(rows: list[list[str]], where: str) -> AnnotatedSentence:
    columns = list(zip(*rows, strict=True))
    return AnnotatedSentence(
        words=columns[WORD],
        parts_of_speech=columns[PART_OF_SPEECH],
        entities=bracketed(columns[ENTITIES], f"{where}: the column of entities"),
        frames=tuple(bracketed(column, f"{where}: a predicate") for column in columns[FIRST_PREDICATE:COREFERENCE]),
        mentions=_clusters(columns[COREFERENCE], f"{where}: the column of coreference"),
        document=rows[0][0],
        part=rows[0][1],
        where=where,
    )


def bracketed(cells: Sequence[str], where: str) -> tuple[LabelledSpan, ...]:
    """The spans of cells such as `(ARG0*`, `*`, `*)` and `(GPE)`, by their first word, longer ones first."""
    opened: list[tuple[int, str]] = []
    spans = []
    for position, cell in enumerate(cells):
        opened += [(position, label) for label in _OPENED.findall(cell)]
        for _ in range(cell.count(")")):
            if not opened:
                raise EvaluationError(f"{where}: the bracket that {shorten(cell)} closes was not opened")
            start, label = opened.pop()
            spans.append(LabelledSpan(start, position + 1, label))
    if opened:
        raise EvaluationError(f"{where}: the bracket ({opened[-1][1]} is not closed in its sentence")
    return in_order(spans)


def _clusters(cells: Sequence[str], where: str) -> tuple[LabelledSpan, ...]:
    """The mentions of cells such as `(12`, `12)`, `(12)|(3` and `-`, whose brackets close by cluster, not in turn."""
    opened: dict[str, list[int]] = {}
    spans = []
    for position, cell in enumerate(cells):
        for piece in cell.split("|") if cell != "-" else ():
            cluster = piece.strip("()")
            if not cluster.isdigit():
                raise EvaluationError(f"{where}: got {shorten(cell)}, expected clusters such as (12, 12) and (12)")
            if piece.startswith("("):
                opened.setdefault(cluster, []).append(position)
            if piece.endswith(")"):
                if not opened.get(cluster):
                    raise EvaluationError(f"{where}: the mention that {shorten(cell)} closes was not opened")
                spans.append(LabelledSpan(opened[cluster].pop(), position + 1, cluster))
    if left := next((cluster for cluster, starts in opened.items() if starts), None):
        raise EvaluationError(f"{where}: the mention ({left} is not closed in its sentence")
    return in_order(spans)


def in_order(spans: Sequence[LabelledSpan]) -> tuple[LabelledSpan, ...]:
    """Spans by their first word, longer ones first, each once."""
    return tuple(sorted(set(spans), key=lambda span: (span.start, -span.end, span.label)))
