"""Metrics over rows that are judged together: the questions of MultiRC, the queries of ReCoRD (docs/papers/ltg-bert.md,
"Fine-tuning").

Rows of one group need not lie together. ReCoRD's rows carry the facts `entity` (what the row puts into the query) and
`answers` (JSON list of the right ones).
"""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.classification import POSITIVE_CLASS, classes, f1
from hatchery.evaluation.metrics.scored import Scored, metric

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@metric
def question_exact_match(scored: Scored) -> float:
    """Share of the groups whose rows are all right: MultiRC's exact match."""
    labels, predictions = classes(scored, "question_exact_match")
    right = (labels == predictions) & (labels >= 0)
    return float(np.mean([right[rows].all() for rows in _groups(scored, "question_exact_match")]))


@metric
def answer_f1(scored: Scored) -> float:
    """F1 of class 1 over the answers of all questions pooled: MultiRC's F1a."""
    return f1(scored)


@metric
def record_f1(scored: Scored) -> float:
    """Mean over queries of the token F1 of the best-scored entity with the answer that it fits best."""
    return _record(scored, token_f1, "record_f1")


@metric
def record_exact_match(scored: Scored) -> float:
    """Share of the queries whose best-scored entity is one of the answers after normalisation."""
    return _record(scored, exact_match, "record_exact_match")


def margins(scored: Scored) -> np.ndarray:
    """How much the scores speak for class 1, float [n]: its score minus that of class 0, or the only score."""
    scores = scored.scores
    return scores[:, POSITIVE_CLASS] - scores[:, 0] if scores.shape[1] > 1 else scores[:, 0]


def normalise_answer(text: str) -> str:
    """SQuAD's normalisation: lower case, without ASCII punctuation and English articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def token_f1(prediction: str, answer: str) -> float:
    """F1 of the bags of words of both after normalisation; 0 where they share none."""
    predicted, expected = (normalise_answer(text).split() for text in (prediction, answer))
    common = sum((Counter(predicted) & Counter(expected)).values())
    return 2 * common / (len(predicted) + len(expected)) if common else 0.0


def exact_match(prediction: str, answer: str) -> float:
    """1 where both are the same after normalisation, else 0."""
    return float(normalise_answer(prediction) == normalise_answer(answer))


def _record(scored: Scored, similarity: Callable[[str, str], float], name: str) -> float:
    if len(scored.facts) != len(scored.scores):
        raise EvaluationError(f"metric {name}: the rows have no facts, expected the entity and the answers of each")
    preference = margins(scored)
    values = []
    for rows in _groups(scored, name):
        # Of equal scores the first one in the file, whatever the order of the groups.
        facts = scored.facts[rows[int(np.argmax(preference[rows]))]]
        try:
            entity, answers = facts["entity"], json.loads(facts["answers"])
        except KeyError as error:
            raise EvaluationError(f"metric {name}: a row has no fact {error}, expected entity and answers") from error
        values.append(max((similarity(entity, answer) for answer in answers), default=0.0))
    return float(np.mean(values))


def _groups(scored: Scored, name: str) -> Iterator[np.ndarray]:
    """Positions of the rows of each group, ascending. Raises EvaluationError where rows belong to none."""
    if len(scored.groups) != len(scored.labels) or not all(scored.groups):
        raise EvaluationError(f"metric {name}: rows belong to no group, expected `group_fields` in the task")
    _, members = np.unique(np.asarray(scored.groups, dtype=object), return_inverse=True)
    order = np.argsort(members, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(members[order])) + 1)
