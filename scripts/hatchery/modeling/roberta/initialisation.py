"""Weights of the RoBERTa-like family before training: Xavier's normal for matrices, constants for vectors.

Source: the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Initial weights"). The code tells
layer norms by the names of their parameters and so misses the one behind the projection, which starts at gain 0.01 and
bias 0.01 like every linear bias. "as_published" repeats both; "corrected" mends only them, and keeps Xavier's normal
for every matrix, the embeddings with the row of the padding included. The study drew from one stream, so its very
numbers cannot be had again.
"""

import torch
from torch import nn

from hatchery.modeling.initialisation import normal_, xavier_deviation
from hatchery.modeling.norm_and_dropout import LayerNorm
from hatchery.modeling.roberta.configuration import RobertaConfig

PUBLISHED_CONSTANT = 0.01


@torch.no_grad()
def initialise_roberta_(model: nn.Module, seed: int) -> None:
    """Set every parameter of `model`, whose `config` is a RobertaConfig, in place; the layer mixture sets its own."""
    config = model.config
    assert isinstance(config, RobertaConfig)
    as_published = config.initialisation == "as_published"
    for module_name, module in model.named_modules():
        if isinstance(module, nn.ParameterList):
            continue  # the layer weights
        misses = as_published and module_name.endswith("projection_layer_norm")
        for name, parameter in module.named_parameters(prefix=module_name, recurse=False):
            if isinstance(module, LayerNorm) and not misses:
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
            elif parameter.dim() >= 2:
                normal_(parameter, xavier_deviation(parameter), seed, name)
            else:
                parameter.fill_(PUBLISHED_CONSTANT if as_published else 0.0)
