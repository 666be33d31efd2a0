"""Every epoch contains each sequence once, for any batches, processes and micro-batches."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchery.errors import TrainingError
from hatchery.training.data_order import (
    EpochSlice,
    epoch_permutation,
    micro_batches,
    sequences_from,
    share_of_process,
)

ORDER_OF_TEN = [3, 4, 5, 0, 1, 6, 2, 7, 8, 9]


def global_batch(seed: int, step: int, batch_size: int, sequences: int) -> list[EpochSlice]:
    """Return the sequences of a step among steps of equal size, as slices of epochs."""
    order = partial(epoch_permutation, seed, sequences=sequences)
    return sequences_from(step * batch_size, batch_size, sequences, order)


def pairs(slices: list[EpochSlice]) -> list[tuple[int, int]]:
    return [(part.epoch, int(index)) for part in slices for index in part.indices]


@given(seed=st.integers(0, 2**31), step=st.integers(0, 50), batch_size=st.integers(1, 40), sequences=st.integers(1, 60))
def test_processes_and_micro_batches_always_make_up_the_same_global_batch(
    seed: int, step: int, batch_size: int, sequences: int
) -> None:
    whole = pairs(global_batch(seed, step, batch_size, sequences))
    assert len(whole) == batch_size
    for world_size in (1, 2, 4):
        if world_size > batch_size:
            continue
        for size in (None, 1, 3):
            gathered = []
            for rank in range(world_size):
                share = share_of_process(global_batch(seed, step, batch_size, sequences), rank, world_size)
                pieces = micro_batches(share, size)
                assert all(0 < len(pairs(piece)) <= (size or batch_size) for piece in pieces)
                gathered += [pair for piece in pieces for pair in pairs(piece)]
            assert gathered == whole


@given(seed=st.integers(0, 2**31), batch_size=st.integers(1, 17), sequences=st.integers(1, 40))
def test_every_epoch_sees_every_sequence_exactly_once(seed: int, batch_size: int, sequences: int) -> None:
    steps = -(-3 * sequences // batch_size)
    seen = [pair for step in range(steps) for pair in pairs(global_batch(seed, step, batch_size, sequences))]
    assert [epoch for epoch, _ in seen] == sorted(epoch for epoch, _ in seen)
    counts = Counter(seen[: 3 * sequences])
    assert counts == Counter({(epoch, index): 1 for epoch in range(3) for index in range(sequences)})


def test_epochs_and_seeds_have_different_orders_and_repeat_exactly() -> None:
    orders = [tuple(epoch_permutation(seed, epoch, 100)) for seed in (0, 1) for epoch in (0, 1)]
    assert len(set(orders)) == 4
    epoch_permutation.cache_clear()
    assert tuple(epoch_permutation(0, 0, 100)) == orders[0]
    # The order of an epoch must never change, because another order would silently change every result.
    assert epoch_permutation(42, 3, 10).tolist() == ORDER_OF_TEN


def test_shares_of_an_uneven_batch_differ_by_at_most_one() -> None:
    batch = [EpochSlice(0, np.arange(10))]
    sizes = [len(pairs(share_of_process(batch, rank, 4))) for rank in range(4)]
    assert sum(sizes) == 10 and max(sizes) - min(sizes) <= 1


def test_more_processes_than_sequences_are_refused() -> None:
    with pytest.raises(TrainingError, match="2 sequences for 3 processes, expected at least one sequence"):
        share_of_process([EpochSlice(0, np.arange(2))], 0, 3)


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(TrainingError, match="no sequence"):
        global_batch(0, 0, 4, 0)
