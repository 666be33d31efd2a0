"""Stochastic depth: in training, some sequences skip some layers (Huang et al. 2016, arXiv:1603.09382).

The probability of skipping grows linearly with the layer; the last layer has the configured probability. The skipped
layers are drawn independently for each sequence. The contributions of a layer to the sequences that do not skip the
layer are scaled up, so that the expected contribution is unchanged. Training is not faster, because all layers are
computed for all sequences. If parallel processes omitted different layers, their gradients could not be summed.
"""

from typing import Any

import torch
from torch import Tensor

from hatchery.modeling.attention import AttentionInputs
from hatchery.modeling.block_sums import BlockSums
from hatchery.modeling.layers import EncoderLayer


class SkippedLayer(EncoderLayer):
    """An encoder layer that a sequence skips with `probability` in training."""

    def __init__(self, probability: float, *parts: Any, **options: Any) -> None:
        super().__init__(*parts, **options)
        self.probability = probability

    def forward(self, hidden: Tensor, inputs: AttentionInputs, sums: BlockSums | None = None, index: int = 0) -> Tensor:
        """Return the output of the layer for `hidden` [B, T, D], or for [N, D] if a packing with N positions is given.
        In training, the output of a sequence that skips the layer is its `hidden`.
        """
        output = super().forward(hidden, inputs, sums, index)
        if not self.training or self.probability == 0:
            return output
        packing, kept = inputs.packing, 1 - self.probability
        sequences = len(hidden) if packing is None else packing.batch
        scale = (torch.rand(sequences, device=hidden.device) < kept).to(hidden.dtype) / kept
        scale = scale[:, None, None] if packing is None else scale[packing.rows // packing.length][:, None]
        return hidden + scale * (output - hidden)
