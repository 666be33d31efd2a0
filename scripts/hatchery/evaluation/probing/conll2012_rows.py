"""Sentences of CoNLL-2012 from the rows of the hub's `ontonotes/conll2012_ontonotesv5` in Parquet.

A row is a document with a list of sentences. Entities and the arguments of predicates are tags per word (`B-ARG0`,
`I-ARG0`, `O`), mentions are [cluster, first word, last word], parts of speech are read off the tree.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import shorten
from hatchery.evaluation.probing.conll2012 import AnnotatedSentence, LabelledSpan, in_order
from hatchery.storage.sources import RawSource

COLUMNS = ("document_id", "sentences")
ROWS_AT_A_TIME = 16

_PRE_TERMINAL = re.compile(r"\(([^\s()]+)\s+([^\s()]+)\s*\)")


def read_hub_rows(source: RawSource, name: str) -> Iterator[AnnotatedSentence]:
    """Yield the sentences of a Parquet file.

    Raises EvaluationError naming the file, the row and the sentence for missing or broken parts, and the file when
    entities are numbers whose names its metadata do not give.
    """
    with source.open(name) as handle:
        try:
            file = pq.ParquetFile(handle)
            names = {field: _class_names(file.schema_arrow, field) for field in ("named_entities", "pos_tags")}
            if missing := [column for column in COLUMNS if column not in file.schema_arrow.names]:
                raise EvaluationError(f"{name}: the column {missing[0]!r} is missing, expected {' and '.join(COLUMNS)}")
            row = 0
            for batch in file.iter_batches(ROWS_AT_A_TIME, columns=list(COLUMNS)):
                for document in batch.to_pylist():
                    for index, sentence in enumerate(document["sentences"] or ()):
                        where = f"{name}: row {row}, sentence {index}"
                        yield _sentence(sentence, str(document["document_id"]), names, where)
                    row += 1
        except pa.ArrowException as error:
            raise EvaluationError(f"{name}: not a readable Parquet file: {str(error).splitlines()[0]}") from error


def _sentence(
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
            raise EvaluationError(f"{where}: {n_words} {what} for {len(words)} words")
    if any(not 0 <= mention.start < mention.end <= len(words) for mention in mentions):
        raise EvaluationError(f"{where}: a mention lies outside of the {len(words)} words")
    return found


def tagged(tags: Sequence[str], where: str) -> tuple[LabelledSpan, ...]:
    """The spans of tags such as `B-ARG0`, `I-ARG0`, `O`. Raises EvaluationError for an I- without its beginning."""
    spans: list[LabelledSpan] = []
    for position, tag in enumerate(tags):
        mark, _, label = tag.partition("-")
        if mark == "I" and spans and (spans[-1].end, spans[-1].label) == (position, label):
            spans[-1] = LabelledSpan(spans[-1].start, position + 1, label)
        elif mark == "B" and label:
            spans.append(LabelledSpan(position, position + 1, label))
        elif tag != "O":
            raise EvaluationError(f"{where}: the tag {shorten(tag)} follows no B- of its label, and is not O")
    return tuple(spans)


def _named(values: Sequence[Any], names: Sequence[str], where: str) -> list[str]:
    """Class numbers as names; names stay."""
    if all(isinstance(value, str) for value in values):
        return list(values)
    if not names:
        raise EvaluationError(f"{where} are numbers, but the file's metadata do not say what they stand for")
    if not all(type(value) is int and 0 <= value < len(names) for value in values):
        raise EvaluationError(f"{where}: got {shorten(values)}, expected numbers from 0 to {len(names) - 1}")
    return [names[value] for value in values]


def _class_names(schema: pa.Schema, field: str) -> list[str]:
    """The names of the classes of a field, as the `datasets` library writes them into a file's metadata."""
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
