"""Targets of four edge-probing tasks, extracted from sentences of CoNLL-2012 (OntoNotes 5) as in jiant's records.

Source: docs/papers/ltg-bert.md, "Records of edge probing". Parts of speech are pre-terminals. Each predicate with its
arguments is a record; the predicate's own span (V) is not a target. In coreference, all pairs of mentions in one
sentence are targets, except two mentions of the same words. Records without targets are omitted.
"""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any, Literal

from hatchery.evaluation.probing.conll2012 import AnnotatedSentence, LabelledSpan, read_gold_conll, read_hub_rows
from hatchery.raw.registration import RawSource

TaskName = Literal["pos", "ner", "srl", "coref"]
Target = dict[str, Any]

PREDICATE = "V"
SAME_CLUSTER, OTHER_CLUSTER = "1", "0"


def sentences_of(source: RawSource, name: str) -> Iterator[AnnotatedSentence]:
    """Return the sentences of a column file or a Parquet file. Raises EvaluationError naming file and line or row."""
    return (read_hub_rows if name.endswith(".parquet") else read_gold_conll)(source, name)


def part_of_speech_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """Yield one list of targets: all words of the sentence with their part-of-speech tags."""
    yield [{"span1": [i, i + 1], "label": tag} for i, tag in enumerate(sentence.parts_of_speech)]


def entity_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """Yield one list of targets: all annotated entities of the sentence with their types. Yield no list for a sentence
    without entities.
    """
    if sentence.entities:
        yield [{"span1": _edges(entity), "label": entity.label} for entity in sentence.entities]


def role_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """Yield a list of targets for each predicate that has arguments. Each target consists of two spans, the predicate
    and one argument, with the argument's role as label.
    """
    for frame in sentence.frames:
        predicate = _predicate(frame)
        arguments = [span for span in frame if span.label != PREDICATE]
        if predicate is not None and arguments:
            first = _edges(predicate)
            yield [{"span1": first, "span2": _edges(span), "label": span.label} for span in arguments]


def coreference_targets(sentence: AnnotatedSentence) -> Iterator[list[Target]]:
    """Yield one list of targets: all pairs of mentions with different spans; the label states whether the two mentions
    corefer. Yield no list for a sentence without such a pair.
    """
    pairs = [(a, b) for a, b in combinations(sentence.mentions, 2) if _edges(a) != _edges(b)]
    if pairs:
        yield [
            {
                "span1": _edges(first),
                "span2": _edges(second),
                "label": SAME_CLUSTER if first.label == second.label else OTHER_CLUSTER,
            }
            for first, second in pairs
        ]


TARGETS: dict[TaskName, Callable[[AnnotatedSentence], Iterator[list[Target]]]] = {
    "pos": part_of_speech_targets,
    "ner": entity_targets,
    "srl": role_targets,
    "coref": coreference_targets,
}


def _predicate(frame: tuple[LabelledSpan, ...]) -> LabelledSpan | None:
    return next((span for span in frame if span.label == PREDICATE), None)


def _edges(span: LabelledSpan) -> list[int]:
    return [span.start, span.end]
