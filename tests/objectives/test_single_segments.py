"""The lengths to which single segments are cut, against the published rule."""

import numpy as np
import pytest

from hatchery.objectives.sequences import single_target
from hatchery.training.objectives import objective_of
from hatchery.training.objectives.masked import MaskedSettings

LENGTH, DRAWS = 64, 6000


def drawn_lengths(collection, segments, short_probability=0.1):
    """Number of tokens of the first example, special tokens left out, in each of many epochs."""
    settings = MaskedSettings("subword", short_probability=short_probability, segments=segments)
    examples = objective_of(settings).examples(collection, LENGTH)
    return np.array([len(examples.example(0, epoch, 0).labels) - 2 for epoch in range(DRAWS)])


@pytest.mark.parametrize("segments", ["babylm", "bnc", "documents"])
def test_a_tenth_of_the_examples_is_cut_to_a_uniform_length(make_collection, segments):
    lengths = drawn_lengths(make_collection([[100, 30]]), segments)
    full, shortest = LENGTH - 2, 1
    assert set(np.unique(lengths)) <= set(range(shortest, full + 1))
    short = lengths[lengths < full]
    n_values = full - shortest
    assert len(short) / DRAWS == pytest.approx(0.1, abs=3 * (0.1 * 0.9 / DRAWS) ** 0.5)
    counts = np.bincount(short, minlength=full)[shortest:]
    expected = len(short) / n_values
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < (n_values - 1) + 3 * (2 * (n_values - 1)) ** 0.5
    assert short.mean() == pytest.approx((1 + full - 1) / 2, abs=3 * (n_values**2 / 12 / len(short)) ** 0.5)


def test_the_shortest_and_the_longest_cut_are_reached():
    target = single_target(LENGTH, 0.1)
    assert (target(0.0, 0.0), target(0.0, 1 - 2**-53), target(0.1, 0.0)) == (1, LENGTH - 3, LENGTH - 2)


def test_shorter_segments_stay_whole(make_collection):
    lengths = drawn_lengths(make_collection([[20]]), "bnc")
    # Cut below 20 only where the target is: 19 of 61 short targets.
    assert lengths.max() == 20
    share = 0.1 * 19 / 61
    assert (lengths < 20).mean() == pytest.approx(share, abs=3 * (share * (1 - share) / DRAWS) ** 0.5)


def test_nothing_is_cut_without_short_examples(make_collection):
    assert (drawn_lengths(make_collection([[100]]), "documents", 0.0) == LENGTH - 2).all()
