"""Subword masking: independent choices, independent fates, in the stated shares."""

import numpy as np
import pytest

from hatchery.objectives.masking import masking_rule
from hatchery.objectives.masking.subword import published_shares
from hatchery.objectives.special_ids import SpecialIds
from hatchery.tokenization.special_tokens import SPECIAL_SETS, UNLABELLED
from hatchery.training.objectives.masked import MaskedSettings

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
