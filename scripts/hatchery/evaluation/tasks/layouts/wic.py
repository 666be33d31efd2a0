"""WiC: two sentences with one marked word in each. The head `marked_words_classification` reads the vectors of both
words and of [CLS]. `start1`, `end1`, `start2` and `end2` are character positions in the raw sentences, so the sentences
stay unchanged.
"""

from collections.abc import Iterator

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record, shorten
from hatchery.evaluation.tasks.example import Example, MarkedSpan
from hatchery.evaluation.tasks.layout import Context, LayOut, Layout, label_value, missing_field

FIELDS = ("sentence1", "sentence2", "start1", "start2", "end1", "end2")


def lay_out_wic(context: Context) -> LayOut:
    """Return a function from a record to an example with two segments. If the head reads marked words, the example also
    has two marked spans.

    The function raises EvaluationError for a span that is outside its sentence, or that contains only white space.
    """
    marks_words = context.task.head.kind == "marked_words_classification"

    def lay_out(record: Record) -> Iterator[Example]:
        segments = tuple(context.text(record, f"sentence{number}") for number in (1, 2))
        spans = tuple(_span(record, index, segments[index], context) for index in (0, 1))
        group, scored, facts = context.traits(record)
        label = context.label(record, label_value(record, context.task))
        yield Example((segments,), label, group, scored, spans if marks_words else (), facts, record.where)

    return lay_out


def _span(record: Record, segment: int, text: str, context: Context) -> MarkedSpan:
    bounds: list[int] = []
    for name in (f"start{segment + 1}", f"end{segment + 1}"):
        if not record.has(name):
            raise missing_field(record, name, context.task.name)
        value = record.value(name)
        if type(value) is not int:
            raise EvaluationError(f"{record.where}: the field {name!r} must be a whole number, got {shorten(value)}")
        bounds.append(value)
    start, end = bounds
    if not (0 <= start < end <= len(text)) or not text[start:end].strip():
        raise EvaluationError(
            f"{record.where}: the word at [{start}, {end}) is outside 'sentence{segment + 1}', "
            f"which has {len(text)} characters"
        )
    return MarkedSpan(segment, start, end)


LAYOUT = Layout(lay_out_wic, FIELDS)
