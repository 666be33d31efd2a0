"""COPA: each item becomes two model inputs, one per choice; the label is the index of the correct choice
(docs/papers/ltg-bert.md, "Fine-tuning").

The cause is always the first segment. If the question is "cause", the inputs are (choice, premise); if it is "effect",
they are (premise, choice).
"""

from collections.abc import Iterator

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, shorten
from hatchery.evaluation.tasks.example import Example
from hatchery.evaluation.tasks.layout import Context, LayOut, Layout, label_value

FIELDS = ("premise", "choice1", "choice2", "question")
CHOICES = 2


def lay_out_copa(context: Context) -> LayOut:
    """Return a function from a record to an example with two inputs; each input has two segments.

    The function raises EvaluationError if the record's question is neither "cause" nor "effect".
    """

    def lay_out(record: Record) -> Iterator[Example]:
        premise, *choices = (context.text(record, name) for name in FIELDS[:3])
        question = context.string(record, "question")
        if question not in ("cause", "effect"):
            raise EvaluationError(f"{record.where}: the question must be cause or effect, got {shorten(question)}")
        inputs = tuple((choice, premise) if question == "cause" else (premise, choice) for choice in choices)
        group, scored, facts = context.traits(record)
        label = context.label(record, label_value(record, context.task))
        yield Example(inputs, label, group, scored, (), facts, record.where)

    return lay_out


LAYOUT = Layout(lay_out_copa, FIELDS, CHOICES)
