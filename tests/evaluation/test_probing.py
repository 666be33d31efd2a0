"""What a probe can know: nothing of random features, everything of the labels themselves; and the majority baseline."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from hatchery.errors import EvaluationError
from hatchery.evaluation.probing.formats import majority_baseline
from hatchery.modeling.heads.span_classifier import ProbeOptions, SpanHead
from hatchery.modeling.heads.targets import IndependentLabels

N_LABELS, WIDTH, LAYERS = 4, 16, 3


def trained_predictions(features: Tensor, labels: Tensor, n_train: int, steps: int) -> np.ndarray:
    """Predictions for the rows behind `n_train` of a probe on `features` [L, n, D], one token per span."""
    torch.manual_seed(3)
    head = SpanHead(WIDTH, LAYERS, N_LABELS, ProbeOptions(probe_size=32))
    optimizer = torch.optim.AdamW(head.parameters(), lr=6e-3, weight_decay=0.01)
    target, hot = IndependentLabels(), torch.nn.functional.one_hot(labels, N_LABELS)

    def scores(rows: Tensor) -> Tensor:
        spans = torch.stack([torch.arange(len(rows)), torch.arange(len(rows)) + 1], dim=-1).unsqueeze(1)
        return head(features[:, rows].unsqueeze(1), torch.zeros(len(rows), dtype=torch.int64), spans, 1)

    for step in range(steps):
        rows = torch.arange(step * 64, step * 64 + 64) % n_train
        optimizer.zero_grad()
        target.loss(scores(rows), hot[rows]).mean.backward()
        optimizer.step()
    with torch.no_grad():
        return target.predictions(scores(torch.arange(n_train, len(labels)))).numpy()


@pytest.fixture
def labels() -> Tensor:
    """Labels of which about 70 % are the first one."""
    random = np.random.default_rng(1)
    return torch.from_numpy(random.choice(N_LABELS, size=1600, p=[0.7, 0.1, 0.1, 0.1]))


def test_a_probe_on_random_features_does_not_beat_the_majority_by_more_than_chance(labels: Tensor) -> None:
    features = torch.randn(LAYERS, len(labels), WIDTH, generator=torch.Generator().manual_seed(2))
    # As many steps as see every training row once, so that none is learnt by heart.
    found = trained_predictions(features, labels, 1200, steps=18)
    hot = torch.nn.functional.one_hot(labels, N_LABELS).bool().numpy()
    baseline = majority_baseline(hot[:1200], hot[1200:])
    assert f1_score(hot[1200:], found, average="micro") == pytest.approx(baseline.micro_f1, abs=0.03)
    assert (found & hot[1200:]).any(axis=1).mean() == pytest.approx(baseline.accuracy, abs=0.03)


def test_a_probe_on_the_labels_themselves_is_always_right(labels: Tensor) -> None:
    features = torch.zeros(LAYERS, len(labels), WIDTH)
    features[1, torch.arange(len(labels)), labels] = 3.0
    found = trained_predictions(features, labels, 1200, steps=120)
    assert found.tolist() == torch.nn.functional.one_hot(labels[1200:], N_LABELS).bool().tolist()


def test_the_majority_is_that_of_the_training_rows() -> None:
    found = majority_baseline(np.array([2, 2, 0, -1]), np.array([0, 0, 2, -1]))
    assert found == (2, 0.25, 0.25)


def test_the_baseline_of_independent_labels_agrees_with_scikit_learn() -> None:
    random = np.random.default_rng(5)
    train, scored = random.random((50, 4)) < [0.2, 0.6, 0.3, 0.1], random.random((70, 4)) < 0.4
    found = majority_baseline(train, scored)
    answers = np.zeros_like(scored)
    answers[:, 1] = True
    assert found.label == 1
    assert found.accuracy == pytest.approx(accuracy_score(scored[:, 1], answers[:, 1]))
    assert found.micro_f1 == pytest.approx(f1_score(scored, answers, average="micro"))


def test_a_label_that_no_column_stands_for_is_missed() -> None:
    train, scored = np.array([[True, False]]), np.array([[True, False], [False, False]])
    assert majority_baseline(train, scored, np.array([0, 1])) == (0, 0.5, 0.5)


def test_a_baseline_needs_rows() -> None:
    with pytest.raises(EvaluationError, match="got 0 training and 1 scored"):
        majority_baseline(np.zeros(0, np.int64), np.zeros(1, np.int64))
