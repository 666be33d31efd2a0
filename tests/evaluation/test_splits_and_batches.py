import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import EvaluationError
from hatchery.evaluation.draws import derived_seed, generator, hold_out
from hatchery.evaluation.finetuning.batches import batches_per_epoch, prediction_batches, training_batches

LENGTHS = st.lists(st.integers(2, 60), min_size=1, max_size=200).map(np.array)


@given(st.lists(st.integers(0, 15), min_size=1, max_size=80), st.floats(0.01, 0.6), st.integers(0, 5))
def test_held_out_rows_are_a_partition_that_divides_no_group(groups, fraction, seed):
    distinct = len(set(groups))
    expected = max(1, round(fraction * distinct))
    if expected >= distinct:
        with pytest.raises(EvaluationError, match=f"here: {distinct} different rows are too few"):
            hold_out(groups, fraction, generator(seed), "here")
        return
    kept, held = hold_out(groups, fraction, generator(seed), "here")
    assert sorted(kept + held) == list(range(len(groups)))
    held_groups = {groups[index] for index in held}
    assert held_groups.isdisjoint(groups[index] for index in kept)
    assert len(held_groups) == expected
    assert (kept, held) == hold_out(groups, fraction, generator(seed), "here")


def test_each_seed_holds_out_other_rows():
    splits = {tuple(hold_out(range(100), 0.1, generator(seed, "development rows"), "")[1]) for seed in range(5)}
    assert len(splits) == 5 and all(len(held) == 10 for held in splits)


def test_purposes_of_one_seed_are_independent_and_fixed():
    assert derived_seed(12, "head") != derived_seed(12, "order") != derived_seed(13, "order")
    assert derived_seed(1, "23") != derived_seed(12, "3")
    # A changed derivation would silently change every published number of ours.
    assert derived_seed(12, "head") == 6489840010828851964


@given(LENGTHS, st.integers(1, 9), st.integers(0, 3), st.integers(1, 3))
def test_an_epoch_trains_on_every_example_once_in_an_order_fixed_by_seed_and_epoch(lengths, batch_size, seed, epoch):
    batches = training_batches(lengths, batch_size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(batch) <= batch_size for batch in batches)
    assert sum(len(batch) < batch_size for batch in batches) <= 1
    again = training_batches(lengths, batch_size, seed, epoch)
    assert [b.tolist() for b in batches] == [b.tolist() for b in again]


def test_epochs_and_seeds_mix_anew():
    lengths = np.arange(200) % 17
    orders = {tuple(np.concatenate(training_batches(lengths, 8, s, e)).tolist()) for s in range(3) for e in range(1, 4)}
    assert len(orders) == 9
    # Also the company that an example keeps changes, not only the order of fixed batches.
    partners = {frozenset(b.tolist()) for e in range(1, 4) for b in training_batches(lengths, 8, 0, e) if 0 in b}
    assert len(partners) == 3


@given(LENGTHS, st.integers(1, 9), st.integers(0, 3))
def test_dropping_the_incomplete_batch_leaves_full_batches_only(lengths, batch_size, seed):
    batches = training_batches(lengths, batch_size, seed, 1, drop_incomplete=True)
    assert [len(batch) for batch in batches] == [batch_size] * (len(lengths) // batch_size)
    assert len(batches) == batches_per_epoch(len(lengths), batch_size, drop_incomplete=True)
    chosen = [index for batch in batches for index in batch.tolist()]
    assert len(set(chosen)) == len(chosen)


def test_the_items_that_a_dropped_batch_leaves_out_are_not_the_longest_ones():
    lengths = np.arange(1, 36)
    left_out = set()
    for epoch in range(40):
        batches = training_batches(lengths, 8, 0, epoch, drop_incomplete=True)
        left_out |= set(range(35)) - set(np.concatenate(batches).tolist())
    assert left_out == set(range(35))


@given(LENGTHS, st.integers(1, 400))
def test_prediction_batches_cover_everything_once_within_the_budget_of_tokens(lengths, budget):
    batches = prediction_batches(lengths, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget


def test_training_batches_pad_much_less_than_batches_in_a_random_order():
    lengths = np.random.default_rng(0).integers(5, 40, size=2000)

    def padded(batches):
        return sum(len(batch) * int(lengths[batch].max()) for batch in batches) / lengths.sum()

    order = np.random.default_rng(1).permutation(2000)
    assert padded(training_batches(lengths, 16, 0, 1)) < 1.15
    assert padded([order[start : start + 16] for start in range(0, 2000, 16)]) > 1.5
