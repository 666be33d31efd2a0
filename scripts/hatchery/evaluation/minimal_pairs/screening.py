"""Make the same decisions as fp32 at a lower cost: score all items in bf16, and items with a small margin again in
fp32.

The margin of an item is the difference between its two highest scores. A random sample of items is scored in both
precisions, and the largest error of a score difference between two candidates is measured. SAFETY times this error is
the bound for margins: items whose bf16 margin is at most the bound are scored in fp32.

The errors of these items are measured, too. A larger error raises the bound, and further items are then scored in fp32.
This is repeated until no item is added. The bound is measured, not proved: a decision can differ from fp32 only if the
error of an item outside the sample is more than SAFETY times the largest measured error.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch

from hatchery.evaluation.draws import generator

SAFETY = 4.0
"""Factor between the bound and the largest measured error. In 500 draws of 64 from 500 items, the largest error of all
items was at most 2.7 times the largest error of the draw. For scores per token, the largest error was at most 4.2 times
the largest error of the draw, and at most 2.9 times in 95 % of the draws.
"""
LEAST_SAMPLE, LARGEST_SAMPLE, SAMPLED_SHARE = 64, 512, 0.05
"""Smallest number of sampled items, largest number of sampled items, and sampled fraction of all items."""


@dataclass(frozen=True)
class Screening:
    """Scores float64 [I, K] of I items with up to K candidates; `in_fp32` bool [I] is True for items that were scored
    in fp32.

    All items whose bf16 margin is at most `bound` were scored in fp32. `largest_error` is the largest measured error of
    a score difference. Both have the unit of the scores: nats, or nats per token.
    """

    scores: np.ndarray
    in_fp32: np.ndarray
    bound: float
    largest_error: float

    @property
    def facts(self) -> dict[str, float]:
        """Facts for manifests: the fraction of items that were scored again in fp32, the bound (all items whose two
        highest bf16 scores differ by at most the bound were scored again), and the largest measured error of a score
        difference.
        """
        return {
            "computed_twice": round(float(self.in_fp32.mean()), 6) if len(self.in_fp32) else 0.0,
            "bound": round(self.bound, 6),
            "largest_error": round(self.largest_error, 6),
        }


def screened(
    half: np.ndarray, counts: Sequence[int], in_fp32: Callable[[np.ndarray], np.ndarray], seed: int
) -> Screening:
    """Return bf16 scores, some of them replaced by fp32 scores. Decisions by these scores are those by fp32 scores,
    provided that no error exceeds the measured bound.

    `half` float64 [I, K] are the bf16 scores of I items; item i has `counts[i]` candidates, and its later columns are
    ignored. `in_fp32` maps item indices int64 [n] to fp32 scores float64 [n, K]. `seed` determines the random sample
    of items on which the bound is first measured.
    """
    exists = np.arange(half.shape[1]) < np.array(counts, dtype=np.int64)[:, None]
    margins = _margins(np.where(exists, half, -np.inf))
    size = min(len(half), LARGEST_SAMPLE, max(LEAST_SAMPLE, round(SAMPLED_SHARE * len(half))))
    wanted = np.zeros(len(half), dtype=bool)
    wanted[generator(seed, "screening").choice(len(half), size, replace=False)] = True
    # An item with a non-finite bf16 score has no margin, so score it again in fp32.
    wanted |= ~np.isfinite(np.where(exists, half, 0.0)).all(axis=1)
    scores, done = half.copy(), np.zeros(len(half), dtype=bool)
    largest = 0.0
    while wanted.any():
        chosen = np.flatnonzero(wanted)
        scores[chosen] = in_fp32(chosen)
        done |= wanted
        largest = max(largest, _largest_error(half[chosen] - scores[chosen], exists[chosen]))
        wanted = (margins <= SAFETY * largest) & ~done
    return Screening(scores, done, SAFETY * largest, largest)


def _margins(scores: np.ndarray) -> np.ndarray:
    """Return for each item the difference between its two highest scores, float64 [I]; infinity for an item with a
    single score."""
    if scores.shape[1] < 2:
        return np.full(len(scores), np.inf)
    highest = np.sort(scores, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        return highest[:, 1] - highest[:, 0]


def _largest_error(errors: np.ndarray, exists: np.ndarray) -> float:
    """Return the largest error of a score difference between two candidates of one item. `errors` [I, K] are the errors
    of the scores of I items, and `exists` [I, K] is True for existing candidates. Items with a NaN or infinite error
    are omitted."""
    finite = np.isfinite(np.where(exists, errors, 0.0)).all(axis=1)
    errors, exists = errors[finite], exists[finite]
    if not len(errors):
        return 0.0
    spread = np.where(exists, errors, -np.inf).max(axis=1) - np.where(exists, errors, np.inf).min(axis=1)
    return float(spread.max())


def in_bf16(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which models compute their matrix products in bf16, with one bf16 copy of each weight."""
    return torch.autocast(device.type, dtype=torch.bfloat16)
