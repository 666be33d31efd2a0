"""Read sentences of CoNLL-2012 (OntoNotes 5) with all annotations, from column files or Parquet files of the Hugging
Face hub.

In column files (`*gold_conll`), columns are separated by white space: document, part, word number, word, part of
speech, parse, lemma, frameset, sense, speaker, entities, one column per predicate, coreference. The data need a
licence, so they are not in this repository.

In the hub's `ontonotes/conll2012_ontonotesv5` (Parquet), each row is a document with a list of sentences. Entities and
the arguments of predicates are tags per word (`B-ARG0`, `I-ARG0`, `O`), and mentions are [cluster, first word, last
word]. Parts of speech are the pre-terminals of the parse tree or, without a tree, the field `pos_tags`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.corpora.parquet_files import check_names
from hatchery.errors import EvaluationError, first_line
from hatchery.evaluation.json_lines import decode_lines, shorten
from hatchery.raw.registration import RawSource

FIRST_PREDICATE = 11
WORD_NUMBER, WORD, PART_OF_SPEECH, ENTITIES, COREFERENCE = 2, 3, 4, 10, -1
# Some files contain only annotations, because they were not merged with the licensed text. In these files, each word is
# this placeholder.
MASKED_WORD = "[WORD]"

_OPENED = re.compile(r"\(([^()*|\s]+)")


@dataclass(frozen=True)
class LabelledSpan:
    """A labelled span: the words [start, end) of a sentence."""

    start: int
    end: int
    label: str


@dataclass(frozen=True)
class AnnotatedSentence:
    """A sentence with annotations: parts of speech, named entities, the arguments of predicates (`frames`), and
    mentions with their coreference clusters. `parts_of_speech` are the pre-terminals of its constituency tree.

    Each entry of `frames` contains the spans of one predicate's arguments, and the span of the predicate itself with
    the label V. In `mentions`, a label is the number of the mention's coreference cluster, which is unique only inside
    one part of a document.
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
    """Yield the sentences of a column file.

    Raises EvaluationError naming file and line for malformed rows, for placeholders in place of words, and for brackets
    that are not opened or not closed. Raises EvaluationError naming the file if the file has no sentences.
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
        raise EvaluationError(f"{name}: the file contains no sentences")


def _fields(text: str, where: str, rows: list[list[str]]) -> list[str]:
    fields = text.split()
    if len(fields) <= FIRST_PREDICATE or (rows and len(fields) != len(rows[0])):
        expected = str(len(rows[0])) if rows else f"{FIRST_PREDICATE + 1} or more"
        raise EvaluationError(f"{where}: got {len(fields)} columns, expected {expected} columns of CoNLL-2012")
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
    """Return the labelled spans that cells such as `(ARG0*`, `*`, `*)` and `(GPE)` encode, sorted by first word, longer
    spans first. Raises EvaluationError for a bracket that is not opened or not closed.
    """
    opened: list[tuple[int, str]] = []
    spans = []
    for position, cell in enumerate(cells):
        opened += [(position, label) for label in _OPENED.findall(cell)]
        for _ in range(cell.count(")")):
            if not opened:
                raise EvaluationError(f"{where}: {shorten(cell)} closes a bracket that was not opened")
            start, label = opened.pop()
            spans.append(LabelledSpan(start, position + 1, label))
    if opened:
        raise EvaluationError(f"{where}: the bracket ({opened[-1][1]} is not closed in its sentence")
    return in_order(spans)


def _clusters(cells: Sequence[str], where: str) -> tuple[LabelledSpan, ...]:
    """Return the mentions that cells such as `(12`, `12)`, `(12)|(3` and `-` encode. A closing bracket closes the
    mention with the same cluster number, even if another mention was opened later. Raises EvaluationError for a cell of
    another form, and for a bracket that is not opened or not closed.
    """
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
                    raise EvaluationError(f"{where}: {shorten(cell)} closes a mention that was not opened")
                spans.append(LabelledSpan(opened[cluster].pop(), position + 1, cluster))
    if left := next((cluster for cluster, starts in opened.items() if starts), None):
        raise EvaluationError(f"{where}: the mention ({left} is not closed in its sentence")
    return in_order(spans)


def in_order(spans: Sequence[LabelledSpan]) -> tuple[LabelledSpan, ...]:
    """Return distinct spans, sorted by first word, longer spans first."""
    return tuple(sorted(set(spans), key=lambda span: (span.start, -span.end, span.label)))


COLUMNS = ("document_id", "sentences")
ROWS_AT_A_TIME = 16

_PRE_TERMINAL = re.compile(r"\(([^\s()]+)\s+([^\s()]+)\s*\)")


def read_hub_rows(source: RawSource, name: str) -> Iterator[AnnotatedSentence]:
    """Yield the sentences of a Parquet file.

    Raises EvaluationError naming file, row and sentence (both counted from 0) for missing or malformed annotations.
    Entities or parts of speech may be class numbers only if the file's metadata names the classes. Raises
    EvaluationError naming the file for a missing column and for an unreadable file.
    """
    with source.open(name) as handle:
        try:
            file = pq.ParquetFile(handle)
            check_names(file.schema_arrow, name)
            names = {field: _class_names(file.schema_arrow, field) for field in ("named_entities", "pos_tags")}
            if missing := [column for column in COLUMNS if column not in file.schema_arrow.names]:
                raise EvaluationError(f"{name}: the column {missing[0]!r} is missing, expected {' and '.join(COLUMNS)}")
            row = 0
            for batch in file.iter_batches(ROWS_AT_A_TIME, columns=list(COLUMNS)):
                for document in batch.to_pylist():
                    for index, sentence in enumerate(document["sentences"] or ()):
                        where = f"{name}: row {row}, sentence {index}"
                        yield _sentence_of_row(sentence, str(document["document_id"]), names, where)
                    row += 1
        except (OSError, pa.ArrowException) as error:
            raise EvaluationError(f"{name}: not a readable Parquet file: {first_line(error)}") from error


def _sentence_of_row(
    sentence: Mapping[str, Any], document: str, names: Mapping[str, Sequence[str]], where: str
) -> AnnotatedSentence:
    try:
        words = tuple(sentence["words"])
        frames = tuple(tagged(frame["frames"], f"{where}: a predicate") for frame in sentence["srl_frames"] or ())
        mentions = in_order([LabelledSpan(first, last + 1, str(c)) for c, first, last in sentence["coref_spans"] or ()])
        tags = _named(sentence["named_entities"], names["named_entities"], f"{where}: named_entities")
        tree, part = sentence.get("parse_tree"), str(sentence["part_id"])
    except (KeyError, TypeError, ValueError) as error:
        raise EvaluationError(f"{where}: not a sentence of CoNLL-2012: {type(error).__name__}: {error}") from error
    if not words or any(not word or " " in word for word in words):
        raise EvaluationError(f"{where}: the words are {shorten(words)}, expected texts without blanks")
    if tree:
        parts_of_speech = tuple(label for label, _ in _PRE_TERMINAL.findall(tree))
    else:
        parts_of_speech = tuple(_named(sentence.get("pos_tags") or (), names["pos_tags"], f"{where}: pos_tags"))
    found = AnnotatedSentence(
        words, parts_of_speech, tagged(tags, f"{where}: named_entities"), frames, mentions, document, part, where
    )
    for what, n_words in {
        "parts of speech": len(parts_of_speech),
        "entity tags": len(tags),
        **{f"tags of predicate {i}": len(frame["frames"]) for i, frame in enumerate(sentence["srl_frames"] or ())},
    }.items():
        if n_words != len(words):
            raise EvaluationError(f"{where}: got {n_words} {what} for {len(words)} words, expected one for each word")
    if any(not 0 <= mention.start < mention.end <= len(words) for mention in mentions):
        raise EvaluationError(f"{where}: a mention is not within the {len(words)} words of the sentence")
    return found


def tagged(tags: Sequence[str], where: str) -> tuple[LabelledSpan, ...]:
    """Return the labelled spans that tags such as `B-ARG0`, `I-ARG0` and `O` encode. Raises EvaluationError for an I-
    tag that continues no span with the same label, and for tags of another form.
    """
    spans: list[LabelledSpan] = []
    for position, tag in enumerate(tags):
        mark, _, label = tag.partition("-")
        if mark == "I" and spans and (spans[-1].end, spans[-1].label) == (position, label):
            spans[-1] = LabelledSpan(spans[-1].start, position + 1, label)
        elif mark == "B" and label:
            spans.append(LabelledSpan(position, position + 1, label))
        elif tag != "O":
            raise EvaluationError(
                f"{where}: got the tag {shorten(tag)}, expected O, B-LABEL, or I-LABEL after a tag with the same label"
            )
    return tuple(spans)


def _named(values: Sequence[Any], names: Sequence[str], where: str) -> list[str]:
    """Return the class names of `values`, which are either class names already or indices into `names`. Raises
    EvaluationError for other values.
    """
    if all(isinstance(value, str) for value in values):
        return list(values)
    if not names:
        raise EvaluationError(f"{where} are class numbers, expected class names or metadata that name the classes")
    if not all(type(value) is int and 0 <= value < len(names) for value in values):
        raise EvaluationError(f"{where}: got {shorten(values)}, expected class numbers from 0 to {len(names) - 1}")
    return [names[value] for value in values]


def _class_names(schema: pa.Schema, field: str) -> list[str]:
    """Return the class names of a field, from the metadata that the library `datasets` writes to Parquet files; empty
    without class names.
    """
    try:
        described = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return []
    return _find_names(_find(described, field))


def _find(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    parts = (_find(part, key) for part in value) if isinstance(value, list) else ()
    return next((part for part in parts if part is not None), None)


def _find_names(value: Any) -> list[str]:
    names = _find(value, "names")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []
