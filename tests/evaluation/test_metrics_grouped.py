import json

import numpy as np
import pytest

from hatchery.errors import EvaluationError
from hatchery.evaluation.metrics.grouped import exact_match, normalise_answer, token_f1
from hatchery.evaluation.metrics.scored import Scored, metric_called


def value(name, rows):
    return metric_called(name)(rows)


def multirc(order=slice(None)):
    """Two questions: the first has one wrong answer of three, the second is all right."""
    labels, predictions = np.array([1, 0, 1, 0, 1]), np.array([1, 1, 1, 0, 1])
    groups = np.array(["p0/q0", "p0/q0", "p0/q0", "p0/q1", "p0/q1"])
    return Scored(labels[order], predictions[order], np.eye(2)[predictions][order], groups[order].tolist())


def test_multirc_counts_questions_that_are_all_right_and_pools_answers():
    assert value("question_exact_match", multirc()) == 0.5
    assert value("answer_f1", multirc()) == pytest.approx(2 * 3 / (2 * 3 + 1))


@pytest.mark.parametrize("seed", range(5))
def test_multirc_does_not_depend_on_the_order_of_the_rows(seed):
    order = np.random.default_rng(seed).permutation(5)
    assert value("question_exact_match", multirc(order)) == 0.5


def test_an_unknown_label_makes_its_question_wrong():
    rows = Scored(np.array([1, -1]), np.array([1, 1]), np.eye(2)[[1, 1]], ["a", "b"])
    assert value("question_exact_match", rows) == 0.5


def record(scores, entities, answers, groups, order=slice(None)):
    facts = [
        {"entity": entity, "answers": json.dumps(answers[group])}
        for entity, group in zip(entities, groups, strict=True)
    ]
    labels = np.array([int(entity in answers[group]) for entity, group in zip(entities, groups, strict=True)])
    scores = np.asarray(scores, dtype=float)
    chosen = np.arange(len(labels))[order]
    return Scored(
        labels[chosen],
        scores.argmax(axis=1)[chosen],
        scores[chosen],
        [groups[i] for i in chosen],
        [facts[i] for i in chosen],
    )


ENTITIES = ["Tom Smith", "Oslo", "the Smith", "Bergen"]
GROUPS = ["q0", "q0", "q1", "q1"]
ANSWERS = {"q0": ["Tom Smith"], "q1": ["Smith!", "Tom Smith"]}


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 0, 2, 1]])
def test_record_takes_the_best_scored_entity_though_no_row_passes_one_half(order):
    # All margins speak for class 0; of q0 the wrong entity is preferred, of q1 one that is an answer once normalised.
    scores = [[3.0, 1.0], [1.0, 0.5], [2.0, 1.9], [2.0, 0.0]]
    rows = record(scores, ENTITIES, ANSWERS, GROUPS, order)
    assert rows.predictions.max() == 0
    assert value("record_exact_match", rows) == 0.5
    assert value("record_f1", rows) == 0.5


def test_record_gives_the_token_f1_of_the_best_fitting_answer():
    scores = [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    rows = record(scores, ["Smith", "Oslo", "the Smith", "Bergen"], ANSWERS, GROUPS)
    assert value("record_exact_match", rows) == 0.0
    # "Smith" shares one of two words with "Tom Smith"; Bergen shares nothing.
    assert value("record_f1", rows) == pytest.approx((2 / 3 + 0) / 2)


def test_record_reads_a_single_score_per_row_too():
    scores = np.array([[-2.0], [-1.0]])
    rows = record(np.hstack([np.zeros((2, 1)), scores]), ["Oslo", "Tom"], {"q": ["Tom"]}, ["q", "q"])
    single = Scored(rows.labels, rows.predictions, scores, rows.groups, rows.facts)
    assert value("record_f1", rows) == value("record_f1", single) == 1.0


def test_of_equal_scores_the_first_entity_counts():
    rows = record(np.zeros((2, 2)), ["Oslo", "Tom"], {"q": ["Oslo"]}, ["q", "q"])
    assert value("record_exact_match", rows) == 1.0


def test_answers_are_normalised_as_in_squad():
    assert normalise_answer("  The U.S.  Army, an army! ") == "us army army"
    assert exact_match("A cat", "cat") == 1.0
    assert token_f1("the cat sat", "a cat lay") == 0.5
    assert token_f1("cat cat dog", "cat dog dog") == pytest.approx(2 * 2 / 6)
    assert token_f1("", "cat") == 0.0


def test_copa_compares_the_two_choices_of_an_item():
    scores = np.array([[0.2, 0.1], [-3.0, -2.0]])
    rows = Scored(np.array([0, 0]), scores.argmax(axis=1), scores)
    assert value("accuracy", rows) == 0.5


@pytest.mark.parametrize("metric", ["question_exact_match", "record_f1"])
def test_rows_without_a_group_are_one_clear_error(metric):
    rows = Scored(np.array([1]), np.array([1]), np.ones((1, 2)), [""], [{"entity": "a", "answers": "[]"}])
    with pytest.raises(EvaluationError, match=f"metric {metric}: rows belong to no group"):
        value(metric, rows)


def test_record_without_entities_is_one_clear_error():
    rows = Scored(np.array([1]), np.array([1]), np.ones((1, 2)), ["q"], [{"answers": "[]"}])
    with pytest.raises(EvaluationError, match="a row has no fact 'entity'"):
        value("record_f1", rows)
