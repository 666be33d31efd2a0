"""Weights before training: a truncated normal everywhere, smaller in the deeper feed-forward blocks.

Source: LTG-BERT section 3.1 (initialisation of Nguyen and Salazar, scaled feed-forward weights of Bajaj et al.) after
the published code, and ELC-BERT's layer weights; the RoBERTa-like family has a module of its own. The result depends
on the seed and the names of the parameters alone, not on torch's global generator, the device, or the order in which
modules were made.
"""

import math

import torch
from torch import nn

from hatchery.modeling.encoder import Encoder
from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.language_model_head import MaskedLanguageModelHead
from hatchery.modeling.layer_weighting import LayerMixture
from hatchery.modeling.masked_language_model import MaskedLanguageModel
from hatchery.modeling.numerics import LayerNorm
from hatchery.modeling.roberta_initialisation import initialise_roberta_
from hatchery.modeling.seeded_weights import truncated_normal_


def initial_standard_deviation(hidden_size: int) -> float:
    """Nominal standard deviation sqrt(2 / (5 * hidden_size)), before truncation at two of them."""
    return math.sqrt(2 / (5 * hidden_size))


@torch.no_grad()
def initialise_(model: MaskedLanguageModel, seed: int) -> None:
    """Set every parameter of `model` in place, as its family does.

    Models that differ only in layer weighting start from the same backbone, because each tensor has a stream of random
    numbers of its own.
    """
    if isinstance(model.encoder, Encoder) and isinstance(model.head, MaskedLanguageModelHead):
        _initialise_ltg_bert_(model, model.encoder, model.head, seed)
    else:
        initialise_roberta_(model, seed)
    for module in model.modules():
        if isinstance(module, LayerMixture):
            module.reset_parameters()


def _initialise_ltg_bert_(model: nn.Module, encoder: Encoder, head: MaskedLanguageModelHead, seed: int) -> None:
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
    if config.feed_forward_initial_scaling:
        blocks = [module for module in encoder.layers.modules() if isinstance(module, FeedForward)]
        for depth, block in enumerate(blocks):
            scale_feed_forward_(block, depth)


@torch.no_grad()
def initialise_linear_layers_(module: nn.Module, deviation: float, seed: int) -> None:
    """Draw the weights of all linear layers inside `module` and set their biases to 0."""
    for name, child in module.named_modules():
        if isinstance(child, nn.Linear):
            truncated_normal_(child.weight, deviation, seed, name)
            if child.bias is not None:
                child.bias.zero_()


@torch.no_grad()
def scale_feed_forward_(feed_forward: FeedForward, depth: int) -> None:
    """Multiply both matrices of the block in layer `depth` (from 0) by 1 / sqrt(2 * (depth + 1))."""
    for projection in (feed_forward.input_projection, feed_forward.output_projection):
        projection.weight.mul_(1 / math.sqrt(2 * (depth + 1)))
