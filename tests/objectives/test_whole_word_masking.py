"""Whole-word masking: words are chosen whole, share one fate, and end where special tokens stand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.objectives.masking import masking_rule
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.training.objectives.masked import MaskedSettings

SPECIAL = SpecialIds.of(SPECIAL_SETS["bnc"])
FIRST_CONTINUATION = 50


def mask(ids, seed, word_starts=None, **settings):
    rule = masking_rule(MaskedSettings("whole_word", **settings), 64, 100, SPECIAL)
    starts = ids < FIRST_CONTINUATION if word_starts is None else word_starts
    return rule(ids, starts, np.random.Generator(np.random.Philox(seed)))


def words_of(ids):
    """Positions of each word by the definition, one token after the other."""
    words, open_word = [], False
    for position, token in enumerate(ids.tolist()):
        if token < SPECIAL.n_protected:
            open_word = False
        elif token < FIRST_CONTINUATION:
            words.append([position])
            open_word = True
        elif open_word:
            words[-1].append(position)
    return words


@settings(deadline=None, max_examples=300)
@given(
    tokens=st.lists(st.integers(0, 99), min_size=1, max_size=62),
    probability=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_words_are_labelled_and_decided_on_as_wholes_and_nothing_else_is(tokens, probability, seed):
    ids = np.array([SPECIAL.cls, *tokens, SPECIAL.sep])
    inputs, labels = mask(ids, seed, mask_probability=probability)
    at = labels != UNLABELLED
    words = words_of(ids)
    assert not np.delete(at, [position for word in words for position in word]).any()
    for word in words:
        assert at[word].all() or not at[word].any()
        hidden = inputs[word] == SPECIAL.mask
        assert hidden.all() or not hidden.any()


def test_a_word_cut_off_by_the_segment_or_by_a_special_token_is_never_chosen():
    ids = np.array([SPECIAL.cls, 60, 61, 10, 62, SPECIAL.first_random, 63, 11, SPECIAL.sep])
    _, labels = mask(ids, 0, mask_probability=1.0)
    assert np.flatnonzero(labels != UNLABELLED).tolist() == [3, 4, 7]


def test_special_tokens_end_words_even_where_no_word_start_is_marked_there():
    ids = np.array([60, 10, 61, SPECIAL.first_random, 62, SPECIAL.sep])
    starts = np.array([False, True, False, False, False, False])
    _, labels = mask(ids, 0, starts, mask_probability=1.0)
    assert np.flatnonzero(labels != UNLABELLED).tolist() == [1, 2]


def test_maskable_special_tokens_are_units_without_continuation():
    ids = np.array([SPECIAL.cls, 60, 10, 61, SPECIAL.sep])
    chosen = [
        mask(ids, seed, mask_probability=0.5, special_tokens_maskable=True)[1] != UNLABELLED for seed in range(99)
    ]
    assert {tuple(row[[0, 1]]) for row in chosen} == {(False, False), (True, False)}
    assert {tuple(row[[2, 3]]) for row in chosen} == {(False, False), (True, True)}
    assert {tuple(row[[0, 4]]) for row in chosen} == {(a, b) for a in (False, True) for b in (False, True)}


def test_words_are_equally_likely_whatever_their_length_and_random_tokens_are_drawn_one_by_one():
    ids = np.array([SPECIAL.cls, 10, 11, 60, 12, *[60] * 20, SPECIAL.sep])
    made = [mask(ids, seed, mask_probability=0.3, random_probability=1.0, keep_probability=0.0) for seed in range(3000)]
    chosen = np.stack([labels[[1, 2, 4]] != UNLABELLED for _, labels in made])
    assert chosen.mean(axis=0) == pytest.approx(0.3, abs=4 * (0.21 / 3000) ** 0.5)
    long_word = [inputs[4:-1] for inputs, labels in made if labels[4] != UNLABELLED]
    assert np.mean([len(set(word.tolist())) for word in long_word]) > 15, "of 21 draws from 95 tokens"


def test_the_fates_of_words_have_the_stated_shares():
    ids = np.array([SPECIAL.cls, *[10, 60] * 31, SPECIAL.sep])
    made = [mask(ids, seed, mask_probability=0.5, random_probability=0.2, keep_probability=0.1) for seed in range(400)]
    shown = np.concatenate([inputs[1:-1].reshape(31, 2)[labels[1:-1:2] != UNLABELLED] for inputs, labels in made])
    error = 4 * (0.25 / len(shown)) ** 0.5
    assert (shown == SPECIAL.mask).all(axis=1).mean() == pytest.approx(0.7, abs=error)
    assert (shown == [10, 60]).all(axis=1).mean() == pytest.approx(0.1, abs=error)
