"""What a segment reads from its document: tokens, word starts, and the sentences that start inside of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.objectives.segmentation import BabylmSegments, BncSegments, DocumentSegments, PackedSequences
from hatchery.objectives.segments import Segment, index_of

WAYS = [BabylmSegments, BncSegments, DocumentSegments, PackedSequences]


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=12), data=st.data())
def test_a_segment_is_a_slice_of_everything_its_document_has(make_collection, lengths, data):
    document = make_collection([lengths]).document(0)
    start = data.draw(st.integers(0, sum(lengths) - 1))
    end = data.draw(st.integers(start + 1, sum(lengths)))
    segment = Segment(0, document, start, end)
    words = np.unpackbits(document.word_bits, bitorder="little")[document.first_bit :].astype(bool)
    assert segment.tokens.tolist() == document.ids[start:end].tolist()
    assert segment.word_starts.dtype == np.bool_
    assert segment.word_starts.tolist() == words[start:end].tolist()
    inside = [offset for offset in document.sentence_starts.tolist() if start < offset < end]
    assert segment.inner_sentence_starts.tolist() == inside


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("documents", [[], [[]], [[], []]])
def test_nothing_to_cut_gives_no_segment(make_collection, way, documents):
    assert len(way(make_collection(documents), 16)) == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_sequence_without_room_for_tokens_is_refused(make_collection, way):
    with pytest.raises(TrainingError, match="sequence_length: got 3"):
        way(make_collection([[4]]), 3)


def test_reading_a_segment_copies_nothing(make_collection):
    collection = make_collection([[5, 5]])
    assert np.shares_memory(BabylmSegments(collection, 12)[0].tokens, collection.documents[0].ids)


def test_the_first_tokens_of_a_segment_are_at_most_all_of_it(make_collection):
    segment = Segment(0, make_collection([[5, 5]]).document(0), 2, 9)
    assert [len(segment.first(n)) for n in (1, 6, 7, 8)] == [1, 6, 7, 7]
    assert segment.first(3).tokens.tolist() == [2, 3, 4]


@given(values=st.lists(st.integers(0, 50)), value=st.integers(0, 60), side=st.sampled_from(["left", "right"]))
def test_look_ups_are_those_of_searchsorted(values, value, side):
    ascending = np.sort(np.array(values, dtype=np.int32))
    assert index_of(ascending, value, side) == np.searchsorted(ascending, value, side)


def test_documents_are_cut_to_their_first_tokens_and_empty_ones_left_out(make_collection):
    segments = DocumentSegments(make_collection([[3, 4], [], [30, 2], [14]]), 16)
    assert [(segment.number, segment.start, segment.end) for segment in segments] == [(0, 0, 7), (2, 0, 14), (3, 0, 14)]
