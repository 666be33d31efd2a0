"""The layouts of passages: one example per answer or entity, judged by question (docs/papers/ltg-bert.md,
"Fine-tuning").

- MultiRC: (paragraph, question, answer). The group is the question: paragraph and question index.
- ReCoRD, unrolled: (passage, query, entity), one example per candidate entity. The query's @placeholder is filled with
  the entity, and the label says whether it is among the answers (1). The summary lines of a passage follow its text
  behind `@highlight`; they become sentences of their own.

Both are read from flat rows, as the hub has them, or from SuperGLUE's own release with one passage per line: with its
questions and answers inside, or with entities that are spans with inclusive ends.
"""

import json
from collections.abc import Iterator
from typing import Any

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, checked_text, shorten
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.labels import label_value
from hatchery.evaluation.tasks.layouts.layout import Context, LayOut, nested

MULTIRC_FIELDS = ("paragraph", "question", "answer", "idx", "passage")


def lay_out_multirc(context: Context) -> LayOut:
    """Examples with three segments, one per answer. Raises EvaluationError naming a missing part of a passage."""

    def lay_out(record: Record) -> Iterator[Example]:
        for row in _answers(record):
            paragraph, question = (context.text(row, name) for name in MULTIRC_FIELDS[:2])
            # A few of the published answers are empty.
            answer = context.normalise(context.string(row, "answer"))
            group = f"{row.value('idx.paragraph')}/{row.value('idx.question')}"
            _, scored, facts = context.traits(row)
            label = context.label(row, label_value(row, context.task))
            yield Example(((paragraph, question, answer),), label, group, scored, (), facts, row.where)

    return lay_out


def _answers(record: Record) -> Iterator[Record]:
    if not isinstance(record.values.get("passage"), dict):
        yield record
        return
    passage: Any = record.values["passage"]
    paragraph = record.values.get("idx", record.line)
    for number, question in enumerate(_objects(record, passage, "questions")):
        for answer in _objects(record, question, "answers"):
            values = {
                **{name: value for name, value in answer.items() if name not in ("text", "idx")},
                "idx": {"paragraph": paragraph, "question": question.get("idx", number), "answer": answer.get("idx")},
                "paragraph": passage.get("text"),
                "question": question.get("question"),
                "answer": answer.get("text"),
            }
            yield Record(values, record.where, record.line)


def _objects(record: Record, parent: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    if name not in parent:
        raise EvaluationError(f"{record.where}: there are no {name!r}; the object has: {', '.join(sorted(parent))}")
    children: Any = nested(record, parent[name], name, list)
    for child in children:
        nested(record, child, name, dict)
        yield child


RECORD_FIELDS = ("passage", "query", "entities", "answers", "idx", "qas")
PLACEHOLDER = "@placeholder"
_HIGHLIGHT = "\n@highlight\n"
_ENDS = (".", "?", "!", '"', "'")


def lay_out_record(context: Context) -> LayOut:
    """Examples with three segments, `facts` entity and answers (a JSON list) as they are written, group the query.

    The text around the placeholder and the entity are normalised apart, so that each is done once.
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
    """The passage with its summary lines as sentences: a full stop where the line before has no mark at its end."""
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
    """The distinct texts of a list, in order."""
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
