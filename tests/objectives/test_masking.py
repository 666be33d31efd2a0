"""Properties of every masking rule, and the rules that select subwords and whole words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.objectives.masking import masking_rule
from hatchery.objectives.masking.subword import published_shares
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.training.objectives.masked import MaskedSettings

KINDS = ("subword", "whole_word", "span")
SETS = {name: SpecialIds.of(special) for name, special in SPECIAL_SETS.items()}
SHARES = st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda pair: sum(pair) <= 1)


def apply(masking, ids, word_starts, seed, special, sequence_length=64, vocab_size=100):
    rule = masking_rule(masking, sequence_length, vocab_size, special)
    return rule(ids, word_starts, np.random.Generator(np.random.Philox(seed)))


@st.composite
def framed_examples(draw):
    """Draw (special ids, ids, word starts) of a framed example of at most 64 tokens from a vocabulary of 100."""
    special = SETS[draw(st.sampled_from(sorted(SETS)))]
    tokens = draw(st.lists(st.integers(0, 99).filter(lambda token: token != special.pad), min_size=1, max_size=62))
    ids = np.array([special.cls, *tokens, special.sep])
    starts = np.array(draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))))
    return special, ids, starts | (ids < special.n_protected)


@settings(deadline=None, max_examples=400)
@given(
    example=framed_examples(),
    kind=st.sampled_from(KINDS),
    published=st.booleans(),
    probability=st.floats(0, 1),
    shares=SHARES,
    seed=st.integers(0, 2**32),
)
def test_inputs_change_only_where_an_ordinary_token_is_labelled(example, kind, published, probability, shares, seed):
    special, ids, starts = example
    before = ids.copy()
    masking = MaskedSettings(kind, "as_published" if published else "corrected", probability, *shares)
    inputs, labels = apply(masking, ids, starts, seed, special)
    assert np.array_equal(ids, before), "the example itself stays as it is"
    assert inputs.dtype == labels.dtype == np.int64
    at = labels != UNLABELLED
    assert np.array_equal(inputs[~at], ids[~at])
    assert (ids[at] >= special.n_protected).all(), "special tokens are never predicted"
    shown = inputs[at]
    assert ((shown == special.mask) | (shown == ids[at]) | ((shown >= special.first_random) & (shown < 100))).all()
    if not (published and kind == "span"):
        assert np.array_equal(labels[at], ids[at])
    again = apply(masking, ids, starts, seed, special)
    assert np.array_equal(inputs, again[0]) and np.array_equal(labels, again[1])


@settings(deadline=None, max_examples=200)
@given(example=framed_examples(), kind=st.sampled_from(KINDS), probability=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_without_random_and_kept_tokens_every_labelled_token_is_hidden(example, kind, probability, seed):
    special, ids, starts = example
    masking = MaskedSettings(
        kind, mask_probability=probability, random_probability=0.0, keep_probability=0.0, special_tokens_maskable=True
    )
    inputs, labels = apply(masking, ids, starts, seed, special)
    assert np.array_equal(inputs, np.where(labels == UNLABELLED, ids, special.mask))
    assert np.array_equal(labels[labels != UNLABELLED], ids[labels != UNLABELLED])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", ["corrected", "as_published"])
def test_with_all_tokens_kept_the_input_is_the_text(kind, reading):
    ids = np.array([1, *range(10, 70), 2])
    masking = MaskedSettings(kind, reading, 1.0, random_probability=0.0, keep_probability=1.0)
    inputs, labels = apply(masking, ids, np.ones(62, bool), 4, SETS["babylm"])
    assert np.array_equal(inputs, ids)
    assert (labels != UNLABELLED).sum() > 20, "and there is something to predict"


@pytest.mark.parametrize("kind", KINDS)
def test_tab_is_predicted_like_a_word_and_unknown_and_paragraph_are_not(kind):
    ids = np.array([1, *[6, 0, 5] * 20, 2])
    masking = MaskedSettings(kind, mask_probability=0.5)
    predicted = {
        int(label) for seed in range(50) for label in apply(masking, ids, np.ones(62, bool), seed, SETS["babylm"])[1]
    }
    assert predicted == {6, UNLABELLED}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", ["corrected", "as_published"])
def test_an_example_without_ordinary_tokens_has_no_labels(kind, reading):
    ids = np.array([1, 0, 5, 2])
    inputs, labels = apply(MaskedSettings(kind, reading, 1.0), ids, np.ones(4, bool), 3, SETS["babylm"])
    assert inputs.tolist() == ids.tolist() and (labels == UNLABELLED).all()


@pytest.mark.parametrize("kind", ["subword", "whole_word", "span", "short_span"])
def test_framing_tokens_can_be_predicted_where_asked_for_but_padding_cannot(kind):
    special = SETS["roberta"]
    ids = np.array([special.cls, 10, special.sep, 20, special.sep, special.pad])
    masking = MaskedSettings(kind, mask_probability=1.0, special_tokens_maskable=True)
    _, labels = apply(masking, ids, np.ones(6, bool), 0, special)
    assert labels.tolist() == [*ids[:-1].tolist(), UNLABELLED]


@pytest.mark.parametrize("kind", KINDS)
def test_random_tokens_come_from_the_paragraph_mark_on(kind):
    """The published code starts one id too low, at the paragraph token; both readings keep this."""
    ids = np.array([1, *[10] * 60, 2])
    masking = MaskedSettings(kind, mask_probability=1.0, random_probability=1.0, keep_probability=0.0)
    seen = [apply(masking, ids, np.ones(62, bool), seed, SETS["babylm"], vocab_size=12) for seed in range(40)]
    drawn = np.concatenate([inputs[labels != UNLABELLED] for inputs, labels in seen])
    counts = np.bincount(drawn, minlength=12)
    assert counts[:5].sum() == 0
    assert counts[5:] == pytest.approx(len(drawn) / 7, rel=0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_of_special_tokens_only_is_refused(kind):
    with pytest.raises(TrainingError, match="vocab_size: got 6, expected more than the 6 tokens that are never masked"):
        masking_rule(MaskedSettings(kind), 16, 6, SETS["bnc"])


def test_only_whole_words_need_word_starts():
    needs = {kind: masking_rule(MaskedSettings(kind), 16, 100, SETS["bnc"]).needs_word_starts for kind in KINDS}
    assert needs == {"subword": False, "whole_word": True, "span": False}
    with pytest.raises(TrainingError, match="word starts"):
        apply(MaskedSettings("whole_word"), np.array([1, 10, 2]), None, 0, SETS["bnc"])


SPECIAL = SpecialIds.of(SPECIAL_SETS["bnc"])
N_TOKENS = 200_000


def mask_many(**settings):
    """Mask one very long example of token 10; random tokens are drawn from 10**6 ids, so they rarely equal token 10."""
    ids = np.full(N_TOKENS, 10)
    rule = masking_rule(MaskedSettings("subword", **settings), N_TOKENS, 10**6, SPECIAL)
    inputs, labels = rule(ids, None, np.random.Generator(np.random.Philox(7)))
    return inputs, labels != UNLABELLED


def four_errors(share, count):
    return pytest.approx(share, abs=4 * (share * (1 - share) / count) ** 0.5)


@pytest.mark.parametrize("reading", ["corrected", "as_published"])
def test_each_share_is_the_one_asked_for(reading):
    inputs, chosen = mask_many(reading=reading, mask_probability=0.3, random_probability=0.2, keep_probability=0.1)
    assert chosen.mean() == four_errors(0.3, N_TOKENS)
    shown = inputs[chosen]
    assert (shown == SPECIAL.mask).mean() == four_errors(0.7, len(shown))
    assert (shown == 10).mean() == four_errors(0.1, len(shown))


def test_neighbours_are_chosen_and_decided_on_independently():
    inputs, chosen = mask_many(mask_probability=0.5, random_probability=0.0, keep_probability=0.5)
    hidden = inputs == SPECIAL.mask
    assert (chosen[1:] & chosen[:-1]).mean() == four_errors(0.25, N_TOKENS)
    assert (hidden[1:] & hidden[:-1]).mean() == four_errors(0.0625, N_TOKENS)


def test_the_published_guard_makes_random_tokens_rarer_by_less_than_a_millionth():
    as_random, kept = published_shares(0.1, 0.1)
    assert as_random == pytest.approx(0.2 * 0.1 / (0.2 + 1e-6), abs=1e-15)
    assert 0 < 0.1 - as_random < 1e-6
    assert as_random + kept == pytest.approx(0.2, abs=1e-15)


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.0, 0.3), (0.2, 0.0)])
def test_the_published_guard_keeps_shares_of_zero(shares):
    as_random, kept = published_shares(*shares)
    assert as_random + kept == pytest.approx(sum(shares))
    assert as_random <= shares[0] and kept >= 0


def test_short_examples_can_stay_without_a_label():
    rule = masking_rule(MaskedSettings("subword"), 16, 100, SPECIAL)
    generator = np.random.Generator(np.random.Philox(1))
    ids = np.array([SPECIAL.cls, 10, 11, SPECIAL.sep])
    bare = [bool((rule(ids, None, generator)[1] == UNLABELLED).all()) for _ in range(2000)]
    assert np.mean(bare) == four_errors(0.85**2, 2000)


FIRST_CONTINUATION = 50


def mask_words(ids, seed, word_starts=None, **settings):
    rule = masking_rule(MaskedSettings("whole_word", **settings), 64, 100, SPECIAL)
    starts = ids < FIRST_CONTINUATION if word_starts is None else word_starts
    return rule(ids, starts, np.random.Generator(np.random.Philox(seed)))


def words_of(ids):
    """Return the positions of each word by the definition, token by token."""
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
    inputs, labels = mask_words(ids, seed, mask_probability=probability)
    at = labels != UNLABELLED
    words = words_of(ids)
    assert not np.delete(at, [position for word in words for position in word]).any()
    for word in words:
        assert at[word].all() or not at[word].any()
        hidden = inputs[word] == SPECIAL.mask
        assert hidden.all() or not hidden.any()


def test_a_word_cut_off_by_the_segment_or_by_a_special_token_is_never_chosen():
    ids = np.array([SPECIAL.cls, 60, 61, 10, 62, SPECIAL.first_random, 63, 11, SPECIAL.sep])
    _, labels = mask_words(ids, 0, mask_probability=1.0)
    assert np.flatnonzero(labels != UNLABELLED).tolist() == [3, 4, 7]


def test_special_tokens_end_words_even_where_no_word_start_is_marked_there():
    ids = np.array([60, 10, 61, SPECIAL.first_random, 62, SPECIAL.sep])
    starts = np.array([False, True, False, False, False, False])
    _, labels = mask_words(ids, 0, starts, mask_probability=1.0)
    assert np.flatnonzero(labels != UNLABELLED).tolist() == [1, 2]


def test_maskable_special_tokens_are_units_without_continuation():
    ids = np.array([SPECIAL.cls, 60, 10, 61, SPECIAL.sep])
    chosen = [
        mask_words(ids, seed, mask_probability=0.5, special_tokens_maskable=True)[1] != UNLABELLED for seed in range(99)
    ]
    assert {tuple(row[[0, 1]]) for row in chosen} == {(False, False), (True, False)}
    assert {tuple(row[[2, 3]]) for row in chosen} == {(False, False), (True, True)}
    assert {tuple(row[[0, 4]]) for row in chosen} == {(a, b) for a in (False, True) for b in (False, True)}


def test_words_are_equally_likely_whatever_their_length_and_random_tokens_are_drawn_one_by_one():
    ids = np.array([SPECIAL.cls, 10, 11, 60, 12, *[60] * 20, SPECIAL.sep])
    made = [
        mask_words(ids, seed, mask_probability=0.3, random_probability=1.0, keep_probability=0.0)
        for seed in range(3000)
    ]
    chosen = np.stack([labels[[1, 2, 4]] != UNLABELLED for _, labels in made])
    assert chosen.mean(axis=0) == pytest.approx(0.3, abs=4 * (0.21 / 3000) ** 0.5)
    long_word = [inputs[4:-1] for inputs, labels in made if labels[4] != UNLABELLED]
    assert np.mean([len(set(word.tolist())) for word in long_word]) > 15, "of 21 draws from 95 tokens"


def test_the_fates_of_words_have_the_stated_shares():
    ids = np.array([SPECIAL.cls, *[10, 60] * 31, SPECIAL.sep])
    made = [
        mask_words(ids, seed, mask_probability=0.5, random_probability=0.2, keep_probability=0.1) for seed in range(400)
    ]
    shown = np.concatenate([inputs[1:-1].reshape(31, 2)[labels[1:-1:2] != UNLABELLED] for inputs, labels in made])
    error = 4 * (0.25 / len(shown)) ** 0.5
    assert (shown == SPECIAL.mask).all(axis=1).mean() == pytest.approx(0.7, abs=error)
    assert (shown == [10, 60]).all(axis=1).mean() == pytest.approx(0.1, abs=error)


@pytest.mark.parametrize("kind", ["short_span", "subword"])
def test_where_the_rate_falls_text_without_a_step_is_hidden_at_the_rate_of_the_end(kind):
    special = SETS["babylm"]
    falling = MaskedSettings(kind, mask_probability=0.4, final_mask_probability=0.1)
    shares = []
    for rate in (None, 0.4, 0.25):
        rule = masking_rule(falling, 2000, 100, special)
        rule = rule if rate is None else rule.at(rate)
        _, labels = rule(np.full(2000, 50), None, np.random.Generator(np.random.Philox(1)))
        shares.append((labels == 50).mean())
    assert shares == pytest.approx([0.1, 0.4, 0.25], abs=0.03)
    assert [falling.mask_rate(progress) for progress in (0, 0.5, 1)] == pytest.approx([0.4, 0.25, 0.1])
