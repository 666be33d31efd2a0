"""Weights of a translation model before training: Xavier's normal for matrices, N(0, 1/D) for embedding and output.

Source: "A Natural Bias for Language Generation Models", Section 4.1 (the output matrix); the embedding, which is scaled
by sqrt(D) when it is read, as is usual with it. A tied matrix is the embedding. Biases start at 0, norms at 1 and 0.
"""

import math

import torch
from torch import nn

from hatchery.modeling.encoder_decoder.configuration import EncoderDecoderConfig
from hatchery.modeling.initialisation import normal_, xavier_deviation
from hatchery.modeling.norm_and_dropout import LayerNorm


@torch.no_grad()
def initialise_encoder_decoder_(model: nn.Module, seed: int) -> None:
    """Set every parameter of `model`, whose `config` is an EncoderDecoderConfig, in place."""
    config = model.config
    assert isinstance(config, EncoderDecoderConfig)
    for module_name, module in model.named_modules():
        for name, parameter in module.named_parameters(prefix=module_name, recurse=False):
            if isinstance(module, LayerNorm):
                parameter.fill_(1.0 if name.endswith("weight") else 0.0)
            elif parameter.dim() < 2:
                parameter.zero_()
            elif name == "head.vocabulary_weight":
                # The stream that scaled variants are drawn from, so that all have the same matrix but for its scale.
                normal_(parameter, 1 / math.sqrt(config.hidden_size), seed, "output_weight")
            elif isinstance(module, nn.Linear):
                normal_(parameter, xavier_deviation(parameter), seed, name)
            else:
                normal_(parameter, 1 / math.sqrt(config.hidden_size), seed, name)
