"""Which parameters get weight decay, and with it LAMB's trust ratio.

This is the reading of the BabyLM code (ELC-BERT): every weight matrix is decayed; biases, layer norms, embeddings
and layer weights are not, and the word embedding, which is tied to the output layer, counts as an embedding. The
other reading is LTG-BERT's BNC code, which reaches the tied matrix through the output layer and decays it by 0.1.
"""

from typing import Any

import torch
from torch import nn

from hatchery.pretraining.lamb import Lamb
from hatchery.pretraining.settings import OptimizerSettings

UNDECAYED_NAMES = ("bias", "norm", "embedding", "layer_weights")


def is_decayed(name: str) -> bool:
    """Whether the parameter called `name` belongs to the group with weight decay."""
    return not any(part in name for part in UNDECAYED_NAMES)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two optimiser groups over all trainable parameters, each in the model's order; empty groups are left out.

    Tied parameters appear once, under their first name.
    """
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    decayed = [parameter for name, parameter in named if is_decayed(name)]
    undecayed = [parameter for name, parameter in named if not is_decayed(name)]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": undecayed, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def build_optimizer(model: nn.Module, settings: OptimizerSettings) -> torch.optim.Optimizer:
    """The optimiser over the parameter groups of `model`, which must already lie on its device."""
    groups = parameter_groups(model, settings.weight_decay)
    betas = (settings.beta1, settings.beta2)
    if settings.name == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, foreach=True)
