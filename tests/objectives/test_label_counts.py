"""Counts of the labels that a model predicts: in examples, in whole corpora, for next tokens and for classes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.objectives import label_counts as module
from hatchery.objectives.label_counts import (
    corpus_counts,
    counted_examples,
    label_counts,
    next_token_counts,
)
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS

SPECIAL = SpecialIds.of(SPECIAL_SETS["babylm"])


@dataclass(frozen=True)
class Recorded:
    """Examples whose labels are the row of their index; records the requested examples."""

    labels: np.ndarray
    asked: list[tuple[int, int, int]]

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, seed: int, epoch: int, indices: np.ndarray) -> dict[str, torch.Tensor]:
        self.asked.extend((seed, epoch, int(index)) for index in indices)
        return {"labels": torch.from_numpy(self.labels[indices])}


@pytest.fixture
def recorded() -> Callable[..., Recorded]:
    def make(n_examples: int, length: int = 6) -> Recorded:
        generator = np.random.default_rng(0)
        labels = generator.integers(0, 50, (n_examples, length))
        return Recorded(np.where(generator.random(labels.shape) < 0.5, labels, -100), [])

    return make


def test_every_label_of_the_first_epoch_counts_once(recorded) -> None:
    examples = recorded(300)
    counts = label_counts(examples, seed=9, vocab_size=60, show=False)
    labels = examples.labels[examples.labels != -100]
    assert counts.dtype == np.int64 and np.array_equal(counts, np.bincount(labels, minlength=60))
    assert examples.asked == [(9, 0, index) for index in range(300)]


def test_a_limit_spreads_the_counted_examples_over_the_corpus(recorded) -> None:
    examples = recorded(300)
    counts = label_counts(examples, seed=9, vocab_size=60, limit=10, show=False)
    assert [index for _, _, index in examples.asked] == list(range(0, 300, 30))
    labels = examples.labels[::30]
    assert np.array_equal(counts, np.bincount(labels[labels != -100], minlength=60))
    # By hand: the integer parts of the multiples of 1.9.
    assert counted_examples(19, 10).tolist() == [0, 1, 3, 5, 7, 9, 11, 13, 15, 17]


@given(st.integers(1, 500), st.none() | st.integers(1, 600))
def test_counted_examples_exist_are_ascending_and_as_many_as_allowed(n_examples: int, limit: int | None) -> None:
    chosen = counted_examples(n_examples, limit)
    assert len(chosen) == (n_examples if limit is None else min(n_examples, limit))
    assert chosen[0] == 0 and chosen[-1] < n_examples and np.all(np.diff(chosen) > 0)


def test_progress_is_reported_in_examples(recorded, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hatchery.progress.SHORT_SECONDS", 0.0)
    silent = label_counts(recorded(300), 9, 60, show=False)
    assert capsys.readouterr().err == ""
    examples = recorded(300)
    assert np.array_equal(label_counts(examples, 9, 60), silent)
    assert examples.asked == [(9, 0, index) for index in range(300)]
    assert "counting labels: 300 examples" in capsys.readouterr().err


def test_labels_that_make_no_prior_are_refused(recorded) -> None:
    for label in (10, 49, -1):
        with pytest.raises(TrainingError, match=f"labels: got {label}, expected 0 to 9"):
            label_counts(Recorded(np.array([[3, label, 5]]), []), 1, vocab_size=10, show=False)
    with pytest.raises(TrainingError, match="got no labels"):
        label_counts(Recorded(np.full((4, 3), -100), []), 1, vocab_size=10, show=False)


def test_a_corpus_counts_without_what_is_never_masked(make_collection) -> None:
    collection = make_collection([[5, 9, 4], [7] * 40, []], vocab_size=30)
    ids = np.concatenate([document.ids for document in collection.documents])
    ids[:3] = 0
    collection.documents[0].ids[:3] = 0
    counts = corpus_counts(collection.documents, SPECIAL, vocab_size=30)
    expected = np.bincount(ids, minlength=30)
    assert expected[: SPECIAL.n_protected].sum() == 3
    expected[: SPECIAL.n_protected] = 0
    assert np.array_equal(counts, expected)


def test_counting_in_pieces_changes_nothing(make_collection, monkeypatch) -> None:
    documents = make_collection([[200], [3], [70, 90]], vocab_size=30).documents
    whole = corpus_counts(documents, SPECIAL, vocab_size=30)
    monkeypatch.setattr(module, "_IDS_PER_COUNT", 16)
    assert np.array_equal(corpus_counts(documents, SPECIAL, vocab_size=30), whole)


def test_a_decoder_predicts_each_end_and_no_start() -> None:
    sentences = [np.array([5, 6, 5]), np.array([], dtype=np.int64), np.array([6])]
    counts = next_token_counts(sentences, end_id=2, start_id=1, vocab_size=8)
    # The targets of a decoder's loss: the framed sentence without its first token.
    framed = [[1, *sentence, 2] for sentence in sentences]
    assert np.array_equal(counts, np.bincount([target for ids in framed for target in ids[1:]], minlength=8))
    assert counts[2] == 3 and counts[1] == 0
    with pytest.raises(TrainingError, match="sentence 1: contains"):
        next_token_counts([np.array([5]), np.array([5, 2])], end_id=2, start_id=1, vocab_size=8)
    with pytest.raises(TrainingError, match="sentence 0: contains"):
        next_token_counts([np.array([1, 5])], end_id=2, start_id=1, vocab_size=8)
