"""Layer weighting: the combination of earlier outputs that is the input of a layer, of a block or of the heads.

Source: ELC-BERT, Sections 3 and 5.2 ("Not all layers are equally as important: Every Layer Counts BERT"), and the four
model files of ELC-BERT's code. The source of unrestricted weights is GPT-BERT (docs/papers/gpt-bert.md, "Layer
mixing"). Each variant is an object of the class `LayerWeighting`. The same encoder classes work with every variant,
including the plain residual transformer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from hatchery.modeling.configuration import LayerWeightingName


@dataclass(frozen=True)
class LayerWeighting:
    """A variant of layer weighting. It defines the input of each layer, and the residual connections inside a layer."""

    layer_input: Literal["previous", "softmax", "sum", "unrestricted"]
    """Input of a layer. "previous": the previous state. "softmax": a learned convex combination of all earlier outputs.
    "sum": the plain sum of all earlier outputs. "unrestricted": a learned combination of the residual sums of all
    blocks, with unrestricted weights, before each of the two blocks of a layer.
    """

    input_in_output: bool
    """True if a layer adds its input to its output (the residual stream)."""

    input_in_feed_forward: bool
    """True if the input of the feed-forward block is the sum of layer input and attention output (ELC-BERT, Equation
    2). False if the input is the attention output (Equation 5).
    """

    previous_layer_bias: float = 0.0
    """Initial logit of the previous layer's weight; the logits of the other weights start at 0."""

    output_normalisation: Literal["none", "layer_norm", "unit_vector"] = "none"
    """Normalisation of every layer's output: none, a layer norm without parameters, or division by the output's L2
    norm."""

    output_mixture: bool = False
    """True if the heads read a combination of all outputs, which is appended as a final state. False if they read the
    last output."""

    def sizes(self, n_layers: int) -> range:
        """Return the numbers of weights of all weighted sums in a model of `n_layers` layers, in the order in which the
        sums are computed. The range is empty if no weights are learned.
        """
        if self.layer_input == "softmax":
            return range(1, n_layers + self.output_mixture + 1)
        return range(2, 2 * n_layers + 2) if self.between_blocks else range(0)

    @property
    def between_blocks(self) -> bool:
        """Return True if, after each attention block and each feed-forward block, learned weights combine the embedding
        output and the residual sums of all blocks so far."""
        return self.layer_input == "unrestricted"


LAYER_WEIGHTINGS: dict[LayerWeightingName, LayerWeighting] = {
    "none": LayerWeighting("previous", input_in_output=True, input_in_feed_forward=True),
    # ELC-BERT as in its paper, winner of BabyLM 2023's STRICT track.
    "biased": LayerWeighting("softmax", False, input_in_feed_forward=False, previous_layer_bias=1.0),
    # Winner of the STRICT-SMALL track, and the basis of all softmax variants below.
    "zero": LayerWeighting("softmax", False, input_in_feed_forward=True),
    # The next two variants differ in the normalisation: ELC-BERT's code has a layer norm (vectors of length about
    # sqrt(D)), and ELC-BERT's paper describes unit vectors.
    "normalized": LayerWeighting("softmax", False, input_in_feed_forward=True, output_normalisation="layer_norm"),
    "normalized_unit_vector": LayerWeighting("softmax", False, True, output_normalisation="unit_vector"),
    "weighted_output": LayerWeighting("softmax", False, input_in_feed_forward=True, output_mixture=True),
    # GPT-BERT: initially every block reads the plain residual stream.
    "unrestricted": LayerWeighting("unrestricted", input_in_output=False, input_in_feed_forward=True),
}


class LayerMixture(nn.Module):
    """Combines the outputs of earlier layers into the inputs of the layers. If `weighting.output_mixture` is true, it
    also combines the outputs of all layers into the input of the heads.

    The consumers 1 to N are the layers, and the consumer N + 1 is the heads. `layer_weights[n - 1]` [n] are the logits
    of consumer n over its n producers: the embedding output and the layers 1 to n - 1. With unrestricted weights,
    `layer_weights[n - 1]` [n + 1] are the weights themselves: one for the embedding output, and one for the sum of each
    block 1 to n (two blocks per layer).
    """

    def __init__(self, weighting: LayerWeighting, n_layers: int) -> None:
        super().__init__()
        self.weighting = weighting
        self.sizes = tuple(weighting.sizes(n_layers))
        self.layer_weights = nn.ParameterList(nn.Parameter(vector) for vector in self.initial_weights())

    def initial_weights(self) -> list[Tensor]:
        """Return the initial layer weights: one vector for each weighted sum, in the order in which the sums are
        computed.
        """
        vectors = [torch.zeros(size) for size in self.sizes]
        for vector in vectors:
            vector[-1] = 1.0 if self.weighting.between_blocks else self.weighting.previous_layer_bias
        return vectors

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set the weights to their initial values."""
        for vector, start in zip(self.layer_weights, self.initial_weights(), strict=True):
            vector.copy_(start)

    def alphas(self, consumer: int) -> Tensor:
        """Return the weights [consumer] of the weighted sum that the layer with the number `consumer`, counted from 1,
        reads. The sum is over the embedding output and the outputs of all earlier layers; the weights sum to 1. For the
        input of the heads, `consumer` is the number of layers + 1.
        """
        return torch.softmax(self.layer_weights[consumer - 1], dim=0)

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        """Return the input of the next layer (or of the heads, after the last layer), given the embedding output and
        the outputs of all layers so far.
        """
        if self.weighting.layer_input == "previous":
            return outputs[-1]
        if self.weighting.layer_input == "sum":
            return torch.stack(tuple(outputs)).sum(dim=0)
        alphas = self.alphas(len(outputs)).unbind()
        mixed = outputs[0] * alphas[0]
        for output, alpha in zip(outputs[1:], alphas[1:], strict=True):
            mixed = mixed + output * alpha
        return mixed


class LayerWeightRow(NamedTuple):
    """One cell of the triangle of layer weights (ELC-BERT, Figure 1): the weight of one layer's output in the input of
    another layer.
    """

    consuming_layer: int
    """Index of the layer that reads the weighted outputs: 1 to N, or N + 1 for the heads."""
    producing_layer: int
    """Index of the layer whose output is weighted; 0 is the embedding output."""
    weight: float
    """alpha, the weight of the producing layer; the weights of one consuming layer sum to 1."""
    scaled_weight: float
    """`consuming_layer` * alpha, which is 1 if the consuming layer weights all its producers equally."""


def layer_weight_table(model: nn.Module) -> list[LayerWeightRow]:
    """Return the learned layer weights of `model`, sorted by consuming and then by producing layer.

    The list is empty for models without layer weighting, and for models with unrestricted weights, which combine blocks
    and do not sum to 1.
    """
    rows = []
    for mixture in model.modules():
        if isinstance(mixture, LayerMixture) and mixture.weighting.layer_input == "softmax":
            for consumer in range(1, len(mixture.layer_weights) + 1):
                alphas = mixture.alphas(consumer).detach().double().tolist()
                rows += [LayerWeightRow(consumer, i, alpha, consumer * alpha) for i, alpha in enumerate(alphas)]
    return rows
