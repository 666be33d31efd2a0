"""Weights of the LTG-BERT family before training: a truncated normal, smaller in the deeper feed-forward blocks.

Source: LTG-BERT, Section 4 (initialisation of Nguyen and Salazar, scaled feed-forward weights of Bajaj et al.), after
the published code (docs/papers/ltg-bert.md, "Initial weights" and "Differences").
"""

import math

import torch

from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.initialisation import (
    initial_standard_deviation,
    initialise_linear_layers_,
    truncated_normal_,
)
from hatchery.modeling.language_model import LanguageModel
from hatchery.modeling.ltg.encoder import LtgEncoder, LtgHead
from hatchery.modeling.norm_and_dropout import LayerNorm


@torch.no_grad()
def initialise_ltg_(model: LanguageModel, seed: int) -> None:
    """Set every parameter of `model` in place; the layer mixture sets its own."""
    encoder, head = model.encoder, model.head
    assert isinstance(encoder, LtgEncoder) and isinstance(head, LtgHead)
    config, embedding = encoder.config, encoder.embedding
    deviation = initial_standard_deviation(config.hidden_size)
    initialise_linear_layers_(model, deviation, seed)
    truncated_normal_(embedding.word_embedding.weight, deviation, seed, "word_embedding")
    if config.position_embedding == "relative":
        truncated_normal_(embedding.relative_embedding, deviation, seed, "relative_embedding")
    else:
        truncated_normal_(embedding.position_embedding.weight, deviation, seed, "position_embedding")
    if head.vocabulary_weight is not None:
        truncated_normal_(head.vocabulary_weight, deviation, seed, "vocabulary_weight")
    if head.vocabulary_bias is not None:
        head.vocabulary_bias.zero_()
    for module in model.modules():
        if isinstance(module, LayerNorm) and module.weight is not None and module.bias is not None:
            module.weight.fill_(1.0)
            module.bias.zero_()
    for name, parameter in encoder.layers.named_parameters():
        if name.endswith(("head_scale", "residual_scale")):
            parameter.fill_(1.0)
    if config.feed_forward_initial_scaling:
        blocks = [module for module in encoder.layers.modules() if isinstance(module, FeedForward)]
        for depth, block in enumerate(blocks):
            scale_feed_forward_(block, depth)


@torch.no_grad()
def scale_feed_forward_(feed_forward: FeedForward, depth: int) -> None:
    """Multiply both matrices of the block in layer `depth` (from 0) by 1 / sqrt(2 * (depth + 1))."""
    for projection in (feed_forward.input_projection, feed_forward.output_projection):
        projection.weight.mul_(1 / math.sqrt(2 * (depth + 1)))
