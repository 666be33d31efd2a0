"""Packed sequences: every token once, no padding, and no document sees another one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings

LENGTHS = st.lists(st.lists(st.integers(1, 40), max_size=3), max_size=12)
CLS, SEP, PAD = 1, 2, 3
NOTHING_MASKED = MaskedSettings("subword", mask_probability=0.0)


def packed(collection, sequence_length, masking=NOTHING_MASKED):
    return objective_of(replace(masking, segments="packed")).examples(collection, sequence_length)


def blocks(row):
    """Token runs (start, end) of one mask [T, T]; fails where the mask is not made of blocks along the diagonal."""
    found, end, mask = [], 0, row.numpy()
    while end < len(mask) and mask[end, end]:
        start, end = end, end + int(mask[end, end:].argmin()) if not mask[end, end:].all() else len(mask)
        found.append((start, end))
    expected = np.zeros_like(mask)
    for start, end in found:
        expected[start:end, start:end] = True
    assert np.array_equal(mask, expected)
    return found


@settings(deadline=None, max_examples=150)
@given(documents=LENGTHS, sequence_length=st.integers(4, 40))
def test_every_token_is_in_one_framed_piece_and_only_the_last_sequence_is_not_full(
    make_traceable, documents, sequence_length
):
    collection = make_traceable(documents)
    examples = packed(collection, sequence_length)
    seen, origin = [], {int(id_): n for n, document in enumerate(collection.documents) for id_ in document.ids}
    for index in range(len(examples)):
        batch = examples.batch(0, 0, [index])
        (ids,), (mask,) = batch["input_ids"], batch["attention_mask"]
        assert len(ids) == sequence_length or (index + 1 == len(examples) and 3 <= len(ids) < sequence_length)
        covered = 0
        for start, end in blocks(mask):
            piece = ids[start:end].tolist()
            tokens = [token for token in piece if token not in (CLS, SEP)]
            assert 1 <= len(piece) - 1 - len(tokens) <= 3, "one [SEP], and at most two more in an unusable room"
            assert piece == [CLS, *tokens, *[SEP] * (len(piece) - 1 - len(tokens))]
            assert len(piece) - len(tokens) == 2 or (end == sequence_length and index + 1 < len(examples))
            assert len({origin[token] for token in tokens}) == 1
            seen += tokens
            covered += len(piece)
        assert covered == len(ids)
    assert seen == [int(id_) for document in collection.documents for id_ in document.ids]


def test_documents_follow_each_other_within_a_sequence_and_go_on_in_the_next(make_traceable):
    collection = make_traceable([[4], [9], [1]])
    batch = packed(collection, 12).batch(0, 0, [0, 1])
    assert batch["input_ids"].tolist() == [
        [CLS, 7, 8, 9, 10, SEP, CLS, 11, 12, 13, 14, SEP],
        [CLS, 15, 16, 17, 18, 19, SEP, CLS, 20, SEP, PAD, PAD],
    ]
    assert [blocks(mask) for mask in batch["attention_mask"]] == [[(0, 6), (6, 12)], [(0, 7), (7, 10)]]


@pytest.mark.parametrize("free", [1, 2])
def test_a_room_too_small_for_a_token_repeats_the_closing_token(make_traceable, free):
    collection = make_traceable([[10 - free], [5]])
    batch = packed(collection, 12).batch(0, 0, [0])
    assert batch["input_ids"][0, -1 - free :].tolist() == [SEP] * (1 + free)
    assert blocks(batch["attention_mask"][0]) == [(0, 12)]


def test_a_batch_of_full_sequences_has_no_padding(make_collection):
    examples = packed(make_collection([[7, 90, 3], [2], [1], [300], [55] * 9], vocab_size=300), 64)
    batch = examples.batch(0, 0, np.arange(len(examples) - 1))
    assert batch["attention_mask"].shape == (len(examples) - 1, 64, 64)
    assert (batch["input_ids"] != PAD).all() and batch["attention_mask"].any(dim=2).all()


def test_masks_are_drawn_as_in_any_other_sequence(make_collection):
    examples = packed(make_collection([[40] * 5] * 200, vocab_size=300), 128, MaskedSettings("subword"))
    labels = examples.batch(1, 0, np.arange(len(examples)))["labels"]
    # 40,000 tokens, each chosen by itself with probability 0.15.
    labelled, tokens = int((labels != -100).sum()), 40_000
    assert labelled == pytest.approx(0.15 * tokens, abs=3 * (tokens * 0.15 * 0.85) ** 0.5)


def test_whole_words_are_those_of_the_documents(make_traceable):
    collection = make_traceable([[20], [30], [13]])
    all_words = MaskedSettings("whole_word", mask_probability=1.0, random_probability=0.0, keep_probability=0.0)
    batch = packed(collection, 16, all_words).batch(0, 0, np.arange(5))
    clean = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
    missed = clean[(batch["labels"] == -100) & (clean > 6)].tolist()
    # A word starts at ids that 3 does not divide: pieces that begin with another id begin within a word.
    begins = clean[:, 1:][clean[:, :-1] == CLS].tolist()
    assert sorted(missed) == sorted(id_ for id_ in begins if id_ % 3 == 0)
