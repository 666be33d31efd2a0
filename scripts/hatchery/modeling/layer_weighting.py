"""Layer weighting: the inputs that a layer, or a block of a layer, reads from earlier layers, and its output.

Source: ELC-BERT, Sections 3 and 5.2 ("Not all layers are equally as important: Every Layer Counts BERT") and the four
published model files; GPT-BERT for the weights without restriction (docs/papers/gpt-bert.md, "Layer mixing"). A variant
is a record of choices; one encoder works with every variant, including the plain residual transformer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from hatchery.modeling.configuration import LayerWeightingName


@dataclass(frozen=True)
class LayerWeighting:
    """A rule that connects the layers."""

    layer_input: Literal["previous", "softmax", "sum", "unrestricted"]
    """The previous state; a learned convex combination of all earlier outputs; their plain sum (no parameters); or a
    learned combination without restriction of the residual sums of all blocks, after each of a layer's two blocks.
    """

    input_in_output: bool
    """True if a layer adds its input to its output (the residual stream)."""

    input_in_feed_forward: bool
    """True if the feed-forward block sees input plus attention (ELC-BERT, Equation 2), False if only the attention
    (Equation 5).
    """

    previous_layer_bias: float = 0.0
    """Initial logit of the previous layer; the other logits start at 0."""

    output_normalisation: Literal["none", "layer_norm", "unit_vector"] = "none"
    """Normalisation of every layer's output: none, a layer norm without parameters, or division by its length."""

    output_mixture: bool = False
    """True if the heads read a combination of all outputs, appended as one more state, instead of the last output."""

    def sizes(self, n_layers: int) -> range:
        """Return the number of weights of each consumer (a layer, a block or the heads), for a model of `n_layers`
        layers.
        """
        if self.layer_input == "softmax":
            return range(1, n_layers + self.output_mixture + 1)
        return range(2, 2 * n_layers + 2) if self.between_blocks else range(0)

    @property
    def between_blocks(self) -> bool:
        """Return whether weights follow each of a layer's two blocks and combine the sums of all blocks."""
        return self.layer_input == "unrestricted"


LAYER_WEIGHTINGS: dict[LayerWeightingName, LayerWeighting] = {
    "none": LayerWeighting("previous", input_in_output=True, input_in_feed_forward=True),
    # The paper's ELC-BERT, winner of the STRICT track.
    "biased": LayerWeighting("softmax", False, input_in_feed_forward=False, previous_layer_bias=1.0),
    # Winner of the STRICT-SMALL track; the next two are based on it.
    "zero": LayerWeighting("softmax", False, input_in_feed_forward=True),
    # The code normalises by a layer norm (length about sqrt(D)); the paper describes unit vectors.
    "normalized": LayerWeighting("softmax", False, input_in_feed_forward=True, output_normalisation="layer_norm"),
    "normalized_unit_vector": LayerWeighting("softmax", False, True, output_normalisation="unit_vector"),
    "weighted_output": LayerWeighting("softmax", False, input_in_feed_forward=True, output_mixture=True),
    # GPT-BERT: initially every block reads the plain residual stream.
    "unrestricted": LayerWeighting("unrestricted", input_in_output=False, input_in_feed_forward=True),
}


class LayerMixture(nn.Module):
    """Combines the outputs of earlier layers into the input of each layer, and of the heads.

    `layer_weights[n - 1]` are the logits of consumer n over its n producers: the embedding output and layers 1 to n -
    1. Layers are consumers 1 to N; with an output mixture the heads are consumer N + 1. Without restriction the
    parameters are the weights themselves, and `layer_weights[n - 1]` [n + 1] combines the embedding output and the sums
    of the blocks 1 to n: two blocks per layer.
    """

    def __init__(self, weighting: LayerWeighting, n_layers: int) -> None:
        super().__init__()
        self.weighting = weighting
        self.sizes = tuple(weighting.sizes(n_layers))
        self.layer_weights = nn.ParameterList(nn.Parameter(vector) for vector in self.initial_weights())

    def initial_weights(self) -> list[Tensor]:
        """Return the initial weights. The output mixture prefers no layer in any variant."""
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
        """Return the weights [consumer] of the producers 0 to consumer - 1, summing to 1."""
        return torch.softmax(self.layer_weights[consumer - 1], dim=0)

    def forward(self, outputs: Sequence[Tensor]) -> Tensor:
        """Return the input of the consumer that follows `outputs` (the embedding output and those of all layers so
        far).
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
    """One cell of the triangle of layer weights (ELC-BERT, Figure 1)."""

    consuming_layer: int
    """1 to N; N + 1 is the heads' input."""
    producing_layer: int
    """0 is the embedding output."""
    weight: float
    """alpha, the share of the producer; the shares of one consumer sum to 1."""
    scaled_weight: float
    """consuming_layer * alpha: 1 if a layer weights all its producers equally."""


def layer_weight_table(model: nn.Module) -> list[LayerWeightRow]:
    """Return the learned layer weights of `model`, by consuming and then producing layer; empty without layer
    weighting.

    Weights without restriction are left out, because they are no shares and combine blocks instead of layers.
    """
    rows = []
    for mixture in model.modules():
        if isinstance(mixture, LayerMixture) and mixture.weighting.layer_input == "softmax":
            for consumer in range(1, len(mixture.layer_weights) + 1):
                alphas = mixture.alphas(consumer).detach().double().tolist()
                rows += [LayerWeightRow(consumer, i, alpha, consumer * alpha) for i, alpha in enumerate(alphas)]
    return rows
