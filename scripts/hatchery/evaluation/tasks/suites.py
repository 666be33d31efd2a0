"""Recognising a file of another task by its fields, so that a mix-up is one clear error and not a wrong number.

Some mix-ups would go through in silence: an MSGS file has a `sentence` and may have a `label`, as a CoLA task expects,
and a WiC file has two sentences, as MRPC does. Fields that no other suite has betray them.
"""

from collections.abc import Collection

from hatchery.errors import EvaluationError
from hatchery.evaluation.json_lines import Record

# The first entry whose fields are all there names the file.
_SIGNATURES: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (suite, frozenset(fields.split()))
    for suite, fields in (
        ("minimal pairs (BLiMP or the supplement)", "sentence_good sentence_bad"),
        ("MSGS", "sentence linguistic_feature_label surface_feature_label"),
        ("edge probing (jiant)", "text targets"),
        ("WiC", "word sentence1 sentence2"),
        ("WSC", "text span1_text span2_text"),
        ("WSC", "text target"),
        ("COPA", "premise choice1 choice2"),
        ("ReCoRD", "passage query entities"),
        ("ReCoRD (original)", "passage qas"),
        ("MultiRC", "paragraph question answer"),
        ("BoolQ", "question passage"),
        ("HANS", "premise hypothesis heuristic"),
        ("HANS (original)", "gold_label sentence1 sentence2 heuristic"),
        ("QNLI", "question sentence"),
        ("QQP", "question1 question2"),
        ("MNLI, CB or SuperGLUE's RTE", "premise hypothesis"),
        ("MRPC (original)", "Quality #1.String #2.String"),
        ("MRPC, RTE, STS-B or WNLI", "sentence1 sentence2"),
        ("CoLA or SST-2", "sentence"),
    )
)
# Fields of one suite only. A task that uses none of them has got the wrong file, even if its own fields are there.
_DISTINCTIVE: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (suite, frozenset(fields.split()))
    for suite, fields in (
        ("minimal pairs (BLiMP or the supplement)", "sentence_good sentence_bad"),
        ("MSGS", "linguistic_feature_label surface_feature_label condition"),
        ("edge probing (jiant)", "targets"),
        ("WiC", "start1 start2 end1 end2"),
        ("WSC", "span1_text span2_text"),
        ("COPA", "choice1 choice2"),
        ("HANS", "heuristic subcase template"),
    )
)


def guess_suite(names: Collection[str]) -> str | None:
    """The suite or task whose fields these are, or None."""
    dotted = {name.replace(" ", ".") for name in names}
    return next((suite for suite, fields in _SIGNATURES if fields <= dotted), None)


def check_suite(record: Record, used: Collection[str], task_name: str) -> None:
    """Raise EvaluationError when the record's fields betray a suite of which the task uses no field."""
    names = set(record.names)
    for suite, fields in _DISTINCTIVE:
        if len(fields & names) >= 2 and fields.isdisjoint(used):
            raise EvaluationError(
                f"{record.where}: this is a file of {suite}, the task {task_name!r} uses none of its fields "
                f"{', '.join(sorted(fields & names))}"
            )


def missing_field(record: Record, name: str, task_name: str) -> EvaluationError:
    """The error for a record without the field `name`, which names the suite that the record seems to be of."""
    suite = guess_suite(record.names)
    guess = f"; it looks like a file of {suite}" if suite else ""
    return EvaluationError(
        f"{record.where}: the field {name!r} of the task {task_name!r} is missing; "
        f"the record has: {', '.join(record.names)}{guess}"
    )
