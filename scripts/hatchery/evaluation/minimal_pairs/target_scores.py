"""Log-probabilities of targets at masked positions, with the product of states and vocabulary put off until it pays.

Batches of the encoder hold few masked positions each, and the product with the output matrix is fastest for many rows.
Where a model lets go of its states before the product, those of several batches are therefore kept and answered
together. What is answered together follows from the order of the batches alone.
"""

import numpy as np
import torch
from torch import Tensor

from hatchery.evaluation.minimal_pairs.sentence_model import HatcheryModel, SentenceModel, target_log_probabilities
from hatchery.evaluation.minimal_pairs.vocabulary_tiles import ROWS_PER_TILE, tiled_log_probabilities


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

    def ask(self, ids: Tensor, rows: Tensor, of: np.ndarray, targets: np.ndarray, places: np.ndarray) -> None:
        """Ask for log p(targets[k]) at the position `rows[of[k]]` of `ids`, to be written to `values[places[k]]`.

        `ids` is int64 [B, T] and `rows` int64 [M] (b * T + t), on the model's device; the others are int64 [K].
        """
        if not (isinstance(self.model, HatcheryModel) and self.model.device.type == "cpu"):
            asked = (torch.from_numpy(part).to(self.model.device) for part in (of, targets))
            self.values[places] = target_log_probabilities(self.model, ids, rows, *asked)
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
