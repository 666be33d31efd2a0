"""A learned convex combination of all layers, as probes read them.

Source: LTG-BERT section 5.2 and Appendix C. Since sub-layers add to an un-normalised residual stream, the paper
mixes what each layer adds, s_k = l_k - l_(k-1); the published code hands the plain layer outputs l_k to a module that
is missing. Both readings are here; the weights are the paper's Table 5. "contributions" is the paper's where layers add
up, and the output elsewhere: with layer weighting (ELC-BERT) and after norms a state already is what its layer gives.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.layered_encoder import LayeredEncoder

LayerReading = Literal["contributions", "differences", "outputs"]


def layer_vectors(encoder: LayeredEncoder, states: Sequence[Tensor], reading: LayerReading) -> Tensor:
    """What the layers 1 to L give, [L, B, T, D], from all states of `encoder`; the embedding itself is left out.

    Raises ModelError for "differences" of an encoder with layer weighting, whose layers do not add to their inputs, and
    for an unknown reading.
    """
    # A weighted output appends its mixture to the states; that is no layer.
    stacked = torch.stack(tuple(states[: len(encoder.layers) + 1]))
    if reading == "contributions":
        reading = "differences" if layers_add_up(encoder) else "outputs"
    if reading == "outputs":
        return stacked[1:]
    if reading != "differences":
        raise ModelError(f"layer_reading: got {reading!r}, expected contributions, differences or outputs")
    if not encoder.weighting.input_in_output:
        raise ModelError("layer_reading: got 'differences', expected 'outputs' for an encoder without residual stream")
    return stacked[1:] - stacked[:-1]


def layers_add_up(encoder: LayeredEncoder) -> bool:
    """Whether the state of a layer is the sum of what it and the layers below have given."""
    is_normalised = getattr(encoder.config, "normalisation", "post_norm") == "post_norm"
    return encoder.weighting.input_in_output and not is_normalised


class LayerMix(nn.Module):
    """Softmax weights over layers, equal at the start; if `scaled`, times a learned number that starts at 1."""

    def __init__(self, n_layers: int, scaled: bool = False) -> None:
        super().__init__()
        self.layer_weights = nn.Parameter(torch.zeros(n_layers))
        self.scale = nn.Parameter(torch.ones(())) if scaled else None

    @property
    def shares(self) -> Tensor:
        """The weights [L], summing to 1."""
        return torch.softmax(self.layer_weights, dim=0)

    def forward(self, layers: Tensor) -> Tensor:
        """The combination [...] of `layers` [L, ...]; convex unless it is scaled."""
        weights = self.shares if self.scale is None else self.scale * self.shares
        return torch.einsum("l,l...->...", weights.to(layers.dtype), layers)
