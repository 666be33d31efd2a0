import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.scored_sets import failure
from hatchery.evaluation.metrics.classification import majority_accuracy
from hatchery.evaluation.metrics.scored import Scored, metric_called

CLASS_METRICS = ("accuracy", "f1", "macro_f1", "mcc")


def labelled(n_classes, least_label=0):
    row = st.tuples(st.integers(least_label, n_classes - 1), st.integers(0, n_classes - 1))
    return st.lists(row, min_size=1, max_size=40).map(lambda rows: scored(*np.array(rows, dtype=np.int64).T))


def scored(labels, predictions):
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    return Scored(labels, predictions, np.eye(int(max(predictions.max(), 1)) + 1)[predictions])


def value(name, rows):
    return metric_called(name)(rows)


def counts(rows, positive):
    labels, predictions = rows.labels, rows.predictions
    true_positive = int(((labels == positive) & (predictions == positive)).sum())
    false_positive = int(((labels != positive) & (predictions == positive)).sum())
    false_negative = int(((labels == positive) & (predictions != positive)).sum())
    return true_positive, false_positive, false_negative


def f1_by_definition(rows, positive=1):
    tp, fp, fn = counts(rows, positive)
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def mcc_by_definition(rows):
    tp, fp, fn = counts(rows, 1)
    tn = len(rows.labels) - tp - fp - fn
    denominator = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / denominator if denominator else 0.0


@given(labelled(2))
def test_two_class_metrics_follow_their_definitions_without_warnings(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {name: value(name, rows) for name in CLASS_METRICS}
    assert values["accuracy"] == pytest.approx((rows.labels == rows.predictions).mean())
    assert values["f1"] == pytest.approx(f1_by_definition(rows))
    assert values["mcc"] == pytest.approx(mcc_by_definition(rows), abs=1e-9)


@given(labelled(4))
def test_metrics_of_several_classes_agree_with_scikit_learn(rows):
    labels, predictions = rows.labels, rows.predictions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "mcc": sklearn_metrics.matthews_corrcoef(labels, predictions),
            "accuracy": sklearn_metrics.accuracy_score(labels, predictions),
            "f1": sklearn_metrics.f1_score(labels == 1, predictions == 1, zero_division=0.0),
            "macro_f1": sklearn_metrics.f1_score(labels, predictions, average="macro", zero_division=0.0),
        }
    # Not approximately: tables made with scikit-learn keep their bytes.
    assert {name: value(name, rows) for name in expected} == expected


@given(labelled(4))
def test_macro_f1_is_the_mean_over_the_classes_that_occur(rows):
    classes = set(rows.labels.tolist()) | set(rows.predictions.tolist())
    expected = sum(f1_by_definition(rows, c) for c in classes) / len(classes)
    assert value("macro_f1", rows) == pytest.approx(expected)


@given(labelled(3, least_label=-1))
def test_a_label_that_the_model_does_not_know_is_always_wrong(rows):
    known = rows.labels >= 0
    right = (rows.labels == rows.predictions)[known].sum()
    assert value("accuracy", rows) == pytest.approx(right / len(rows.labels))


@given(labelled(2))
def test_the_joint_metric_is_the_mean_of_its_parts(rows):
    mean = (value("accuracy", rows) + value("f1", rows)) / 2
    assert value("mean_of_accuracy_and_f1", rows) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("table", "f1", "mcc"),  # TP, FP, FN, TN
    [
        ((5, 0, 0, 5), 1.0, 1.0),
        ((0, 5, 5, 0), 0.0, -1.0),
        ((6, 2, 1, 3), 12 / 15, (6 * 3 - 2 * 1) / math.sqrt(8 * 7 * 5 * 4)),
        ((7, 3, 0, 0), 14 / 17, 0.0),
        ((0, 0, 4, 6), 0.0, 0.0),
        ((0, 0, 0, 3), 0.0, 0.0),
    ],
)
def test_hand_made_tables_with_their_degenerate_denominators(table, f1, mcc):
    tp, fp, fn, tn = table
    rows = scored([1] * tp + [0] * fp + [1] * fn + [0] * tn, [1] * tp + [1] * fp + [0] * fn + [0] * tn)
    assert value("f1", rows) == pytest.approx(f1)
    assert value("mcc", rows) == pytest.approx(mcc)


def test_the_majority_baseline_looks_at_labels_alone():
    assert majority_accuracy(scored([0, 1, 1, -1], [0, 0, 0, 0])) == 0.5
    independent = Scored(np.array([[1, 0], [1, 0], [0, 1]], dtype=bool), np.zeros((3, 2), dtype=bool), np.zeros((3, 2)))
    assert majority_accuracy(independent) == pytest.approx(2 / 3)
    assert majority_accuracy(scored([-1, -1], [0, 1])) == 0.0


def test_wsc_of_babylm_gives_the_constant_answer_of_the_papers():
    rows = scored([0] * 51 + [1] * 32, [0] * 83)
    assert round(100 * majority_accuracy(rows), 1) == round(100 * value("accuracy", rows), 1) == 61.4


def test_numbers_are_refused_where_classes_are_expected():
    rows = Scored(np.array([0.5, 1.0]), np.array([0.5, 1.0]), np.zeros((2, 1)))
    with pytest.raises(
        EvaluationError, match=r"metric mcc: the labels are float64 of shape \(2,\), expected one class"
    ):
        value("mcc", rows)
    with pytest.raises(EvaluationError, match="got 0 predictions for 0 labels"):
        value("accuracy", Scored(np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros((0, 2))))


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
