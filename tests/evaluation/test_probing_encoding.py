"""Spans of words as spans of subwords, through detokenised text, and batches and subsets of them."""

import string
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.probing.encoding import PlacedWords, encode_spans, place_words, span_of_subwords
from hatchery.evaluation.tasks.example import SpanExample, SpanTarget
from hatchery.evaluation.tasks.texts import detokenise
from hatchery.tokenization.tokenizer_file import Tokenizer, load_tokenizer

WORDS = st.text(string.ascii_letters + string.digits + "'\"`.,;:?!()[]{}$%£-–—…’“\u00a0é&", min_size=1, max_size=6)


@pytest.fixture(scope="session")
def tokenizer(model_manifest: Path) -> Tokenizer:
    return load_tokenizer(model_manifest.parent / "tokenizer.json", recognise=())


def example(text: str, *targets: tuple[tuple[tuple[int, int], ...], tuple[int, ...]]) -> SpanExample:
    return SpanExample(tuple(text.split(" ")), tuple(SpanTarget(*target) for target in targets), "here:1")


def test_words_are_found_in_the_running_text() -> None:
    words = ["He", "said", ",", "``", "I", "ca", "n't", "pay", "$", "5", "-LRB-", "or", "6", "%", "-RRB-", ".", "''"]
    placed = place_words(words, "ltg_detokenised")
    assert placed.text == 'He said, "I can\'t pay $5 (or 6%)."'
    found = [placed.text[start:end] for start, end in placed.places]
    assert found == ["He", "said", ",", '"', "I", "ca", "n't", "pay", "$", "5", "(", "or", "6", "%", ")", ".", '"']


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_every_visible_character_belongs_to_one_word_in_order(words: list[str]) -> None:
    placed = place_words(words, "ltg_detokenised")
    assert placed.text == detokenise(" ".join(words))
    assert len(placed.places) == len(words)
    edges = [edge for place in placed.places for edge in place]
    assert edges == sorted(edges)
    inside = {index for start, end in placed.places for index in range(start, end)}
    assert all(character.isspace() for index, character in enumerate(placed.text) if index not in inside)


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_without_normalisation_words_are_joined_by_blanks(words: list[str]) -> None:
    placed = place_words(words, "none")
    assert placed.text == " ".join(words)
    assert [placed.text[start:end] for start, end in placed.places] == words


def test_texts_that_are_normalised_whole_have_no_words_to_mark() -> None:
    with pytest.raises(ConfigError, match="normalisation: got 'ltg'"):
        place_words(["a"], "ltg")


PLACED = PlacedWords("can't stop", ((0, 2), (2, 5), (6, 10)))


@pytest.mark.parametrize(
    ("offsets", "word", "expected"),
    [
        # One subword for "can't": both words have it.
        ([(0, 5), (5, 10)], (0, 1), (1, 2)),
        ([(0, 5), (5, 10)], (1, 2), (1, 2)),
        ([(0, 5), (5, 10)], (2, 3), (2, 3)),
        # A subword over the edge of two words belongs to both.
        ([(0, 1), (1, 3), (3, 5), (6, 10)], (0, 1), (1, 3)),
        ([(0, 1), (1, 3), (3, 5), (6, 10)], (1, 2), (2, 4)),
        # A subword that is nothing but the blank belongs to nobody, but lies inside a longer span.
        ([(0, 2), (2, 5), (5, 6), (6, 10)], (1, 2), (2, 3)),
        ([(0, 2), (2, 5), (5, 6), (6, 10)], (1, 3), (2, 5)),
        # Two bytes of one character have the same place.
        ([(0, 2), (2, 5), (6, 10), (6, 10)], (2, 3), (3, 5)),
        # Of a word that the tokenizer leaves out the next subword is taken, at the end the last one.
        ([(0, 2), (6, 10)], (1, 2), (2, 3)),
        ([(0, 2), (2, 5)], (2, 3), (2, 3)),
    ],
)
def test_a_span_holds_every_subword_that_overlaps_it(offsets, word, expected) -> None:
    assert span_of_subwords(np.array(offsets), PLACED, word) == expected


