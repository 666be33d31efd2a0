import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.encoding import truncate_longest
from hatchery.evaluation.finetuning.length_batches import pad_batch, prediction_batches, training_batches
from hatchery.evaluation.seeds import derived_seed, generator
from hatchery.evaluation.splits import hold_out

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


@given(LENGTHS, st.integers(1, 9))
def test_batches_of_similar_length_pad_no_more_than_any_other_full_batches(lengths, batch_size):
    lengths = np.resize(lengths, -(-len(lengths) // batch_size) * batch_size)

    def padded(batches):
        return sum(len(batch) * int(lengths[batch].max()) for batch in batches)

    plain = [np.arange(len(lengths))[start : start + batch_size] for start in range(0, len(lengths), batch_size)]
    assert padded(prediction_batches(lengths, batch_size)) <= padded(plain)


def test_padding_marks_tokens_as_true():
    ids, mask = pad_batch([np.array([1, 9, 2]), np.array([1, 2])], pad_id=3)
    assert ids.tolist() == [[1, 9, 2], [1, 2, 3]]
    assert mask.tolist() == [[True, True, True], [True, True, False]]
    assert ids.dtype == torch.int64 and mask.dtype == torch.bool


@given(st.lists(st.integers(0, 30), min_size=1, max_size=2), st.integers(0, 40))
def test_truncation_cuts_only_from_the_end_of_the_longer_segment(lengths, room):
    segments = [list(range(length)) for length in lengths]
    kept = truncate_longest(segments, room)
    assert sum(map(len, kept)) == min(sum(lengths), room)
    for before, after in zip(segments, kept, strict=True):
        assert before[: len(after)] == after
    if len(lengths) == 2 and sum(lengths) > room:
        cut = [len(before) > len(after) for before, after in zip(segments, kept, strict=True)]
        assert any(cut)
        if all(cut):
            assert abs(len(kept[0]) - len(kept[1])) <= 1
        else:
            assert len(kept[cut.index(True)]) >= len(kept[cut.index(False)]) - 1
