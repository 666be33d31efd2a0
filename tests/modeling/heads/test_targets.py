"""Losses and predictions of all targets, compared with independent computations; labels are ignored or refused."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import EvaluationError
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE, IndependentLabels, Number, OneClass, RightChoice
from hatchery.modeling.heads.word_classifiers import OneSpan


def test_one_class_is_the_cross_entropy_of_the_labelled_units():
    scores, labels = torch.randn(2, 5, 4), torch.tensor([[0, -100, 3, 1, -100], [2, 2, -100, 0, 1]])
    loss = OneClass().loss(scores, labels)
    probabilities = np.exp(scores.double().numpy())
    probabilities /= probabilities.sum(-1, keepdims=True)
    places = [(i, j) for i in range(2) for j in range(5) if labels[i, j] != -100]
    expected = -sum(math.log(probabilities[i, j, labels[i, j]]) for i, j in places)
    assert float(loss.loss_sum) == pytest.approx(expected, rel=1e-5) and int(loss.n_labelled) == 7
    assert torch.equal(OneClass().predictions(scores), scores.argmax(-1))


def test_the_mean_is_torchs_mean_to_the_last_bit():
    """A loop that trains on `mean` therefore computes the same numbers as a loop that calls cross_entropy."""
    for n in (1, 7, 16, 32):
        scores, labels = torch.randn(n, 3, requires_grad=True), torch.randint(3, (n,))
        (ours,) = torch.autograd.grad(OneClass().loss(scores, labels).mean, scores)
        mean = F.cross_entropy(scores, labels)
        assert torch.equal(OneClass().loss(scores, labels).mean, mean)
        assert torch.equal(ours, torch.autograd.grad(mean, scores)[0])


@pytest.mark.parametrize(
    ("target", "scores", "labels"),
    [
        (OneClass(), torch.randn(3, 4), torch.full((3,), -100)),
        (IndependentLabels(), torch.randn(3, 4), torch.full((3, 4), -100)),
        (RightChoice(), torch.randn(3, 4), torch.full((3,), -100)),
        (RightChoice(independent=True), torch.randn(3, 4), torch.full((3,), -100)),
        (OneSpan(), torch.randn(3, 4, 2), torch.full((3, 2), -100)),
        (Number(), torch.randn(0, 1), torch.zeros(0)),
    ],
)
def test_a_batch_without_labels_costs_nothing(target, scores, labels):
    scores = scores.clone().requires_grad_()
    loss = target.loss(scores, labels)
    loss.mean.backward()
    assert (float(loss.mean.detach()), int(loss.n_labelled)) == (0.0, 0)
    assert not scores.grad.any()


def test_independent_labels_are_one_binary_decision_each():
    scores = torch.tensor([[0.3, -2.0, 0.0], [5.0, 1.0, -1.0]])
    labels = torch.tensor([[1, 0, 1], [-100, 1, 1]])
    loss = IndependentLabels().loss(scores, labels)
    sigmoid = 1 / (1 + np.exp(-scores.double().numpy()))
    expected = -np.log([sigmoid[0, 0], 1 - sigmoid[0, 1], sigmoid[0, 2], sigmoid[1, 1], sigmoid[1, 2]]).sum()
    assert float(loss.loss_sum) == pytest.approx(expected, rel=1e-6) and int(loss.n_labelled) == 5
    assert IndependentLabels().predictions(scores).tolist() == [[True, False, True], [True, True, False]]
    multi_hot = torch.tensor([[1, 0, 1], [0, 1, 1]])
    losses = [IndependentLabels().loss(scores, multi_hot.to(t)) for t in (torch.bool, torch.int64, torch.float32)]
    assert losses[0] == losses[1] == losses[2]


def test_numbers_are_compared_by_squared_error():
    scores, labels = torch.tensor([[2.0], [-1.0], [0.5]]), torch.tensor([1.0, 3.0, 0.0])
    assert float(Number().loss(scores, labels).loss_sum) == 1 + 16 + 0.25
    assert Number().predictions(scores).tolist() == [2.0, -1.0, 0.5]


def test_the_rectified_loss_sees_no_negative_scores_but_predictions_do():
    scores, labels = torch.tensor([[2.0], [-1.0]], requires_grad=True), torch.tensor([1.0, 3.0])
    target = Number(rectified_loss=True)
    loss = target.loss(scores, labels)
    loss.mean.backward()
    assert float(loss.loss_sum.detach()) == 1 + 9
    assert scores.grad.tolist() == [[1.0], [0.0]]
    assert target.predictions(scores).tolist() == [2.0, -1.0]


def test_choices_share_a_softmax_or_have_a_sigmoid_each():
    scores, labels = torch.tensor([[1.0, 0.0], [0.2, 0.7]]), torch.tensor([0, 1])
    softmax = -sum(math.log(math.exp(a) / (math.exp(a) + math.exp(b))) for a, b in ((1.0, 0.0), (0.7, 0.2)))
    assert float(RightChoice().loss(scores, labels).loss_sum) == pytest.approx(softmax, rel=1e-6)
    copa = RightChoice(independent=True).loss(scores, labels)
    target = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    expected = F.binary_cross_entropy(torch.sigmoid(scores), target, reduction="sum")
    assert float(copa.loss_sum) == pytest.approx(float(expected), rel=1e-6) and int(copa.n_labelled) == 4
    partly = RightChoice(independent=True).loss(scores, torch.tensor([0, -100]))
    assert int(partly.n_labelled) == 2
    assert RightChoice().predictions(scores).tolist() == [0, 1]


def test_a_span_costs_the_mean_of_its_two_ends():
    scores = torch.randn(3, 6, 2)
    loss = OneSpan().loss(scores, torch.tensor([[1, 4], [-100, -100], [5, 6]]))
    logs = scores.log_softmax(dim=1)
    expected = -(logs[0, 1, 0] + logs[0, 3, 1] + logs[2, 5, 0] + logs[2, 5, 1]) / 2
    torch.testing.assert_close(loss.loss_sum, expected)
    assert int(loss.n_labelled) == 2


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**16))
def test_the_predicted_span_is_the_best_of_all_that_are_allowed(length, longest, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, length, 2, generator=generator, dtype=torch.float64)
    # Some positions are no candidates, but each row has a candidate.
    allowed = torch.rand(2, length, generator=generator) < 0.7
    allowed[:, seed % length] = True
    scores = scores.where(allowed.unsqueeze(-1), IMPOSSIBLE_SCORE)
    for row, span in zip(scores, OneSpan(longest).predictions(scores).tolist(), strict=True):
        pairs = [(s, e) for s in range(length) for e in range(s + 1, min(s + longest, length) + 1)]
        assert tuple(span) == max(pairs, key=lambda pair: float(row[pair[0], 0] + row[pair[1] - 1, 1]))


CASES = [
    (OneClass(), torch.randn(2, 3), torch.tensor([0, 3]), "labels: got 3, expected 0 to 2"),
    (OneClass(), torch.randn(2, 3), torch.tensor([0, 1, 2]), "labels: got shape"),
    (IndependentLabels(), torch.randn(1, 3), torch.tensor([[0, 1, 2]]), "expected 0 or 1"),
    (Number(), torch.randn(2, 1), torch.tensor([0.0, float("nan")]), "not finite"),
    (OneSpan(), torch.randn(1, 6, 2), torch.tensor([[3, 3]]), r"labels: got \[3, 3\]"),
    (OneSpan(), torch.randn(1, 6, 2), torch.tensor([[3, -100]]), r"labels: got \[3, -100\]"),
    (OneSpan(), torch.randn(1, 6, 2), torch.tensor([[3, 7]]), "labels: got 6"),
]


@pytest.mark.parametrize(("target", "scores", "labels", "message"), CASES)
def test_labels_that_do_not_fit_are_refused(target, scores, labels, message):
    with pytest.raises(EvaluationError, match=message) as caught:
        target.loss(scores, labels)
    assert "\n" not in str(caught.value)
