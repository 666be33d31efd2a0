"""Loss, perplexity and accuracy of a model on the masked sequences of one split.

Cross-entropies are computed in float32 and summed in float64 over all labelled tokens of the split, so the result is
the mean per token and not a mean of means per batch.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.modeling.language_model import LanguageModel, labelled_positions

# Labelled positions whose logits are in memory together: the widest product of the model.
_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class SplitScore:
    """One row of perplexity.csv; `loss_nats` is the mean negative log-likelihood per labelled token.

    `perplexity` is its exponential (infinite beyond float64), `accuracy` the share of labelled tokens that the model
    finds most probable. `pseudo_perplexity` is None where it was not asked for.
    """

    split: str
    sequences: int
    labelled_tokens: int
    loss_nats: float
    perplexity: float
    accuracy: float
    pseudo_perplexity: float | None = None


@torch.inference_mode()
def score_batches(
    model: LanguageModel, batches: Iterable[tuple[int, dict[str, Tensor]]], split: str, device: torch.device
) -> SplitScore:
    """Score `batches` of (number of sequences, tensors). The loss is NaN where the model gives no finite numbers.

    Without a labelled token, `labelled_tokens` is 0 and the other numbers are NaN.
    """
    sequences = labelled = 0
    loss_sum = torch.zeros((), dtype=torch.float64, device=device)
    correct = torch.zeros((), dtype=torch.int64, device=device)
    for rows, batch in batches:
        sequences += rows
        labels = batch["labels"]
        positions = labelled_positions(labels)
        if not len(positions):
            continue
        labelled += len(positions)
        hidden = model.encoder.hidden_at(
            batch["input_ids"].to(device), batch["attention_mask"].to(device), positions.to(device)
        )
        targets = labels.flatten()[positions].to(device)
        for part, wanted in zip(hidden.split(_ROWS_AT_ONCE), targets.split(_ROWS_AT_ONCE), strict=True):
            logits = model.logits_at(part).float()
            loss_sum += F.cross_entropy(logits, wanted, reduction="none").double().sum()
            correct += (logits.argmax(dim=-1) == wanted).sum()
    loss = float(loss_sum) / labelled if labelled else math.nan
    return SplitScore(
        split, sequences, labelled, loss, exponential(loss), int(correct) / labelled if labelled else math.nan
    )


def exponential(loss: float) -> float:
    """exp(loss), infinite where float64 ends."""
    return math.inf if loss > 709.0 else math.exp(loss)
