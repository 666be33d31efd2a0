"""Examples as pure functions of (seed, epoch, index), and the batches made of them."""

import dataclasses

import numpy as np
import pytest
import torch

from hatchery.errors import TrainingError
from hatchery.objectives.examples import MaskedExamples
from hatchery.objectives.segments import SegmentIndex
from hatchery.objectives.span_masking import SpanMaskingSettings
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS

BABYLM = SpecialIds.of(SPECIAL_SETS["babylm"])


@pytest.fixture(scope="module")
def segments(make_collection):
    documents = [[7, 12, 30, 4], [3], [20] * 40]
    return SegmentIndex.build(make_collection(documents, vocab_size=300), 64)


@pytest.fixture
def examples(segments):
    return MaskedExamples(segments, 64, 300, BABYLM)


def test_an_example_is_the_same_in_every_batch_and_order(examples):
    first = examples.batch(1, 4, [5, 0, 3])
    second = examples.batch(1, 4, [0, 3, 2, 5])
    for row, other in ((0, 3), (1, 0), (2, 1)):
        length = int(first["attention_mask"][row].sum())
        for key in first:
            assert torch.equal(first[key][row, :length], second[key][other, :length])


@pytest.mark.parametrize("change", [(2, 4, 5), (1, 5, 5), (1, 4, 6)])
def test_seed_epoch_and_index_each_change_the_masking(make_collection, change):
    same = SegmentIndex.build(make_collection([[60]] * 8), 62, packed=True)
    examples = MaskedExamples(same, 62, 300, BABYLM, SpanMaskingSettings(short_probability=0.0))
    assert not np.array_equal(examples.example(1, 4, 5).labels, examples.example(*change).labels)


def test_a_batch_frames_masks_and_pads(segments):
    nothing_short = SpanMaskingSettings(short_probability=0.0)
    batch = MaskedExamples(segments, 64, 300, BABYLM, nothing_short).batch(0, 0, [0, 1, 2])
    assert {key: (tensor.dtype, tuple(tensor.shape)) for key, tensor in batch.items()} == {
        "input_ids": (torch.int64, (3, 64)),
        "attention_mask": (torch.bool, (3, 64)),
        "labels": (torch.int64, (3, 64)),
    }
    for row, length in enumerate([55, 5, 64]):
        tokens, ids = segments.tokens(row), batch["input_ids"][row]
        assert batch["attention_mask"][row].tolist() == [True] * length + [False] * (64 - length)
        assert (ids[0], ids[length - 1]) == (1, 2)
        assert (ids[length:] == 3).all() and (batch["labels"][row, length:] == -100).all()
        clean = ids.where(batch["labels"][row] == -100, batch["labels"][row])
        assert clean[1 : length - 1].tolist() == tokens.tolist()


def test_a_tenth_of_the_examples_is_cut_to_a_uniform_length(make_collection):
    segments = SegmentIndex.build(make_collection([[62]]), 64, packed=True)
    examples = MaskedExamples(segments, 64, 300, BABYLM)
    lengths = np.array([len(examples.example(0, epoch, 0).labels) - 2 for epoch in range(4000)])
    short = lengths[lengths < 62]
    assert len(short) / 4000 == pytest.approx(0.1, abs=0.02)
    assert short.min() == 1 and short.max() == 61
    assert short.mean() == pytest.approx(31, abs=3.5)


def test_trimming_a_batch_does_not_change_what_is_masked(make_collection):
    """Spans are drawn over the nominal length, so a short example next to a long one is masked as if alone."""
    segments = SegmentIndex.build(make_collection([[10], [62]], vocab_size=300), 64)
    examples = MaskedExamples(segments, 64, 300, BABYLM, SpanMaskingSettings(short_probability=0.0))
    alone, together = examples.batch(3, 0, [0]), examples.batch(3, 0, [0, 1])
    assert alone["labels"].shape[1] == 12 and together["labels"].shape[1] == 64
    assert torch.equal(alone["labels"][0], together["labels"][0, :12])


def test_an_empty_share_of_a_batch_is_an_empty_batch(examples):
    assert examples.batch(0, 0, [])["input_ids"].shape == (0, 0)


def test_the_stream_of_examples_is_pinned(make_collection):
    """Fails when numpy or our use of it changes the draws: results of earlier runs could not be repeated."""
    segments = SegmentIndex.build(make_collection([[30]]), 32)
    example = MaskedExamples(segments, 32, 300, dataclasses.replace(BABYLM, n_protected=0)).example(42, 1, 0)
    assert np.flatnonzero(example.labels != -100).tolist() == [10, 11, 12, 13, 14, 15, 16, 17]
    assert example.input_ids[example.labels != -100].tolist() == [139, 202, 226, 151, 4, 4, 4, 4]


def test_segments_longer_than_the_sequences_are_refused(segments):
    with pytest.raises(TrainingError, match="sequence_length: got 32"):
        MaskedExamples(segments, 32, 300, BABYLM)


def test_a_vocabulary_of_special_tokens_is_refused(segments):
    with pytest.raises(TrainingError, match="vocab_size: got 6"):
        MaskedExamples(segments, 64, 6, BABYLM)


@pytest.mark.parametrize(("name", "protected", "first_random"), [("babylm", 6, 5), ("bnc", 6, 5), ("roberta", 5, 5)])
def test_protected_and_random_ids_follow_the_set_of_special_tokens(name, protected, first_random):
    special = SpecialIds.of(SPECIAL_SETS[name])
    assert (special.n_protected, special.first_random) == (protected, first_random)


def test_examples_are_framed_masked_and_padded_with_the_ids_of_their_set(segments):
    special = SpecialIds.of(SPECIAL_SETS["roberta"])
    examples = MaskedExamples(segments, 64, 300, special, SpanMaskingSettings(random_probability=0, keep_probability=0))
    batch = examples.batch(0, 0, np.arange(len(examples)))
    ids, labels, lengths = batch["input_ids"], batch["labels"], batch["attention_mask"].sum(dim=1)
    assert (ids[:, 0] == 0).all()
    assert all(ids[row, length - 1] == 2 and (ids[row, length:] == 1).all() for row, length in enumerate(lengths))
    assert (labels != -100).any() and (ids[labels != -100] == 4).all()
