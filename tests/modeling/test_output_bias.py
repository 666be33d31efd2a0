"""The values of priors in output layers."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import ModelError
from hatchery.modeling.count_distributions import entropy, label_smoothed_distribution, smoothed_distribution
from hatchery.modeling.output_bias import (
    SPARE_ROW_BIAS,
    log_prior,
    marginal_bias,
    prevalence_logit,
    target_mean,
)

COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


def softmax(bias: torch.Tensor) -> np.ndarray:
    return torch.softmax(bias.double(), dim=0).numpy()


@given(COUNTS, st.floats(1e-3, 10))
def test_the_softmax_of_the_bias_is_the_smoothed_distribution(counts: list[int], smoothing: float) -> None:
    expected = (np.array(counts) + smoothing) / (sum(counts) + smoothing * len(counts))
    distribution = smoothed_distribution(counts, smoothing)
    bias = log_prior(distribution)
    assert distribution.sum() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(distribution, expected, rtol=1e-9)
    np.testing.assert_allclose(softmax(bias), expected, atol=1e-6)
    assert bias.dtype == torch.float32 and torch.isfinite(bias).all()


@given(COUNTS)
def test_centring_changes_no_probability(counts: list[int]) -> None:
    distribution = smoothed_distribution(counts)
    centred = log_prior(distribution, centred=True)
    np.testing.assert_allclose(softmax(centred), distribution, atol=1e-6)
    assert centred.mean().item() == pytest.approx(0, abs=1e-5)


def test_an_id_that_is_never_a_label_gets_the_share_of_the_smoothing() -> None:
    bias = log_prior(smoothed_distribution([0, 0, 90, 10], smoothing=0.5))
    assert bias[0].item() == bias[1].item() == pytest.approx(math.log(0.5 / 102))


def test_label_smoothing_mixes_the_uniform_distribution_in() -> None:
    counts, share = np.array([6, 3, 1, 0]), 0.1
    distribution = label_smoothed_distribution(counts, share)
    np.testing.assert_allclose(distribution, 0.9 * counts / 10 + 0.025)
    # This distribution minimises the smoothed loss without context: the gradient of the logits is zero.
    logits = torch.from_numpy(np.log(distribution)).requires_grad_()
    targets = torch.from_numpy(np.repeat(np.arange(4), counts))
    F.cross_entropy(logits.expand(10, 4), targets, label_smoothing=share).backward()
    assert logits.grad.abs().max() < 1e-12


def test_spare_rows_are_finite_impossible_and_leave_the_others_alone() -> None:
    distribution = smoothed_distribution([5, 3, 0])
    bias = log_prior(distribution, n_rows=8, centred=True)
    assert bias.shape == (8,) and torch.all(bias[3:] == SPARE_ROW_BIAS)
    np.testing.assert_allclose(softmax(bias)[:3], distribution, atol=1e-6)
    assert torch.all(torch.softmax(bias, dim=0)[3:] == 0)
    smoothed = F.cross_entropy(bias[None], torch.tensor([0]), label_smoothing=0.1)
    assert torch.isfinite(smoothed)


def test_what_would_give_an_infinite_bias_is_refused() -> None:
    with pytest.raises(ModelError, match="a vocabulary entry has the count 0"):
        smoothed_distribution([3, 0], smoothing=0)
    with pytest.raises(ModelError, match="a vocabulary entry has the count 0"):
        label_smoothed_distribution([3, 0], 0.0)
    with pytest.raises(ModelError, match="all counts are 0"):
        label_smoothed_distribution([0, 0], 0.1)
    with pytest.raises(ModelError, match="a vocabulary entry has the probability 0"):
        log_prior(np.array([1.0, 0.0]))
    with pytest.raises(ModelError, match="has 1 rows"):
        log_prior(np.array([0.5, 0.5]), n_rows=1)
    with pytest.raises(ModelError, match="smoothing: got -1"):
        smoothed_distribution([1], -1)
    with pytest.raises(ModelError, match="negative"):
        smoothed_distribution([1, -1])
    with pytest.raises(ModelError, match="in all examples or in no example"):
        prevalence_logit([0], 4, smoothing=0)
    with pytest.raises(ModelError, match="at most 4"):
        prevalence_logit([5], 4)
    with pytest.raises(ModelError, match="targets"):
        target_mean([])


def test_balanced_classes_give_no_preference() -> None:
    classes = marginal_bias("softmax", np.array([0, 1] * 50), 2)
    assert classes[0].item() == classes[1].item()
    assert marginal_bias("binary", np.array([0, 1] * 50), 1).tolist() == [0.0]


def test_every_kind_of_task_starts_at_the_marginal_of_its_targets() -> None:
    classes = np.array([[0, 0, 1, -100], [0, 2, 0, -100]])
    np.testing.assert_allclose(softmax(marginal_bias("softmax", classes, 3)), [5 / 9, 2 / 9, 2 / 9], atol=1e-6)
    binary = np.array([1, 1, 1, 0, 1, 1])
    assert torch.sigmoid(marginal_bias("binary", binary, 1)).item() == pytest.approx(6 / 8)
    labels = np.array([[1, 0], [1, 0], [0, 0], [1, 0]])
    np.testing.assert_allclose(torch.sigmoid(marginal_bias("multi_label", labels, 2)), [4 / 6, 1 / 6], rtol=1e-6)
    assert marginal_bias("regression", np.array([1.0, 2.0, 4.5]), 1).tolist() == [2.5]
    assert marginal_bias("regression", np.array([[1.0, 7.0], [2.0, 9.0]]), 2).tolist() == [1.5, 8.0]
    # With the smoothing 2 instead of 1.
    np.testing.assert_allclose(softmax(marginal_bias("softmax", classes, 3, 2.0)), [6 / 12, 3 / 12, 3 / 12], atol=1e-6)
    assert torch.sigmoid(marginal_bias("binary", binary, 1, 2.0)).item() == pytest.approx(7 / 10)
    with pytest.raises(ModelError, match="got class 3"):
        marginal_bias("softmax", np.array([3]), 3)
    with pytest.raises(ModelError, match="for 2 outputs, expected 3"):
        marginal_bias("multi_label", labels, 3)
    with pytest.raises(ModelError, match="only 0 and 1"):
        marginal_bias("binary", np.array([2]), 1)


def test_multi_label_loss_starts_at_the_entropy_of_the_prevalences() -> None:
    labels = np.zeros((1000, 3))
    labels[:50, 0], labels[:200, 1], labels[:500, 2] = 1, 1, 1
    bias = marginal_bias("multi_label", labels, 3, smoothing=1e-9)
    loss = F.binary_cross_entropy_with_logits(bias.expand(1000, 3), torch.from_numpy(labels).float())
    expected = np.mean([entropy(np.array([p, 1 - p])) for p in (0.05, 0.2, 0.5)])
    assert loss.item() == pytest.approx(expected, rel=1e-5)
