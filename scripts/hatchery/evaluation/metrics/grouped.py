"""Metrics over groups of rows (the questions of MultiRC, the queries of ReCoRD), and the F1 of edge probing
(docs/papers/ltg-bert.md, "Fine-tuning").

Rows of one group need not be adjacent. ReCoRD's rows have the facts `entity` (the entity that fills the query) and
`answers` (a JSON list of the correct entities).

The micro-averaged F1 of edge probing (Tenney et al. 2019; docs/papers/ltg-bert.md, "Records of edge probing") counts
pairs of a target and a label. Each pair is a yes-or-no decision: yes if the probability is above 0.5, that is, if the
score (logit) is above 0. Later variants in jiant differ: their threshold is the score 0.5, or they average F1 with
accuracy.
"""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.classification import POSITIVE_CLASS, accuracy, classes, f1, independent
from hatchery.evaluation.metrics.scored import Scored, metric

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@metric
def question_exact_match(scored: Scored) -> float:
    """Fraction of the groups of rows, such as MultiRC's questions, in which all rows are predicted correctly: MultiRC's
    exact match.
    """
    labels, predictions = classes(scored, "question_exact_match")
    right = (labels == predictions) & (labels >= 0)
    return float(np.mean([right[rows].all() for rows in _groups(scored, "question_exact_match")]))


@metric
def answer_f1(scored: Scored) -> float:
    """F1 of class 1 over the pooled answers of all questions: MultiRC's F1a."""
    return f1(scored)


@metric
def record_f1(scored: Scored) -> float:
    """Mean over queries of the token F1 between the entity with the highest score and the most similar answer."""
    return _record(scored, token_f1, "record_f1")


@metric
def record_exact_match(scored: Scored) -> float:
    """Fraction of the queries whose entity with the highest score equals one of the answers. Entity and answers are
    normalised by `normalise_answer`.
    """
    return _record(scored, exact_match, "record_exact_match")


def margins(scored: Scored) -> np.ndarray:
    """Return the evidence for class 1, float [n]: the score of class 1 minus the score of class 0. If there is only one
    score per row, return this score.
    """
    scores = scored.scores
    return scores[:, POSITIVE_CLASS] - scores[:, 0] if scores.shape[1] > 1 else scores[:, 0]


def normalise_answer(text: str) -> str:
    """Return SQuAD's normalised form: lower case, without ASCII punctuation and English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def token_f1(prediction: str, answer: str) -> float:
    """Return the F1 of the bags of words of both texts after normalisation; 0 if they share no word."""
    predicted, expected = (normalise_answer(text).split() for text in (prediction, answer))
    common = sum((Counter(predicted) & Counter(expected)).values())
    return 2 * common / (len(predicted) + len(expected)) if common else 0.0


def exact_match(prediction: str, answer: str) -> float:
    """Return 1 if both texts are equal after normalisation, else 0."""
    return float(normalise_answer(prediction) == normalise_answer(answer))


def _record(scored: Scored, similarity: Callable[[str, str], float], name: str) -> float:
    if len(scored.facts) != len(scored.scores):
        raise EvaluationError(f"metric {name}: the rows have no `facts`, expected entity and answers of each row")
    preference = margins(scored)
    values = []
    for rows in _groups(scored, name):
        # Among entities with equal scores, predict the first entity in the file.
        facts = scored.facts[rows[int(np.argmax(preference[rows]))]]
        try:
            entity, answers = facts["entity"], json.loads(facts["answers"])
        except KeyError as error:
            raise EvaluationError(
                f"metric {name}: the `facts` of a row lack {error}, expected entity and answers"
            ) from error
        values.append(max((similarity(entity, answer) for answer in answers), default=0.0))
    return float(np.mean(values))


def _groups(scored: Scored, name: str) -> Iterator[np.ndarray]:
    """Yield the indices of each group's rows, ascending. Raises EvaluationError if a row belongs to no group."""
    if len(scored.groups) != len(scored.labels) or not all(scored.groups):
        raise EvaluationError(f"metric {name}: a row belongs to no group; set `group_fields` in the task")
    _, members = np.unique(np.asarray(scored.groups, dtype=object), return_inverse=True)
    order = np.argsort(members, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(members[order])) + 1)


# Prefixes of SRL arguments that `clean_micro_f1` omits: continued (C-ARG1) and reference (R-ARG0) arguments.
UNCLEAN_PREFIXES = ("C-", "R-")


@metric
def micro_f1(scored: Scored) -> float:
    """F1 over the yes-or-no decisions about all pairs of a target and a label. With one class per target, this F1
    equals the accuracy.

    If no true label of a target is in the model's label set, one label counts as missed, because dropping the target
    would raise the F1. If at least one true label is in the label set, the target's true labels outside the set are not
    counted.
    """
    if not independent(scored):
        return accuracy(scored)
    unknown = int((~scored.labels.any(axis=1)).sum())
    return _pooled_f1(scored.labels, scored.predictions, unknown)


@metric
def clean_micro_f1(scored: Scored) -> float:
    """`micro_f1` without the decisions about labels that begin with C- or R- (continued and reference arguments in
    semantic role labelling).

    Raises EvaluationError if `scored` has no label names.
    """
    names = scored.label_names
    if not names:
        raise EvaluationError("metric clean_micro_f1: the labels have no names, expected the names of semantic roles")
    kept = np.array([not name.startswith(UNCLEAN_PREFIXES) for name in names])
    if independent(scored):
        unknown = int((~scored.labels.any(axis=1)).sum())
        return _pooled_f1(scored.labels[:, kept], scored.predictions[:, kept], unknown)
    labels, predictions = classes(scored, "clean_micro_f1")
    is_known = labels >= 0
    true_positive = int((is_known & (labels == predictions) & kept[predictions]).sum())
    decisions = int(kept[labels[is_known]].sum()) + int((~is_known).sum()) + int(kept[predictions].sum())
    return 2 * true_positive / decisions if decisions else 0.0


def _pooled_f1(labels: np.ndarray, predictions: np.ndarray, missed: int) -> float:
    true_positive = int((labels & predictions).sum())
    decisions = int(labels.sum()) + int(predictions.sum()) + missed
    return 2 * true_positive / decisions if decisions else 0.0
