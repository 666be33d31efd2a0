"""Decisions as in fp32 at a lower price: all items are scored in bf16, and those with a small margin again in fp32.

The margin of an item is the difference of its two highest scores. In a drawn sample of items, computed in both
precisions, the largest error of a difference of two candidates' scores is measured. The bound is SAFETY times this
error. Items whose bf16 margin is at most the bound are computed again. Their errors count as well: an error that raises
the bound selects further items, until no further item is selected. So a bound from an unlucky sample is corrected. The
bound is measured, not proved: a decision differs from fp32's only if an unsampled error is more than SAFETY times as
large as all the measured errors.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch

from hatchery.evaluation.draws import generator

SAFETY = 4.0
"""The bound over the largest measured error. In 500 draws of 64 of 500 random items, the largest error of all items was
at most 2.7 times the largest of the draw (with means per token 4.2 times, in 95 % of the draws at most 2.9)."""
LEAST_SAMPLE, LARGEST_SAMPLE, SAMPLED_SHARE = 64, 512, 0.05
"""Items of the sample: this share of all, within these limits."""


@dataclass(frozen=True)
class Screening:
    """Scores of items, and which of them are fp32's: `scores` float64 [I, K], `in_fp32` bool [I].

    `bound` and `largest_error` have the unit of the scores: nats, or nats per token.
    """

    scores: np.ndarray
    in_fp32: np.ndarray
    bound: float
    largest_error: float

    @property
    def facts(self) -> dict[str, float]:
        """The share of items that were computed twice, the bound of margins, and the largest error, for manifests."""
        return {
            "computed_twice": round(float(self.in_fp32.mean()), 6) if len(self.in_fp32) else 0.0,
            "bound": round(self.bound, 6),
            "largest_error": round(self.largest_error, 6),
        }


def screened(
    half: np.ndarray, counts: Sequence[int], in_fp32: Callable[[np.ndarray], np.ndarray], seed: int
) -> Screening:
    """Return scores with which every decision is that of fp32.

    `half` float64 [I, K] are the scores in bf16 of I items with `counts` candidates each; later columns are ignored.
    `in_fp32` returns the scores float64 [n, K] of the items with the numbers int64 [n]. `seed` draws the sample.
    """
    exists = np.arange(half.shape[1]) < np.array(counts, dtype=np.int64)[:, None]
    margins = _margins(np.where(exists, half, -np.inf))
    size = min(len(half), LARGEST_SAMPLE, max(LEAST_SAMPLE, round(SAMPLED_SHARE * len(half))))
    wanted = np.zeros(len(half), dtype=bool)
    wanted[generator(seed, "screening").choice(len(half), size, replace=False)] = True
    # A score that is not finite has no margin.
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
    """Return the differences of the two highest scores of items, float64 [I], infinite without a second score."""
    if scores.shape[1] < 2:
        return np.full(len(scores), np.inf)
    highest = np.sort(scores, axis=1)[:, -2:]
    with np.errstate(invalid="ignore"):
        return highest[:, 1] - highest[:, 0]


def _largest_error(errors: np.ndarray, exists: np.ndarray) -> float:
    """Return the largest difference of the errors of two candidates of an item; items with other values than finite
    numbers are left out."""
    finite = np.isfinite(np.where(exists, errors, 0.0)).all(axis=1)
    errors, exists = errors[finite], exists[finite]
    if not len(errors):
        return 0.0
    spread = np.where(exists, errors, -np.inf).max(axis=1) - np.where(exists, errors, np.inf).min(axis=1)
    return float(spread.max())


def in_bf16(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which models compute their matrix products in bf16, with one bf16 copy of each weight."""
    return torch.autocast(device.type, dtype=torch.bfloat16)
