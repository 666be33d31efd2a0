"""What holds for every masking rule, those that choose subwords and whole words, and the laws of spans one by one."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError, TrainingError
from hatchery.objectives.masking import masking_rule
from hatchery.objectives.masking.span import SPAN_LENGTH_PROBABILITIES
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
    """(special ids, ids, word starts) of a framed example of at most 64 tokens from a vocabulary of 100."""
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


@pytest.mark.parametrize("kind", ["subword", "whole_word"])
def test_framing_tokens_can_be_predicted_where_asked_for_but_padding_cannot(kind):
    special = SETS["roberta"]
    ids = np.array([special.cls, 10, special.sep, 20, special.sep, special.pad])
    masking = MaskedSettings(kind, mask_probability=1.0, special_tokens_maskable=True)
    _, labels = apply(masking, ids, np.ones(6, bool), 0, special)
    assert labels.tolist() == [*ids[:-1].tolist(), UNLABELLED]


@pytest.mark.parametrize("kind", KINDS)
def test_random_tokens_come_from_the_paragraph_mark_on(kind):
    """The published code starts one id too low; every reading keeps to it."""
    ids = np.array([1, *[10] * 60, 2])
    masking = MaskedSettings(kind, mask_probability=1.0, random_probability=1.0, keep_probability=0.0)
    seen = [apply(masking, ids, np.ones(62, bool), seed, SETS["babylm"], vocab_size=12) for seed in range(40)]
    drawn = np.concatenate([inputs[labels != UNLABELLED] for inputs, labels in seen])
    counts = np.bincount(drawn, minlength=12)
    assert counts[:5].sum() == 0
    assert counts[5:] == pytest.approx(len(drawn) / 7, rel=0.25)


def test_random_and_kept_units_cannot_exceed_all_units():
    with pytest.raises(ConfigError, match=r"got 1\.2, expected together at most 1"):
        MaskedSettings(random_probability=0.6, keep_probability=0.6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_of_special_tokens_only_is_refused(kind):
    with pytest.raises(TrainingError, match="vocab_size: got 6, expected more than 6"):
        masking_rule(MaskedSettings(kind), 16, 6, SETS["bnc"])


def test_only_whole_words_need_word_starts():
    needs = {kind: masking_rule(MaskedSettings(kind), 16, 100, SETS["bnc"]).needs_word_starts for kind in KINDS}
    assert needs == {"subword": False, "whole_word": True, "span": False}
    with pytest.raises(TrainingError, match="word starts"):
        apply(MaskedSettings("whole_word"), np.array([1, 10, 2]), None, 0, SETS["bnc"])


SPECIAL = SpecialIds.of(SPECIAL_SETS["bnc"])
N_TOKENS = 200_000


def mask_many(**settings):
    """One very long example of token 10, which no random token of the 10**6 others equals by chance to speak of."""
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


ALWAYS_MASK = MaskedSettings(random_probability=0.0, keep_probability=0.0)
# SHA-256 of 300 examples as masked before other objectives existed (see the test).
FIRST_RELEASE = "c012dfce6e091873f763ade06ed611dc7aec674aabeabfd61af30ab507b4558d"


def mask_spans(ids, sequence_length, seed, objective=ALWAYS_MASK, vocab_size=1000):
    rule = masking_rule(objective, sequence_length, vocab_size, SPECIAL)
    return rule(np.asarray(ids), None, np.random.Generator(np.random.Philox(seed)))


def framed(n_tokens):
    return np.array([SPECIAL.cls, *range(10, 10 + n_tokens), SPECIAL.sep])


def labelled_shares(n_tokens, sequence_length, objective, count=3000):
    """Labelled tokens of `count` examples with `n_tokens` ordinary ones."""
    ids = framed(n_tokens)
    return (
        np.array([(mask_spans(ids, sequence_length, s, objective)[1] != UNLABELLED).sum() for s in range(count)])
        / n_tokens
    )


def test_the_default_objective_still_draws_what_it_always_drew():
    """Tables of earlier releases depend on every number and on the order in which they are drawn."""
    digest = hashlib.sha256()
    for seed in range(300):
        sequence_length = (64, 128, 512)[seed % 3]
        n_tokens = 1 + (seed * 37) % (sequence_length - 2)
        tokens = 5 + (np.arange(n_tokens) * 7919 + seed) % 995
        ids = np.concatenate([[SPECIAL.cls], tokens, [SPECIAL.sep]])
        for array in mask_spans(ids, sequence_length, seed, MaskedSettings()):
            digest.update(array.astype("<i8").tobytes())
    assert digest.hexdigest() == FIRST_RELEASE


def test_span_lengths_follow_the_published_law():
    """docs/papers/ltg-bert.md, "Span masking"."""
    published = [0.0088, 0.3392, 0.2261, 0.1508, 0.1005, 0.0670, 0.0447, 0.0298, 0.0199, 0.0132]
    assert SPAN_LENGTH_PROBABILITIES.tolist() == pytest.approx(published, abs=5e-5)
    assert SPAN_LENGTH_PROBABILITIES.sum() == pytest.approx(1)
    assert SPAN_LENGTH_PROBABILITIES @ np.arange(10) == pytest.approx(2.74, abs=0.005)


def test_the_last_position_of_the_nominal_length_is_never_covered():
    covered = np.zeros(16, dtype=bool)
    for seed in range(300):
        covered |= mask_spans(range(10, 26), 16, seed)[1] != UNLABELLED
    assert covered.tolist() == [True] * 15 + [False]


def test_full_sequences_have_at_least_one_label_even_when_none_is_asked_for():
    assert labelled_shares(62, 64, MaskedSettings(mask_probability=0.0), count=200).all()


@pytest.mark.parametrize("objective", [MaskedSettings(at_least_one=False), MaskedSettings(reading="as_published")])
def test_the_other_two_forms_leave_an_example_without_labels_when_the_budget_is_zero(objective):
    bare = (labelled_shares(10, 128, objective) == 0).mean()
    assert bare == pytest.approx(0.85**10, abs=0.03)
    nothing = replace(objective, mask_probability=0.0)
    assert not labelled_shares(62, 64, nothing, count=200).any()


@pytest.mark.parametrize(
    ("sequence_length", "n_tokens", "share"), [(128, 126, 0.161), (128, 60, 0.172), (512, 510, 0.153)]
)
def test_spans_overshoot_the_budget_as_measured_on_the_elc_bert_code(sequence_length, n_tokens, share):
    """docs/papers/elc-bert.md, "Masking"; of 10-token examples 25 % of the tokens are labelled."""
    elc = MaskedSettings(at_least_one=False)
    assert labelled_shares(n_tokens, sequence_length, elc).mean() == pytest.approx(share, abs=0.003)
    assert labelled_shares(10, 128, elc).mean() == pytest.approx(0.25, abs=0.015)


def test_the_floor_changes_only_examples_with_a_budget_of_zero():
    ids = framed(20)
    for seed in range(200):
        without = mask_spans(ids, 128, seed, MaskedSettings(at_least_one=False))
        if (without[1] != UNLABELLED).any():
            assert np.array_equal(without, mask_spans(ids, 128, seed, MaskedSettings()))


def test_the_budget_counts_distinct_positions():
    """With every token to be masked, overlapping spans must go on until (nearly) all are covered."""
    ids = framed(14)
    everything = MaskedSettings(mask_probability=1.0)
    covered = [(mask_spans(ids, 16, seed, everything)[1][1:-1] != UNLABELLED).all() for seed in range(100)]
    assert np.mean(covered) > 0.9


def test_one_decision_holds_for_a_whole_span():
    """A run of labelled tokens begun by one span is all [MASK] or all visible; mixtures need two spans."""
    ids = framed(510)
    objective = MaskedSettings(mask_probability=0.01, random_probability=0.0, keep_probability=0.5)
    mixed = single = 0
    for seed in range(400):
        inputs, labels = mask_spans(ids, 512, seed, objective)
        hidden = inputs == SPECIAL.mask
        edges = np.flatnonzero(np.diff(np.concatenate([[0], labels != UNLABELLED, [0]])))
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            if end - start > 1:
                single += 1
                mixed += 0 < hidden[start:end].sum() < end - start
    assert single > 400
    assert mixed / single < 0.06


def test_published_spans_label_overlapped_positions_with_what_they_find_there():
    """The label defect: 6 % of the labels are wrong, nine tenths of them [MASK], and all sit where two spans met."""
    ids, wrong, hidden, total = framed(126), 0, 0, 0
    for seed in range(1500):
        _, labels = mask_spans(ids, 128, seed, MaskedSettings(reading="as_published"))
        at = labels != UNLABELLED
        wrong += (labels[at] != ids[at]).sum()
        hidden += (labels[at] == SPECIAL.mask).sum()
        total += at.sum()
        # Only [MASK] and random tokens can be found in place of the text.
        assert (labels[at] >= SPECIAL.mask).all()
    assert 0.055 < wrong / total < 0.068
    assert hidden / wrong == pytest.approx(0.8 / 0.9, abs=0.03)


def test_published_spans_that_always_hide_leave_masks_as_labels_and_as_inputs():
    ids = framed(30)
    seen = [
        mask_spans(ids, 32, seed, replace(ALWAYS_MASK, reading="as_published", mask_probability=0.9))
        for seed in range(50)
    ]
    for inputs, labels in seen:
        at = labels != UNLABELLED
        assert (inputs[at] == SPECIAL.mask).all()
        assert ((labels[at] == ids[at]) | (labels[at] == SPECIAL.mask)).all()
    assert any((labels == SPECIAL.mask).any() for _, labels in seen)


def test_the_published_budget_is_charged_twice_where_spans_overlap():
    """With every token to be masked, the published form stops long before all tokens are covered."""
    everything = {"mask_probability": 1.0}
    published = labelled_shares(14, 16, MaskedSettings(reading="as_published", **everything), count=500)
    corrected = labelled_shares(14, 16, MaskedSettings(**everything), count=500)
    assert published.mean() < 0.75 < 0.98 < corrected.mean()


def test_published_spans_end_where_no_token_can_be_reached():
    """The only ordinary token sits at the last nominal position, which no span covers."""
    inputs, labels = mask_spans(
        [SPECIAL.cls, SPECIAL.sep, 10], 3, 0, MaskedSettings(reading="as_published", mask_probability=1.0)
    )
    assert inputs.tolist() == [SPECIAL.cls, SPECIAL.sep, 10] and (labels == UNLABELLED).all()
