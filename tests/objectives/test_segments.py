"""Segments against a literal reading of the published caching procedure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.objectives import segments as segments_module
from hatchery.objectives.segments import SegmentIndex

DOCUMENTS = st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=8)


def published_segments(documents, limit):
    """The procedure in the words of ELC-BERT section 3.1: append sentences to a buffer, write when it is too long."""
    written = []
    for number, lengths in enumerate(documents):
        tokens, buffer = 0, []
        for length in lengths:
            sentence = list(range(tokens, tokens + length))
            tokens += length
            buffer += sentence
            if len(buffer) > limit:
                written.append((number, buffer[:limit]))
                buffer = list(sentence)
        if buffer:
            written.append((number, buffer[:limit]))
    return written


def contents(index):
    return [(int(index.documents[i]), index.tokens(i).tolist()) for i in range(len(index))]


@settings(deadline=None, max_examples=200)
@given(documents=DOCUMENTS, limit=st.integers(2, 40))
def test_segments_are_those_of_the_published_procedure(make_collection, documents, limit):
    index = SegmentIndex.build(make_collection(documents), limit + 2)
    assert contents(index) == published_segments(documents, limit)


@settings(deadline=None, max_examples=50)
@given(documents=DOCUMENTS, limit=st.integers(2, 40))
def test_packed_segments_hold_every_token_once_and_stay_within_a_document(make_collection, documents, limit):
    index = SegmentIndex.build(make_collection(documents), limit + 2, packed=True)
    assert all(1 <= length <= limit for length in index.lengths)
    joined = {number: [] for number in range(len(documents))}
    for number, tokens in contents(index):
        joined[number] += tokens
    assert joined == {number: list(range(sum(lengths))) for number, lengths in enumerate(documents)}


def test_the_overflowing_sentence_begins_the_next_segment(make_collection):
    index = SegmentIndex.build(make_collection([[4, 4, 4]]), 8)
    assert contents(index) == [(0, [0, 1, 2, 3, 4, 5]), (0, [4, 5, 6, 7, 8, 9]), (0, [8, 9, 10, 11])]


def test_a_document_that_opens_with_an_overlong_sentence_repeats_its_first_segment(make_collection):
    index = SegmentIndex.build(make_collection([[9, 2]]), 8)
    assert contents(index) == [(0, [0, 1, 2, 3, 4, 5]), (0, [0, 1, 2, 3, 4, 5]), (0, [9, 10])]


@pytest.mark.parametrize("packed", [False, True])
def test_building_in_groups_changes_nothing(make_collection, monkeypatch, packed):
    documents = [[3, 5, 2], [], [40], [1] * 9, [2, 2]] * 3
    whole = contents(SegmentIndex.build(make_collection(documents), 10, packed))
    monkeypatch.setattr(segments_module, "_SENTENCES_PER_GROUP", 4)
    assert contents(SegmentIndex.build(make_collection(documents), 10, packed)) == whole


def test_reading_a_segment_copies_nothing(make_collection):
    collection = make_collection([[5, 5]])
    assert np.shares_memory(SegmentIndex.build(collection, 12).tokens(0), collection.documents[0].ids)


@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
@pytest.mark.parametrize("packed", [False, True])
def test_nothing_to_segment_gives_an_empty_index(make_collection, documents, packed):
    assert len(SegmentIndex.build(make_collection(documents), 16, packed)) == 0


def test_a_sequence_without_room_for_tokens_is_refused(make_collection):
    with pytest.raises(TrainingError, match="sequence_length: got 3"):
        SegmentIndex.build(make_collection([[4]]), 3)
