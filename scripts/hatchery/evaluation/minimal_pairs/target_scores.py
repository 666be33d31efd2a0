"""Log-probabilities of targets at masked positions, with the product of states and vocabulary put off until it pays.

Batches of the encoder hold few masked positions each, and the product with the output matrix is fastest for many rows.
Where a model lets go of its states before the product, those of several batches are therefore kept and answered
together. What is answered together follows from the order of the batches alone.

A target needs its own logit and the logarithm of the sum over the vocabulary, and not the matrix of all
log-probabilities. On the CPU the logits are therefore made for some rows and some items at a time (tiles), in memory
that is used again: fresh pages cost as much as the product. Promise: the numbers of log_softmax up to rounding.
"""

import numpy as np
import torch
from torch import Tensor

from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, SentenceModel, target_log_probabilities
from hatchery.modeling.device_transfer import moved

# What was measured to be fastest with a MiB of second-level cache: few tiles of many rows, because the library arranges
# the items anew for every tile.
ROWS_PER_TILE = 1024
ITEMS_PER_TILE = 512


def log_normalisers(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """log sum over v of exp(logit_v), float32 [M], of `features` [M, D]; `weight` is [V, D] and `bias` [V]."""
    n_tiles = -(-len(weight) // ITEMS_PER_TILE)
    parts = features.new_empty((len(features), n_tiles))
    memory = features.new_empty((2, min(ROWS_PER_TILE, len(features)) * min(ITEMS_PER_TILE, len(weight))))
    biases = [None] * n_tiles if bias is None else bias.split(ITEMS_PER_TILE)
    for rows, part in zip(features.split(ROWS_PER_TILE), parts.split(ROWS_PER_TILE), strict=True):
        for column, (items, its_bias) in enumerate(zip(weight.split(ITEMS_PER_TILE), biases, strict=True)):
            shape = len(rows), len(items)
            logits, log_shares = (flat[: shape[0] * shape[1]].view(shape) for flat in memory)
            if its_bias is None:
                torch.mm(rows, items.T, out=logits)
            else:
                torch.addmm(its_bias, rows, items.T, out=logits)
            # torch's log_softmax is one fused step, its logsumexp five; the difference to any logit is what both know.
            torch.log_softmax(logits, dim=-1, out=log_shares)
            torch.sub(logits[:, 0], log_shares[:, 0], out=part[:, column])
    return torch.logsumexp(parts, dim=-1)


def tiled_log_probabilities(
    features: Tensor, weight: Tensor, bias: Tensor | None, of: Tensor, targets: Tensor
) -> Tensor:
    """Float32 [K]: log p(targets[k]) where the state is `features[of[k]]`; `of` and `targets` are int64 [K].

    `features` [M, D], `weight` [V, D] and `bias` [V] are float32 on the CPU.
    """
    logits = (features.index_select(0, of) * weight.index_select(0, targets)).sum(dim=-1)
    if bias is not None:
        logits = logits + bias.index_select(0, targets)
    return logits - log_normalisers(features, weight, bias).index_select(0, of)


class TargetScores:
    """The log-probabilities of `n_targets` targets, which batches ask for piece by piece.

    `finished` answers what is still put off and returns all of them, float32 [n_targets].
    """

    def __init__(self, model: SentenceModel, n_targets: int) -> None:
        self.model = model
        self.values = np.empty(n_targets, dtype=np.float32)
        self._features: list[Tensor] = []
        self._of: list[np.ndarray] = []
        self._targets: list[np.ndarray] = []
        self._places: list[np.ndarray] = []
        self._n_rows = 0
        # What the device has answered, or will have, and where it belongs.
        self._found: list[Tensor] = []
        self._found_places: list[np.ndarray] = []

    def ask(self, ids: Tensor, rows: Tensor, of: np.ndarray, targets: np.ndarray, places: np.ndarray) -> None:
        """Ask for log p(targets[k]) at the position `rows[of[k]]` of `ids`, to be written to `values[places[k]]`.

        `ids` is int64 [B, T] and `rows` int64 [M] (b * T + t), on the model's device; the others are int64 [K].
        """
        if not (isinstance(self.model, HatcheryModel) and self.model.device.type == "cpu"):
            asked = (moved(torch.from_numpy(part), self.model.device) for part in (of, targets))
            self._found.append(target_log_probabilities(self.model, ids, rows, *asked))
            self._found_places.append(places)
            return
        with torch.inference_mode():
            self._features.append(self.model.features_at(ids, rows))
        self._of.append(of + self._n_rows)
        self._targets.append(targets)
        self._places.append(places)
        self._n_rows += len(rows)
        if self._n_rows >= ROWS_PER_TILE:
            self._answer()

    def finished(self) -> np.ndarray:
        """All log-probabilities."""
        if self._n_rows:
            self._answer()
        if self._found:
            # Read in one go, after all batches were handed to the device.
            self.values[np.concatenate(self._found_places)] = torch.cat(self._found).cpu().numpy()
        return self.values

    def _answer(self) -> None:
        assert isinstance(self.model, HatcheryModel)
        of, targets = (torch.from_numpy(np.concatenate(parts)) for parts in (self._of, self._targets))
        with torch.inference_mode():
            features = torch.cat(self._features)
            found = tiled_log_probabilities(features, *self.model.network.output_layer, of, targets)
        self.values[np.concatenate(self._places)] = found.numpy()
        self._features, self._of, self._targets, self._places = [], [], [], []
        self._n_rows = 0
