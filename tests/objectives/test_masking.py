"""What every masking rule keeps to, whatever it chooses; and which settings there can be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatchery.errors import ConfigError, TrainingError
from hatchery.objectives.masking import masking_rule
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.training.objectives.masked import MaskedSettings
from hatchery.typed import build

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


@pytest.mark.parametrize("name", ["mask_probability", "random_probability", "keep_probability"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_impossible_shares_are_refused(name, value):
    with pytest.raises(ConfigError, match=name):
        build(MaskedSettings, {name: value}, "objective")


def test_random_and_kept_units_cannot_exceed_all_units():
    with pytest.raises(ConfigError, match=r"got 1\.2, expected together at most 1"):
        MaskedSettings(random_probability=0.6, keep_probability=0.6)


@pytest.mark.parametrize("name", ["kind", "reading"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ConfigError, match=f"objective.{name}: got 'phrase', "):
        build(MaskedSettings, {name: "phrase"}, "objective")


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_of_special_tokens_only_is_refused(kind):
    with pytest.raises(TrainingError, match="vocab_size: got 6, expected more than 6"):
        masking_rule(MaskedSettings(kind), 16, 6, SETS["bnc"])


def test_only_whole_words_need_word_starts():
    needs = {kind: masking_rule(MaskedSettings(kind), 16, 100, SETS["bnc"]).needs_word_starts for kind in KINDS}
    assert needs == {"subword": False, "whole_word": True, "span": False}
    with pytest.raises(TrainingError, match="word starts"):
        apply(MaskedSettings("whole_word"), np.array([1, 10, 2]), None, 0, SETS["bnc"])
