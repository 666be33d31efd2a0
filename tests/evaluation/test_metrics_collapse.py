import numpy as np
import pytest

from hatchery.evaluation.finetuning.scored_sets import failure
from hatchery.evaluation.metrics.scored import Scored


def classes(labels, predictions):
    return Scored(np.array(labels), np.array(predictions), np.eye(3)[predictions])


def numbers(labels, predictions):
    return Scored(np.array(labels), np.array(predictions), np.array(predictions)[:, None])


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 0, 0], "majority_class"),
        ([0, 0, 1, 1], [1, 1, 1, 1], "majority_class"),
        ([0, 0, 1, 1], [0, 1, 0, 1], "zero_mcc"),
        ([0, 0, 1, 1], [0, 0, 0, 1], ""),
        # Wrong throughout is a correlation too: MSGS runs that follow the surface.
        ([0, 0, 1, 1], [1, 1, 0, 0], ""),
        # On rows of one label a constant answer proves nothing.
        ([1, 1], [1, 1], ""),
    ],
)
def test_collapsed_classifiers_are_named(labels, predictions, expected):
    assert failure(classes(labels, predictions)) == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_named(bad):
    scores = np.array([[0.0, 1.0], [bad, 0.0]])
    assert failure(Scored(np.array([0, 1]), np.array([1, 0]), scores)) == "nan"


def test_a_regression_without_variation_is_constant():
    assert failure(numbers([0.0, 5.0, 2.0], [2.5, 2.5, 2.5])) == "constant"
    assert failure(numbers([0.0, 5.0, 2.0], [2.5, 2.5001, 2.5])) == "constant"
    assert failure(numbers([0.0, 5.0, 2.0], [2.4, 2.6, 2.5])) == ""
    assert failure(numbers([0.0, 5.0], [np.nan, 1.0])) == "nan"


def test_independent_labels_collapse_when_every_target_gets_the_same():
    labels = np.array([[1, 0], [0, 1], [1, 0]], dtype=bool)
    scores = np.array([[1.0, -1.0], [1.0, -1.0], [1.0, -1.0]])
    assert failure(Scored(labels, scores >= 0, scores)) == "majority_class"
    assert failure(Scored(labels, -scores >= 0, -scores)) == "majority_class"
    varied = np.array([[1.0, -1.0], [-1.0, -1.0], [1.0, -1.0]])
    assert failure(Scored(labels, varied >= 0, varied)) == ""


def test_record_ranks_entities_and_may_answer_every_row_with_no():
    facts = [{"entity": name, "answers": "[]"} for name in "abc"]
    scores = np.array([[1.0, 0.2], [1.0, 0.1], [1.0, 0.0]])
    labels, predictions = np.array([1, 0, 0]), np.array([0, 0, 0])
    assert failure(Scored(labels, predictions, scores, ["q"] * 3, facts)) == ""
    assert failure(Scored(labels, predictions, np.tile([1.0, 0.0], (3, 1)), ["q"] * 3, facts)) == "constant"
