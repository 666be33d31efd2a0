"""Batches of examples of similar length, padded to the longest of the batch.

The order is a pure function of (seed, epoch, lengths): the same on every machine and independent of what was trained
before.
"""

from collections.abc import Sequence

import numpy as np
import torch

from hatchery.evaluation.seeds import generator

# Examples are sorted by length within pools of this many batches. Larger pools pad less, but on a small task they
# would put the same examples together in every epoch.
BATCHES_PER_POOL = 4


def training_batches(lengths: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Positions of each batch of an epoch; every example exactly once, only the last pool may have a short batch.

    Examples are shuffled, sorted by length within pools, cut into batches, and the batches are shuffled.
    """
    random = generator(seed, "training order", epoch)
    order = random.permutation(len(lengths))
    pool_size = batch_size * BATCHES_PER_POOL
    batches: list[np.ndarray] = []
    for start in range(0, len(order), pool_size):
        pool = order[start : start + pool_size]
        batches.extend(_cut(pool[np.argsort(lengths[pool], kind="stable")], batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def prediction_batches(lengths: np.ndarray, batch_size: int) -> list[np.ndarray]:
    """Positions of each batch in order of length, for a pass in which the order does not matter."""
    return _cut(np.argsort(lengths, kind="stable"), batch_size)


def _cut(order: np.ndarray, batch_size: int) -> list[np.ndarray]:
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


def pad_batch(sequences: Sequence[np.ndarray], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids int64 [B, T] padded at the end to the longest sequence, and the mask bool [B, T], True = token."""
    longest = max(len(sequence) for sequence in sequences)
    ids = np.full((len(sequences), longest), pad_id, dtype=np.int64)
    mask = np.zeros((len(sequences), longest), dtype=bool)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = True
    return torch.from_numpy(ids), torch.from_numpy(mask)
