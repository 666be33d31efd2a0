"""Metrics of classes, numbers and groups, against scikit-learn, SciPy and values by hand."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sklearn_metrics
from sklearn.metrics import f1_score

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.scored_sets import failure
from hatchery.evaluation.metrics.classification import majority_accuracy
from hatchery.evaluation.metrics.grouped import exact_match, normalise_answer, token_f1
from hatchery.evaluation.metrics.scored import Scored, metric_called


def labelled(n_classes, least_label=0):
    row = st.tuples(st.integers(least_label, n_classes - 1), st.integers(0, n_classes - 1))
    return st.lists(row, min_size=1, max_size=40).map(lambda rows: scored(*np.array(rows, dtype=np.int64).T))


def scored(labels, predictions):
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    return Scored(labels, predictions, np.eye(int(max(predictions.max(), 1)) + 1)[predictions])


def value(name, rows):
    return metric_called(name)(rows)


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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The comparison is exact, so that tables made with scikit-learn keep their bytes.
        assert {name: value(name, rows) for name in expected} == expected


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


def numbers(labels, predictions):
    return Scored(np.array(labels), np.array(predictions), np.array(predictions)[:, None])


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [
        ([0, 0, 1, 1], [0, 0, 0, 0], "majority_class"),
        ([0, 0, 1, 1], [1, 1, 1, 1], "majority_class"),
        ([0, 0, 1, 1], [0, 1, 0, 1], "zero_mcc"),
        ([0, 0, 1, 1], [0, 0, 0, 1], ""),
        # All predictions are wrong, which is still a correlation: MSGS runs that use the surface feature.
        ([0, 0, 1, 1], [1, 1, 0, 0], ""),
        # A constant prediction is not a failure if all rows have one label.
        ([1, 1], [1, 1], ""),
    ],
)
def test_collapsed_classifiers_are_named(labels, predictions, expected):
    assert failure(scored(labels, predictions)) == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_named(bad):
    scores = np.array([[0.0, 1.0], [bad, 0.0]])
    assert failure(Scored(np.array([0, 1]), np.array([1, 0]), scores)) == "nan"


def test_a_regression_without_variation_is_constant():
    assert failure(numbers([0.0, 5.0, 2.0], [2.5, 2.5, 2.5])) == "constant"
    assert failure(numbers([0.0, 5.0, 2.0], [2.5, 2.5001, 2.5])) == "constant"
    assert failure(numbers([0.0, 5.0, 2.0], [2.4, 2.6, 2.5])) == ""
    # Predictions are constant if their range is below a thousandth of the labels' range.
    assert failure(numbers([0.0, 5.0, 2.0], [2.5, 2.504, 2.5])) == "constant"
    assert failure(numbers([0.0, 0.01, 0.02], [0.01, 0.0101, 0.01])) == ""
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


def independent(labels, predictions, names=()):
    labels, predictions = np.asarray(labels, dtype=bool), np.asarray(predictions, dtype=bool)
    return Scored(labels, predictions, np.where(predictions, 1.0, -1.0), label_names=names)


def random_decisions(seed, n_labels=4):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 30))
    labels = random.random((n, n_labels)) < random.random()
    labels[np.arange(n), random.integers(0, n_labels, n)] = True
    return labels, random.random((n, n_labels)) < random.random()


@pytest.mark.parametrize("seed", range(30))
def test_micro_f1_of_independent_labels_agrees_with_scikit_learn(seed):
    labels, predictions = random_decisions(seed)
    expected = f1_score(labels, predictions, average="micro", zero_division=0.0)
    assert value("micro_f1", independent(labels, predictions)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(10))
def test_a_target_of_an_unknown_label_counts_as_missed(seed):
    labels, predictions = random_decisions(seed)
    labels[0] = False
    # The oracle adds one label: the first target's label, which no prediction contains.
    extra = np.zeros((len(labels), 1), dtype=bool)
    truth = extra.copy()
    truth[0] = True
    expected = f1_score(np.hstack([labels, truth]), np.hstack([predictions, extra]), average="micro", zero_division=0.0)
    assert value("micro_f1", independent(labels, predictions)) == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_micro_f1_of_one_class_per_target_is_the_accuracy(pairs):
    labels, predictions = np.array(pairs).T
    rows = Scored(labels, predictions, np.eye(4)[predictions])
    assert value("micro_f1", rows) == value("accuracy", rows)


def test_the_accuracy_of_independent_labels_asks_for_the_best_scored_one():
    scores = np.array([[-2.0, -1.0], [3.0, 1.0], [0.5, -0.5]])
    rows = Scored(np.array([[0, 1], [0, 1], [1, 0]], dtype=bool), scores >= 0, scores)
    assert value("accuracy", rows) == pytest.approx(2 / 3)
    # One label of the first target is missed; the second target has one false positive.
    assert value("micro_f1", rows) == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))


def test_coreference_f1_is_that_of_label_one():
    rows = independent([[1, 0], [0, 1], [0, 1]], [[1, 0], [0, 1], [1, 0]])
    assert value("f1", rows) == pytest.approx(2 / 3)


SRL = ("ARG0", "ARG1", "C-ARG1", "R-ARG0")


@pytest.mark.parametrize("seed", range(20))
def test_clean_micro_f1_leaves_out_continued_and_reference_arguments(seed):
    labels, predictions = random_decisions(seed)
    expected = f1_score(labels[:, :2], predictions[:, :2], average="micro", zero_division=0.0)
    assert value("clean_micro_f1", independent(labels, predictions, SRL)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_clean_micro_f1_is_the_same_for_classes_and_their_indicators(seed):
    random = np.random.default_rng(seed)
    labels, predictions = random.integers(0, 4, (2, 12))
    eye = np.eye(4, dtype=bool)
    rows = Scored(labels, predictions, np.eye(4)[predictions], label_names=SRL)
    same = independent(eye[labels], eye[predictions], SRL)
    assert value("clean_micro_f1", rows) == pytest.approx(value("clean_micro_f1", same))


def test_clean_micro_f1_counts_a_target_of_an_unknown_label_as_missed_and_one_of_a_left_out_label_not_at_all():
    labels, predictions, eye = np.array([0, 2, -1, 1]), np.array([0, 0, 3, 1]), np.eye(4, dtype=bool)
    known = eye[labels] & (labels >= 0)[:, None]
    # Two predictions are right. There are 3 gold labels (ARG0, ARG1, unknown) and 3 predicted labels (ARG0 twice,
    # ARG1).
    for rows in (
        Scored(labels, predictions, eye[predictions], label_names=SRL),
        independent(known, eye[predictions], SRL),
    ):
        assert value("clean_micro_f1", rows) == pytest.approx(2 * 2 / (3 + 3))


def test_clean_micro_f1_of_left_out_labels_alone_is_0():
    assert value("clean_micro_f1", independent([[0, 0, 1, 0]], [[0, 0, 0, 1]], SRL)) == 0.0
    assert value("clean_micro_f1", Scored(np.array([2]), np.array([3]), np.eye(4)[[3]], label_names=SRL)) == 0.0


def test_clean_micro_f1_needs_the_names_of_the_labels():
    with pytest.raises(EvaluationError, match="clean_micro_f1: the labels have no names"):
        value("clean_micro_f1", independent([[1, 0]], [[1, 0]]))


@pytest.mark.parametrize("seed", range(20))
def test_correlations_agree_with_scipy(seed):
    random = np.random.default_rng(seed)
    # Few distinct values, so that ranks tie.
    labels, predictions = random.integers(0, 6, (2, 25)) / 2
    rows = numbers(labels, predictions)
    pearson, spearman = stats.pearsonr(labels, predictions)[0], stats.spearmanr(labels, predictions)[0]
    assert value("pearson", rows) == pytest.approx(pearson)
    assert value("spearman", rows) == pytest.approx(spearman)
    assert value("mean_of_pearson_and_spearman", rows) == pytest.approx((pearson + spearman) / 2)


@pytest.mark.parametrize(
    ("labels", "predictions"), [([1.0, 2.0], [3.0, 3.0]), ([2.0, 2.0], [1.0, 3.0]), ([1.0], [1.0])]
)
def test_a_constant_side_has_no_correlation_and_no_warning(labels, predictions):
    rows = numbers(labels, predictions)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value("pearson", rows) == value("spearman", rows) == 0.0


def test_classes_are_refused_where_numbers_are_expected():
    rows = Scored(np.array([0, 1]), np.array([0, 1]), np.zeros((2, 2)))
    with pytest.raises(EvaluationError, match="metric pearson: the labels are int64"):
        value("pearson", rows)


def multirc(order=slice(None)):
    """Return two questions: the first has one wrong prediction of three, the second only right ones."""
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
    rows = Scored(np.array([1, -1, -1]), np.array([1, 1, 1]), np.eye(2)[[1, 1, 1]], ["a", "b", "b"])
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
    # All rows prefer class 0. The best margin in q0 is a wrong entity's; in q1 it is "the Smith", normalised an answer.
    scores = [[3.0, 1.0], [1.0, 0.5], [2.0, 1.9], [2.0, 0.0]]
    rows = record(scores, ENTITIES, ANSWERS, GROUPS, order)
    assert rows.predictions.max() == 0
    assert value("record_exact_match", rows) == 0.5
    assert value("record_f1", rows) == 0.5


def test_record_gives_the_token_f1_of_the_best_fitting_answer():
    scores = [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    rows = record(scores, ["Smith", "Oslo", "the Smith", "Bergen"], ANSWERS, GROUPS)
    assert value("record_exact_match", rows) == 0.0
    # "Smith" shares one of two words with "Tom Smith"; Bergen shares none.
    assert value("record_f1", rows) == pytest.approx((2 / 3 + 0) / 2)
    unanswered = record(scores, ["Smith", "Oslo", "the Smith", "Bergen"], {**ANSWERS, "q1": []}, GROUPS)
    assert value("record_f1", unanswered) == pytest.approx((2 / 3 + 0) / 2)
    assert value("record_exact_match", unanswered) == 0.0


def test_record_reads_a_single_score_per_row_too():
    scores = np.array([[-2.0], [-1.0]])
    rows = record(np.hstack([np.zeros((2, 1)), scores]), ["Oslo", "Tom"], {"q": ["Tom"]}, ["q", "q"])
    single = Scored(rows.labels, rows.predictions, scores, rows.groups, rows.facts)
    assert value("record_f1", rows) == value("record_f1", single) == 1.0


def test_of_equal_scores_the_first_entity_counts():
    rows = record(np.zeros((2, 2)), ["Oslo", "Tom"], {"q": ["Oslo"]}, ["q", "q"])
    assert value("record_exact_match", rows) == 1.0
    # 40 entities per query, with alternating rows. The first entity of each query is its answer.
    names, groups = [f"name {place // 2}" for place in range(80)], ["q", "r"] * 40
    rows = record(np.zeros((80, 2)), names, {"q": ["name 0"], "r": ["name 0"]}, groups)
    assert value("record_exact_match", rows) == 1.0


def test_answers_are_normalised_as_in_squad():
    assert normalise_answer("  The U.S.  Army, an army! ") == "us army army"
    assert exact_match("A cat", "cat") == 1.0
    assert token_f1("the cat sat", "a cat lay") == 0.5
    assert token_f1("cat cat dog", "cat dog dog") == pytest.approx(2 * 2 / 6)
    # Both texts contain "cat" twice, so that two words are common.
    assert token_f1("cat cat dog", "cat cat") == pytest.approx(2 * 2 / 5)
    assert token_f1("", "cat") == token_f1("the", "a") == 0.0


def test_copa_compares_the_two_choices_of_an_item():
    scores = np.array([[0.2, 0.1], [-3.0, -2.0]])
    rows = Scored(np.array([0, 0]), scores.argmax(axis=1), scores)
    assert value("accuracy", rows) == 0.5


@pytest.mark.parametrize("metric", ["question_exact_match", "record_f1"])
def test_rows_without_a_group_are_one_clear_error(metric):
    rows = Scored(np.array([1]), np.array([1]), np.ones((1, 2)), [""], [{"entity": "a", "answers": "[]"}])
    with pytest.raises(EvaluationError, match=f"metric {metric}: a row belongs to no group"):
        value(metric, rows)


def test_record_without_entities_is_one_clear_error():
    rows = Scored(np.array([1]), np.array([1]), np.ones((1, 2)), ["q"], [{"answers": "[]"}])
    with pytest.raises(EvaluationError, match="the `facts` of a row lack 'entity'"):
        value("record_f1", rows)
