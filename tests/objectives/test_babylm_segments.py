"""Segments of the BabyLM models against a literal reading of the published caching procedure."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.objectives import segmentation
from hatchery.objectives.segmentation import BabylmSegments

DOCUMENTS = st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=8)


def published_segments(documents, limit):
    """The procedure of docs/papers/elc-bert.md, "Segments": append sentences to a buffer, write when it is too long."""
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


def contents(segments):
    return [(segments[i].number, segments[i].tokens.tolist()) for i in range(len(segments))]


@settings(deadline=None, max_examples=200)
@given(documents=DOCUMENTS, limit=st.integers(2, 40))
def test_segments_are_those_of_the_published_procedure(make_collection, documents, limit):
    segments = BabylmSegments(make_collection(documents), limit + 2)
    assert contents(segments) == published_segments(documents, limit)


def test_the_overflowing_sentence_begins_the_next_segment(make_collection):
    segments = BabylmSegments(make_collection([[4, 4, 4]]), 8)
    assert contents(segments) == [(0, [0, 1, 2, 3, 4, 5]), (0, [4, 5, 6, 7, 8, 9]), (0, [8, 9, 10, 11])]


def test_a_document_that_opens_with_an_overlong_sentence_repeats_its_first_segment(make_collection):
    segments = BabylmSegments(make_collection([[9, 2]]), 8)
    assert contents(segments) == [(0, [0, 1, 2, 3, 4, 5]), (0, [0, 1, 2, 3, 4, 5]), (0, [9, 10])]


def test_building_in_groups_changes_nothing(make_collection, monkeypatch):
    documents = [[3, 5, 2], [], [40], [1] * 9, [2, 2]] * 3
    whole = contents(BabylmSegments(make_collection(documents), 10))
    monkeypatch.setattr(segmentation, "_SENTENCES_PER_GROUP", 4)
    assert contents(BabylmSegments(make_collection(documents), 10)) == whole
