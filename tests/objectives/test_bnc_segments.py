"""Segments of the BNC models against a literal reading of the published data set class."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.objectives.segmentation import BncSegments
from hatchery.objectives.segments import Segment

DOCUMENTS = st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=8)


def published_segments(documents, sequence_length):
    """The procedure of docs/papers/ltg-bert.md, "Segments": number, tokens, and cumulative length after each
    sentence."""
    segments = []
    for number, lengths in enumerate(documents):
        ends = np.cumsum(lengths).tolist()
        sentences = [list(range(end - length, end)) for length, end in zip(lengths, ends, strict=True)]
        for first in range(len(sentences)):
            tokens, cumulative = list(sentences[first]), [len(sentences[first])]
            following = first + 1
            while len(tokens) < sequence_length - 3 and following < len(sentences):
                tokens += sentences[following]
                cumulative.append(len(tokens))
                following += 1
            segments.append((number, tokens, cumulative))
    return segments


def described(segment: Segment):
    cumulative = [*(segment.inner_sentence_starts - segment.start).tolist(), len(segment)]
    return segment.number, segment.tokens.tolist(), cumulative


@settings(deadline=None, max_examples=200)
@given(documents=DOCUMENTS, sequence_length=st.integers(4, 60))
def test_segments_are_those_of_the_published_procedure(make_collection, documents, sequence_length):
    segments = BncSegments(make_collection(documents), sequence_length)
    assert [described(segments[i]) for i in range(len(segments))] == published_segments(documents, sequence_length)


def test_there_are_as_many_segments_as_sentences(make_collection):
    documents = [[5] * 7, [], [90], [1]]
    assert len(BncSegments(make_collection(documents), 16)) == 9


def test_segments_overlap_are_not_cut_and_shrink_towards_the_end_of_a_document(make_collection):
    segments = BncSegments(make_collection([[6, 6, 40, 2, 3]]), 16)
    assert [(segments[i].start, segments[i].end) for i in range(5)] == [(0, 52), (6, 52), (12, 52), (52, 57), (54, 57)]


def test_a_segment_is_full_three_short_of_the_sequence(make_collection):
    """As published: two special tokens, and one position that stays padding even in a full example."""
    segments = BncSegments(make_collection([[12, 1, 1, 1]]), 16)
    assert [len(segments[i]) for i in range(4)] == [13, 3, 2, 1]


def test_the_index_holds_nothing_per_sentence(make_collection):
    segments = BncSegments(make_collection([[2] * 3000, [1]]), 16)
    arrays = [value for value in vars(segments).values() if isinstance(value, np.ndarray)]
    assert sum(array.size for array in arrays) == 2 and len(segments) == 3001
