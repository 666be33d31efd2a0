"""Scores and predictions of a task model for encoded data, in batches of bounded size, back in the order of the units.

The order of the batches is the one that pads least; results stay on the device until all batches are done.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.evaluation.finetuning.batches import EncodedData, prediction_batches
from hatchery.modeling.heads.targets import IMPOSSIBLE_SCORE
from hatchery.modeling.heads.task_model import TaskModel

# Positions, padding included; more would leave the caches of a CPU, and fills a GPU with models of these sizes.
TOKENS_PER_BATCH = 8192


class NotFiniteError(ArithmeticError):
    """A loss, a gradient norm or a score is NaN or infinite: the run has diverged."""


class Predicted(NamedTuple):
    """Of n units: predictions int64 [n], float64 [n] or bool [n, K], and scores float32 [n, K].

    Where units have fewer choices than K, the score of a missing one is IMPOSSIBLE_SCORE.
    """

    predictions: np.ndarray
    scores: np.ndarray


# Not inference mode: a tensor that the model kept from here could not take part in the next epoch's gradients.
@torch.no_grad()
def predict(model: TaskModel, data: EncodedData, device: torch.device) -> Predicted:
    """Predictions and scores of all units. Raises NotFiniteError for a score that is not finite."""
    model.eval()
    units, scores, predictions = list[np.ndarray](), list[Tensor](), list[Tensor]()
    for items in prediction_batches(data.lengths, TOKENS_PER_BATCH):
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
