"""Division of documents into segments, each method against a literal implementation of its procedure, and packing."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.objectives import segments as module
from hatchery.objectives.segments import (
    BabylmSegments,
    BncSegments,
    DocumentSegments,
    PackedSequences,
    Segment,
    index_of,
)
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS
from hatchery.tokenization.token_shards import Document
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings

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


DOCUMENTS = st.lists(st.lists(st.integers(1, 30), max_size=12), max_size=8)


def published_segments(documents, limit):
    """The procedure of docs/papers/elc-bert.md, "Segments": append sentences to a buffer, write the buffer when it is
    too long."""
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
def test_babylm_segments_are_those_of_the_published_procedure(make_collection, documents, limit):
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
    monkeypatch.setattr(module, "_SENTENCES_PER_GROUP", 4)
    assert contents(BabylmSegments(make_collection(documents), 10)) == whole


def published_bnc_segments(documents, sequence_length):
    """The procedure of docs/papers/ltg-bert.md, "Segments".

    Return the document's index, tokens, and the cumulative length after each sentence.
    """
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
def test_bnc_segments_are_those_of_the_published_procedure(make_collection, documents, sequence_length):
    segments = BncSegments(make_collection(documents), sequence_length)
    assert [described(segments[i]) for i in range(len(segments))] == published_bnc_segments(documents, sequence_length)


def test_there_are_as_many_segments_as_sentences(make_collection):
    documents = [[5] * 7, [], [90], [1]]
    assert len(BncSegments(make_collection(documents), 16)) == 9


def test_segments_overlap_are_not_cut_and_shrink_towards_the_end_of_a_document(make_collection):
    segments = BncSegments(make_collection([[6, 6, 40, 2, 3]]), 16)
    assert [(segments[i].start, segments[i].end) for i in range(5)] == [(0, 52), (6, 52), (12, 52), (52, 57), (54, 57)]


def test_a_segment_is_full_three_short_of_the_sequence(make_collection):
    """As published: a full example has two special tokens, and one position is always padding."""
    segments = BncSegments(make_collection([[12, 1, 1, 1]]), 16)
    assert [len(segments[i]) for i in range(4)] == [13, 3, 2, 1]


def test_the_index_holds_nothing_per_sentence(make_collection):
    segments = BncSegments(make_collection([[2] * 3000, [1]]), 16)
    arrays = [value for value in vars(segments).values() if isinstance(value, np.ndarray)]
    assert sum(array.size for array in arrays) == 2 and len(segments) == 3001


LENGTHS = st.lists(st.lists(st.integers(1, 40), max_size=3), max_size=12)
CLS, SEP, PAD = 1, 2, 3
NOTHING_MASKED = MaskedSettings("subword", mask_probability=0.0)


def packed(collection, sequence_length, masking=NOTHING_MASKED):
    return objective_of(replace(masking, segments="packed")).examples(collection, sequence_length)


def blocks(row):
    """Return the token runs (start, end) of one mask [T, T]; fail if the mask is not block-diagonal."""
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
    # Each of the 40,000 tokens is chosen independently with probability 0.15.
    labelled, tokens = int((labels != -100).sum()), 40_000
    assert labelled == pytest.approx(0.15 * tokens, abs=3 * (tokens * 0.15 * 0.85) ** 0.5)


def test_whole_words_are_those_of_the_documents(make_traceable):
    collection = make_traceable([[20], [30], [13]])
    all_words = MaskedSettings("whole_word", mask_probability=1.0, random_probability=0.0, keep_probability=0.0)
    batch = packed(collection, 16, all_words).batch(0, 0, np.arange(5))
    clean = torch.where(batch["labels"] == -100, batch["input_ids"], batch["labels"])
    missed = clean[(batch["labels"] == -100) & (clean > 6)].tolist()
    # Words start at ids that are not multiples of 3; a piece that begins with another id begins within a word.
    begins = clean[:, 1:][clean[:, :-1] == CLS].tolist()
    assert sorted(missed) == sorted(id_ for id_ in begins if id_ % 3 == 0)


def test_words_of_a_text_begin_at_its_words_and_not_at_special_tokens_but_at_unknown_ones():
    unknown, cls, paragraph = (SPECIAL_SETS["babylm"].ids[name] for name in ("[UNK]", "[CLS]", "[PAR]"))
    ids = np.array([20, 21, unknown, 22, paragraph, cls, 23, unknown], dtype=np.uint16)
    # For the tokenizer, a word starts at every token but the second; the text has fewer words, by white space.
    of_tokenizer = np.packbits([1, 0, 1, 1, 1, 1, 1, 1], bitorder="little")
    of_text = np.packbits([1, 0, 1, 0, 1, 1, 1, 0], bitorder="little")
    special = SpecialIds.of(SPECIAL_SETS["babylm"])
    document = Document(ids, np.zeros(1, dtype=np.int32), of_tokenizer, 0, of_text)
    assert Segment(0, document, 0, 8).text_words(special) == 3
    assert Segment(0, document, 1, 6).text_words(special) == 1
    # If the words of the text are not known, the tokenizer's words are counted.
    plain = Document(ids, np.zeros(1, dtype=np.int32), of_tokenizer, 0)
    assert Segment(0, plain, 0, 8).text_words(special) == 5
