import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.evaluation.metrics.classification import METRICS, failure


def labelled(n_classes):
    row = st.tuples(st.integers(0, n_classes - 1), st.integers(0, n_classes - 1))
    return st.lists(row, min_size=1, max_size=40).map(lambda rows: np.array(rows).T)


def counts(labels, predictions, positive):
    true_positive = int(((labels == positive) & (predictions == positive)).sum())
    false_positive = int(((labels != positive) & (predictions == positive)).sum())
    false_negative = int(((labels == positive) & (predictions != positive)).sum())
    return true_positive, false_positive, false_negative


def f1_by_definition(labels, predictions, positive=1):
    tp, fp, fn = counts(labels, predictions, positive)
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0


def mcc_by_definition(labels, predictions):
    tp, fp, fn = counts(labels, predictions, 1)
    tn = len(labels) - tp - fp - fn
    denominator = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return (tp * tn - fp * fn) / denominator if denominator else 0.0


@given(labelled(2))
def test_two_class_metrics_follow_their_definitions(rows):
    labels, predictions = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = {name: metric(labels, predictions) for name, metric in METRICS.items()}
    assert values["accuracy"] == pytest.approx((labels == predictions).mean())
    assert values["f1"] == pytest.approx(f1_by_definition(labels, predictions))
    assert values["mcc"] == pytest.approx(mcc_by_definition(labels, predictions), abs=1e-9)


@given(labelled(4))
def test_macro_f1_is_the_mean_over_the_classes_that_occur(rows):
    labels, predictions = rows
    classes = set(labels.tolist()) | set(predictions.tolist())
    expected = sum(f1_by_definition(labels, predictions, c) for c in classes) / len(classes)
    assert METRICS["macro_f1"](labels, predictions) == pytest.approx(expected)


@given(labelled(4))
def test_f1_reads_index_one_as_the_positive_class_of_many(rows):
    labels, predictions = rows
    assert METRICS["f1"](labels, predictions) == pytest.approx(f1_by_definition(labels, predictions))


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
    labels = np.array([1] * tp + [0] * fp + [1] * fn + [0] * tn)
    predictions = np.array([1] * tp + [1] * fp + [0] * fn + [0] * tn)
    assert METRICS["f1"](labels, predictions) == pytest.approx(f1)
    assert METRICS["mcc"](labels, predictions) == pytest.approx(mcc)


def test_collapsed_runs_are_named():
    labels = np.array([0, 0, 1, 1])
    assert failure(labels, np.array([0, 0, 0, 0])) == "majority_class"
    assert failure(labels, np.array([0, 1, 0, 1])) == "zero_mcc"
    assert failure(labels, np.array([0, 0, 0, 1])) == ""
    # On rows of one label a constant answer proves nothing.
    assert failure(np.array([1, 1]), np.array([1, 1])) == ""
