"""Weights before training: a truncated normal everywhere, smaller in the deeper feed-forward blocks.

Source: LTG-BERT section 3.1 (initialisation of Nguyen and Salazar, scaled feed-forward weights of Bajaj et al.) after
the published code, and ELC-BERT's layer weights. The result depends on the seed and the names of the parameters alone,
not on torch's global generator, the device, or the order in which modules were made.
"""

import hashlib
import math

import torch
from torch import Tensor, nn

from hatchery.modeling.feed_forward import FeedForward
from hatchery.modeling.layer_weighting import LayerMixture
from hatchery.modeling.masked_language_model import MaskedLanguageModel
from hatchery.modeling.numerics import LayerNorm


def initial_standard_deviation(hidden_size: int) -> float:
    """Nominal standard deviation sqrt(2 / (5 * hidden_size)), before truncation at two of them."""
    return math.sqrt(2 / (5 * hidden_size))


@torch.no_grad()
def initialise_(model: MaskedLanguageModel, seed: int) -> None:
    """Set every parameter of `model` in place.

    Models that differ only in layer weighting start from the same backbone, because each tensor has a stream of random
    numbers of its own.
    """
    deviation = initial_standard_deviation(model.config.hidden_size)
    initialise_linear_layers_(model, deviation, seed)
    embedding = model.encoder.embedding
    truncated_normal_(embedding.word_embedding.weight, deviation, seed, "word_embedding")
    truncated_normal_(embedding.relative_embedding, deviation, seed, "relative_embedding")
    model.head.vocabulary_bias.zero_()
    for module in model.modules():
        if isinstance(module, LayerNorm) and module.weight is not None and module.bias is not None:
            module.weight.fill_(1.0)
            module.bias.zero_()
        elif isinstance(module, LayerMixture):
            module.reset_parameters()
    blocks = [module for module in model.encoder.layers.modules() if isinstance(module, FeedForward)]
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


@torch.no_grad()
def truncated_normal_(tensor: Tensor, deviation: float, seed: int, name: str) -> None:
    """Fill `tensor` from a normal of standard deviation `deviation` cut at two of them.

    The numbers are drawn on the CPU from a generator of (seed, name), so a GPU gets the same ones.
    """
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
    values = torch.empty(tensor.shape, dtype=torch.float32)
    nn.init.trunc_normal_(values, std=deviation, a=-2 * deviation, b=2 * deviation, generator=generator)
    tensor.copy_(values)