def test_the_tokens_of_a_span_spell_its_words(tokenizer: Tokenizer) -> None:
    words = ["The", "old", "dogs", "chases", "houses", "."]
    targets = [(((i, j),), (0,)) for i in range(6) for j in range(i + 1, 7)]
    data = encode_spans([example(" ".join(words), *targets)], tokenizer, 64, 1, False)
    ids = data.sequences.ids.tolist()
    assert ids[0] == tokenizer.cls_id and ids[-1] == tokenizer.sep_id
    for (((i, j),), _), ((start, end),) in zip(targets, data.spans.tolist(), strict=True):
        decoded = tokenizer.decode(ids[start:end]).replace(" ", "")
        assert decoded.lower() == "".join(words[i:j]).lower()


def test_sentences_over_the_limit_are_dropped_and_counted(tokenizer: Tokenizer) -> None:
    short, long = example("The dogs", (((0, 1),), (0,))), example("The dogs " * 9 + ".", (((0, 1),), (0,)))
    n_short = len(tokenizer.encode_sentences(["The dogs"])[0]) + 2
    data = encode_spans([long, short, long], tokenizer, n_short, 1, False)
    assert (data.dropped, data.n_units, data.lengths.tolist()) == (2, 1, [n_short])
    assert data.examples == (short,)
    assert encode_spans([short], tokenizer, n_short - 1, 1, False).n_units == 0


@pytest.fixture
def encoded(tokenizer: Tokenizer):
    rows = [
        example("The old dogs sleep .", (((0, 1), (1, 3)), (0,)), (((3, 4), (0, 3)), (1, 2))),
        example("A cat .", (((1, 2), (0, 1)), (2,))),
        example("The old dogs sleep .", (((4, 5), (4, 5)), (-1,))),
    ]
    return encode_spans(rows, tokenizer, 64, 3, True)


def test_equal_sentences_are_stored_once(encoded) -> None:
    assert len(encoded.sequences.lengths) == 2 and encoded.sequence_of.tolist() == [0, 1, 0]


def test_independent_labels_are_multi_hot_and_unknown_ones_counted(encoded) -> None:
    hot = [[True, False, False], [False, True, True], [False, False, True], [False, False, False]]
    assert encoded.labels.tolist() == hot and encoded.unknown.tolist() == [0, 0, 0, 1]


def test_a_batch_holds_the_sentences_in_the_order_asked_for(encoded) -> None:
    batch = encoded.batch(np.array([1, 0]))
    ids, mask = batch.inputs["input_ids"], batch.inputs["attention_mask"]
    assert ids.shape == (2, encoded.lengths[[0, 1]].max()) and mask.sum(1).tolist() == encoded.lengths[[1, 0]].tolist()
    assert (ids[~mask] == encoded.sequences.pad_id).all()
    assert batch.units.tolist() == [2, 0, 1] and batch.inputs["sentences"].tolist() == [0, 1, 1]
    assert batch.inputs["spans"].tolist() == encoded.spans[[2, 0, 1]].tolist()
    assert batch.labels.tolist() == encoded.labels[[2, 0, 1]].tolist()
    spans = batch.inputs["spans"]
    assert batch.inputs["widest"] == (spans[..., 1] - spans[..., 0]).max()


def test_units_of_a_subset_count_from_its_own_first_sentence(encoded) -> None:
    part = encoded.subset([2, 0])
    assert part.n_units == 3 and part.labels.tolist() == encoded.labels[[3, 0, 1]].tolist()
    batch, whole = part.batch(np.array([1])), encoded.batch(np.array([0]))
    assert batch.units.tolist() == [1, 2]
    assert batch.inputs["input_ids"].equal(whole.inputs["input_ids"])
    assert batch.inputs["spans"].equal(whole.inputs["spans"])


def test_a_head_with_one_class_takes_one_label(tokenizer: Tokenizer) -> None:
    one = encode_spans([example("A cat", (((0, 1),), (1,)), (((1, 2),), (-1,)))], tokenizer, 64, 2, False)
    assert one.labels.tolist() == [1, -1] and one.labels.dtype == np.int64
    with pytest.raises(EvaluationError, match="here:1: a target has 2 labels"):
        encode_spans([example("A cat", (((0, 1),), (0, 1)))], tokenizer, 64, 2, False)


def test_targets_of_one_task_have_the_same_number_of_spans(tokenizer: Tokenizer) -> None:
    with pytest.raises(EvaluationError, match="1 and 2 spans"):
        encode_spans([example("A cat", (((0, 1),), (0,)), (((0, 1), (1, 2)), (0,)))], tokenizer, 64, 1, False)
