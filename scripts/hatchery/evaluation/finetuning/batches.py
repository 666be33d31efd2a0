"""Encoded data as the fine-tuning loop reads it, independent of the task, and batches of items of similar length.

`encoding.EncodedTexts` stores texts, pairs and choices, and `probing.encoding.EncodedSpans` stores sentences with
spans. The training order depends only on seed, epoch, lengths and batch size, so it is the same on every machine and
independent of earlier runs.

For prediction, items are sorted by length, and each batch is filled up to a number of tokens, so that there is little
padding. Under BabyLM's rules since 2025, prediction batches instead have 64 items in file order. Predictions stay on
the device until all batches are done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.evaluation.draws import generator
from hatchery.evaluation.ways_of_scoring import Edition
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE
from hatchery.modeling.heads.task_model import TaskModel
from hatchery.modeling.language_model import moved


@dataclass(frozen=True)
class Batch:
    """A batch: `inputs` are keyword arguments of a task model, and `labels` are the targets of the model's scores.

    Row i of the scores belongs to unit `units[i]` (int64 [N]) of the data set. A unit is one predicted label: texts
    have one unit per example, and sentences with spans have one unit per target.
    """

    inputs: dict[str, Any]
    labels: Tensor
    units: np.ndarray

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device; a copy to a GPU overlaps with computation."""
        inputs = {
            key: moved(value, device) if isinstance(value, Tensor) else value for key, value in self.inputs.items()
        }
        return Batch(inputs, moved(self.labels, device), self.units)


class EncodedData(Protocol):
    """A data set of items (examples, or sentences with spans) that can be put into batches."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each item, special tokens included, int64 [items]. If an item has choices, this is the
        length of its longest choice."""

    @property
    def n_units(self) -> int:
        """Number of units: examples, or targets in sentences. Each unit has one label and one prediction."""

    @property
    def labels(self) -> np.ndarray:
        """Labels of all units (examples, or targets in sentences): int64 [units] (one class or choice per unit), int64
        [units, K] (K labels per unit), float64 [units] (regression) or bool [units, K] (K independent yes-or-no labels
        per unit).
        """

    def batch(self, items: np.ndarray) -> Batch:
        """Return the items with the indices `items`, padded to the longest item. The batch's `units` are the indices,
        in this data set, of its units (examples, or targets in sentences).
        """

    def subset(self, items: Sequence[int]) -> "EncodedData":
        """Return the items with the indices `items`, in this order, as a new data set."""


# Items are sorted by length within pools of several batches. Larger pools need less padding. But in a single pool, the
# same items would share a batch in every epoch. Therefore an epoch has about POOLS_PER_EPOCH pools, within the bounds
# for the number of batches per pool.
POOLS_PER_EPOCH = 8
FEWEST_BATCHES_PER_POOL, MOST_BATCHES_PER_POOL = 4, 32


def batches_per_epoch(n_items: int, batch_size: int, drop_incomplete: bool = False) -> int:
    """Return the number of batches of one epoch, which is also the number of optimiser steps of the epoch."""
    return n_items // batch_size if drop_incomplete else -(-n_items // batch_size)


def training_batches(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int, drop_incomplete: bool = False
) -> list[np.ndarray]:
    """Return the item positions of each batch of an epoch. No item occurs twice, and at most one batch has fewer than
    `batch_size` items.

    Items are shuffled and divided into pools of several batches. The items of a pool are sorted by length and divided
    into batches; then all batches are shuffled. With `drop_incomplete`, items at the end of the shuffled order are
    dropped if they do not fill a batch.
    """
    random = generator(seed, "training order", epoch)
    n_batches = batches_per_epoch(len(lengths), batch_size, drop_incomplete)
    order = random.permutation(len(lengths))
    if drop_incomplete:
        order = order[: n_batches * batch_size]
    per_pool = min(max(n_batches // POOLS_PER_EPOCH, FEWEST_BATCHES_PER_POOL), MOST_BATCHES_PER_POOL)
    batches: list[np.ndarray] = []
    for start in range(0, len(order), batch_size * per_pool):
        pool = order[start : start + batch_size * per_pool]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches.extend(pool[first : first + batch_size] for first in range(0, len(pool), batch_size))
    return [batches[index] for index in random.permutation(len(batches))]


def prediction_batches(lengths: np.ndarray, tokens_per_batch: int) -> list[np.ndarray]:
    """Divide items into batches for prediction, and return the indices of each batch's items. The items are sorted by
    length (`lengths`, in tokens), the longest items first.

    A batch has at most `tokens_per_batch` tokens, padding included, unless a single item has more tokens.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, start = [], 0
    while start < len(order):
        count = max(1, tokens_per_batch // int(lengths[order[start]]))
        batches.append(order[start : start + count])
        start += count
    return batches


# Largest number of tokens in a prediction batch, padding included. A larger batch would not fit into a CPU's caches,
# and models of a typical size do not need a larger batch on a GPU.
TOKENS_PER_BATCH = 8192
# Number of items in an official prediction batch; items are batched in file order (docs/papers/babylm-2026.md,
# "Fine-tuning").
OFFICIAL_BATCH = 64


class NotFiniteError(ArithmeticError):
    """Raised if the run has diverged: a loss, a gradient norm or a score is NaN or infinite."""


class Predicted(NamedTuple):
    """Predictions for n units (examples, or targets in sentences), and up to K scores of each unit: float32 [n, K].
    Predictions are int64 [n] (classes or choices), float64 [n] (regression) or bool [n, K] (K independent yes-or-no
    labels).

    If units have fewer choices than K, the score of a missing choice is IMPOSSIBLE_SCORE.
    """

    predictions: np.ndarray
    scores: np.ndarray


# Use `no_grad`, not inference mode. A tensor that the model caches in inference mode cannot be used for gradients in
# the next epoch.
@torch.no_grad()
def predict(model: TaskModel, data: EncodedData, device: torch.device, edition: Edition = 2023) -> Predicted:
    """Return predictions and scores of all units of `data` (a unit is an example, or a target in a sentence). Raises
    NotFiniteError for a score that is not finite.

    If `edition` is 2025 or later, batches are those of BabyLM's pipeline: 64 items in file order. Since 2026, this
    pipeline pads texts at their start. The scores of a model with absolute positions then depend on the longest text of
    the batch.
    """
    model.eval()
    units, scores, predictions = list[np.ndarray](), list[Tensor](), list[Tensor]()
    n_items = len(data.lengths)
    in_order = [np.arange(start, min(start + OFFICIAL_BATCH, n_items)) for start in range(0, n_items, OFFICIAL_BATCH)]
    for items in prediction_batches(data.lengths, TOKENS_PER_BATCH) if edition == 2023 else in_order:
        batch = data.batch(items).to(device)
        found = model(**batch.inputs)
        units.append(batch.units)
        scores.append(found.float())
        predictions.append(model.predictions(found))
    order = np.argsort(np.concatenate(units), kind="stable")
    width = max(part.shape[-1] for part in scores)
    padded = [F.pad(part, (0, width - part.shape[-1]), value=IMPOSSIBLE_SCORE) for part in scores]
    all_scores = torch.cat(padded).cpu().numpy()[order]
    if not np.all(np.isfinite(all_scores)):
        raise NotFiniteError("a score is not finite")
    all_predictions = torch.cat(predictions).cpu().numpy()[order]
    is_number = all_predictions.dtype.kind == "f"
    return Predicted(all_predictions.astype(np.float64) if is_number else all_predictions, all_scores)
