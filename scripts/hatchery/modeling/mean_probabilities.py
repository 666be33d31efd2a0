"""The mean of the probabilities of several models, from their logits."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def mean_probabilities(logits: Sequence[Tensor]) -> Tensor:
    """Return the logarithm of the models' mean probabilities, fp32 [M, V], given the logits [M, V] of each model.

    The models may pad the vocabulary to different sizes; a model gives probability 0 to an entry that it does not have.
    """
    widest = max(one.shape[-1] for one in logits)
    found = [torch.log_softmax(one.float(), dim=-1) for one in logits]
    padded = [nn.functional.pad(one, (0, widest - one.shape[-1]), value=-torch.inf) for one in found]
    return torch.logsumexp(torch.stack(padded), dim=0) - math.log(len(logits))
