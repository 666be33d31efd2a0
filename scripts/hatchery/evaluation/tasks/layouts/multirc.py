"""MultiRC: each answer is one example with the segments (paragraph, question, answer) (docs/papers/ltg-bert.md,
"Fine-tuning").

The answers to one question of a paragraph form a group. In the copy on the Hugging Face hub, each row is one answer. In
SuperGLUE's own release, each line is a passage with its questions and their answers. Both forms are read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.layout import Context, LayOut, Layout, label_value, nested

FIELDS = ("paragraph", "question", "answer", "idx", "passage")


def lay_out_answers(context: Context) -> LayOut:
    """Return a function that converts a record to examples, one example for each answer. An example has three segments:
    paragraph, question and answer.

    A record is either one answer, or a passage with a list of questions, each with a list of answers. The function
    raises EvaluationError if a passage lacks the field `questions`, or if a question lacks the field `answers`. An
    empty list raises no error and gives no example.
    """

    def lay_out(record: Record) -> Iterator[Example]:
        for row in _answers(record):
            paragraph, question = (context.text(row, name) for name in FIELDS[:2])
            # A few published answers are empty, so accept an empty answer.
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


def _objects(record: Record, parent: Mapping[str, object], name: str) -> Iterator[dict[str, object]]:
    if name not in parent:
        raise EvaluationError(f"{record.where}: there are no {name!r}; the object has: {', '.join(sorted(parent))}")
    children: Any = nested(record, parent[name], name, list)
    for child in children:
        nested(record, child, name, dict)
        yield child


LAYOUT = Layout(lay_out_answers, FIELDS)
