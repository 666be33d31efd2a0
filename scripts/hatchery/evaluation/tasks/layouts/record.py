"""ReCoRD: each candidate entity is one example with the segments (passage, query, entity) (docs/papers/ltg-bert.md,
"Fine-tuning").

The entity replaces the query's @placeholder, and the label is 1 if the entity is among the answers. At the end of a
passage, summary lines follow, each after the mark `@highlight`; they become separate sentences. In the copy on the
Hugging Face hub, each row is one query with its passage and lists of entities and answers. In SuperGLUE's own release,
each line is a passage with its queries, whose entities are spans with inclusive ends. Both forms are read.
"""

import json
from collections.abc import Iterator
from typing import Any

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, checked_text, shorten
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.layout import Context, LayOut, Layout, nested

FIELDS = ("passage", "query", "entities", "answers", "idx", "qas")
PLACEHOLDER = "@placeholder"
_HIGHLIGHT = "\n@highlight\n"
_ENDS = (".", "?", "!", '"', "'")


def lay_out_entities(context: Context) -> LayOut:
    """Return a function from a record to its examples, one per entity, each with three segments.

    The `facts` of an example are the entity and the answers (a JSON list), spelled as in the file; its `group` is the
    query. The query and the entity are normalised separately, before the entity is inserted into the query, so that no
    text is normalised twice. The function raises EvaluationError for a row without a passage, placeholder, entity or
    answer.
    """

    def lay_out(record: Record) -> Iterator[Example]:
        for row in _queries(record):
            passage = context.normalise(without_highlights(context.string(row, "passage")))
            query = context.normalise(context.string(row, "query"))
            entities, answers = (_texts(row, name) for name in ("entities", "answers"))
            _check(row, passage, query, entities, answers)
            _, scored, facts = context.traits(row)
            gold, group = json.dumps(answers, ensure_ascii=False), _group(row)
            for entity in entities:
                text = context.normalise(entity)
                yield Example(
                    ((passage, query.replace(PLACEHOLDER, text), text),),
                    int(entity in answers),
                    group,
                    scored,
                    (),
                    {**facts, "entity": entity, "answers": gold},
                    row.where,
                )

    return lay_out


def without_highlights(passage: str) -> str:
    """Return the passage with its summary lines as sentences. If the text before a mark `@highlight` has no final
    punctuation, a full stop is added. The last summary line stays unchanged.
    """
    *before, last = (part.strip() for part in passage.split(_HIGHLIGHT))
    return " ".join([*(part if part.endswith(_ENDS) else f"{part}." for part in before), last])


def _check(row: Record, passage: str, query: str, entities: list[str], answers: list[str]) -> None:
    if not passage:
        raise EvaluationError(f"{row.where}: the passage is empty")
    if PLACEHOLDER not in query:
        raise EvaluationError(f"{row.where}: the query has no {PLACEHOLDER}: {shorten(query)}")
    if not entities:
        raise EvaluationError(f"{row.where}: the row has no entities to choose from")
    if not answers:
        raise EvaluationError(f"{row.where}: the row has no answers: this is a test split without labels")


def _texts(row: Record, name: str) -> list[str]:
    """Return the distinct texts in a row's list field `name`, in order. Raises EvaluationError for a field that is not
    a list of non-empty texts.
    """
    values: Any = nested(row, row.value(name), name, list)
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise EvaluationError(f"{row.where}: the field {name!r} must hold non-empty texts, got {shorten(value)}")
        checked_text(value, f"{row.where}: the field {name!r}")
    return list(dict.fromkeys(values))


def _group(row: Record) -> str:
    if row.has("idx.query"):
        return f"{row.value('idx.passage')}/{row.value('idx.query')}"
    return row.where


def _queries(record: Record) -> Iterator[Record]:
    if not isinstance(record.values.get("passage"), dict):
        yield record
        return
    try:
        passage = record.value("passage.text")
        spans = record.value("passage.entities")
        entities = [passage[span["start"] : span["end"] + 1] for span in sorted(spans, key=lambda span: span["start"])]
        for number, question in enumerate(record.value("qas")):
            values = {
                "passage": passage,
                "query": question["query"],
                "entities": entities,
                "answers": [answer["text"] for answer in question.get("answers", ())],
                "idx": {"passage": record.values.get("idx", record.line), "query": question.get("idx", number)},
            }
            yield Record({**record.values, **values}, record.where, record.line)
    except (KeyError, TypeError) as error:
        raise EvaluationError(f"{record.where}: a passage, entity or question lacks the field {error}") from error


LAYOUT = Layout(lay_out_entities, FIELDS)
