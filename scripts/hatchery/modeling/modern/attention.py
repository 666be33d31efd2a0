"""Attention with rotary positions, and its options: normalised queries and keys, value residuals, gated heads.

Source: RoFormer (Su et al. 2021, arXiv:2104.09864), in the layout of Llama and ModernBERT, which rotates each dimension
of a head's first half together with a dimension of the second half. Tests compare the layers with those of
`transformers`.
"""

import math

import torch
from torch import Tensor, nn

from hatchery.modeling.attention import AttentionInputs, attend, join_heads, split_heads
from hatchery.modeling.modern.config import ModernSizes
from hatchery.modeling.norm_and_dropout import Dropout, full_precision


class RmsNorm(nn.Module):
    """Division by the root of the mean square, times a gain, computed and returned in full precision."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.size, self.eps = size, eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, tensor: Tensor) -> Tensor:
        """Normalise `tensor` [..., size]."""
        return torch.rms_norm(full_precision(tensor), (self.size,), full_precision(self.weight), self.eps)


class GainNorm(RmsNorm):
    """Layer norm with a gain and no bias, computed and returned in full precision."""

    def forward(self, tensor: Tensor) -> Tensor:
        """Normalise `tensor` [..., size]."""
        return torch.layer_norm(full_precision(tensor), (self.size,), full_precision(self.weight), None, self.eps)


def norm_of(config: ModernSizes, size: int) -> RmsNorm:
    """Return a norm of the type `config.normalisation` for vectors of `size` elements."""
    kind = RmsNorm if config.normalisation == "rms_norm" else GainNorm
    return kind(size, config.layer_norm_eps)


def rotations(length: int, head_size: int, base: float, device: torch.device) -> Tensor:
    """Return cosines and sines of the rotation angles at the positions 0 to `length` - 1: fp32 [2, length,
    head_size].
    """
    exponents = torch.arange(0, head_size, 2, dtype=torch.float32, device=device) / head_size
    angles = torch.arange(length, dtype=torch.float32, device=device)[:, None] * (1.0 / base**exponents)
    angles = torch.cat([angles, angles], dim=-1)
    return torch.stack([angles.cos(), angles.sin()])


def rotated(heads: Tensor, rotary: Tensor) -> Tensor:
    """Return queries or keys [B, H, T, d] rotated by their positions. `rotary` contains cosines and sines: [2, T, d] if
    all sequences have the same positions, or [2, B, 1, T, d] if positions differ between sequences.
    """
    cosines, sines = rotary.to(heads.dtype)
    first, second = heads.chunk(2, dim=-1)
    return heads * cosines + torch.cat([-second, first], dim=-1) * sines


class RotaryAttention(nn.Module):
    """Attention block without residual and without biases: norm, attention, output projection, dropout."""

    first_mix = 0.5
    """Initial weight of the first layer's values in the mixed values of a later layer."""

    def __init__(self, config: ModernSizes, mixes_values: bool) -> None:
        """Create the block. If `mixes_values` is true, its values are mixed with the values of the first layer."""
        super().__init__()
        size = config.hidden_size
        self.n_heads, self.scale = config.num_attention_heads, 1 / math.sqrt(config.head_size)
        self.pre_layer_norm = norm_of(config, size)
        self.query_projection = nn.Linear(size, size, bias=False)
        self.key_projection = nn.Linear(size, size, bias=False)
        self.value_projection = nn.Linear(size, size, bias=False)
        self.output_projection = nn.Linear(size, size, bias=False)
        self.query_norm = self.key_norm = None
        if config.query_key_norm:
            self.query_norm, self.key_norm = (RmsNorm(config.head_size, config.layer_norm_eps) for _ in range(2))
        self.value_residual_scale = nn.Parameter(torch.full((1,), self.first_mix)) if mixes_values else None
        self.gate_projection = nn.Linear(size, self.n_heads, bias=False) if config.head_gate else None
        self.probability_dropout = Dropout(config.attention_probs_dropout_prob)
        self.output_dropout = Dropout(config.hidden_dropout_prob)

    def own_values(self, hidden: Tensor) -> Tensor:
        """Return the values [..., D] that this block computes from `hidden` [..., D], before they are mixed with the
        first layer's values.
        """
        values: Tensor = self.value_projection(self.pre_layer_norm(hidden))
        return values

    def forward(self, hidden: Tensor, inputs: AttentionInputs) -> Tensor:
        """Return the output [B, T, D] of the block for `hidden` [B, T, D]. Every token attends to the tokens that the
        mask allows.

        If a packing is given, input and result are [N, D], for the packing's N positions. If `inputs.query_rows`
        selects one query per sequence, the result is [B, D].
        """
        packing, mask, rows = inputs.packing, inputs.mask, inputs.query_rows
        assert inputs.rotary is not None, "the encoder knows the positions"
        states = self.pre_layer_norm(hidden)
        # If there is a cache, `hidden` contains only the last tokens of the text, so only the last rotations are used.
        rotary = inputs.rotary if packing is not None else inputs.rotary[:, -hidden.shape[1] :]
        asking, turned = states, rotary
        if rows is not None:
            asking = states.flatten(0, 1).index_select(0, rows)[:, None]
            turned = rotary[:, rows % hidden.shape[1]][:, :, None, None]
        queries = self._heads(self.query_projection(asking), self.query_norm, inputs, turned)
        keys = self._heads(self.key_projection(states), self.key_norm, inputs, rotary)
        values = split_heads(self._mixed(self.value_projection(states), inputs), self.n_heads, packing)
        if inputs.cache is not None:
            keys, values = inputs.cache.extended(keys, values)
        if rows is not None and mask is not None and mask.dim() == 3:
            mask = mask.flatten(0, 1).index_select(0, rows)[:, None]
        context = attend(queries, keys, values, self.scale, mask, self.probability_dropout, kept=inputs.probabilities)
        joined = join_heads(context, packing)
        if self.gate_projection is not None:
            gates = torch.sigmoid(self.gate_projection(asking))
            joined = joined * gates.repeat_interleave(joined.shape[-1] // self.n_heads, dim=-1)
        output: Tensor = self.output_dropout(self.output_projection(joined))
        return output if rows is None else output.squeeze(1)

    def _heads(self, projected: Tensor, norm: nn.Module | None, inputs: AttentionInputs, rotary: Tensor) -> Tensor:
        """Return queries or keys [B, H, T, d]: `projected` divided into heads, normalised by `norm` if it is given, and
        rotated by `rotary`.
        """
        heads = split_heads(projected, self.n_heads, inputs.packing)
        if norm is not None:
            heads = norm(heads).to(projected.dtype)
        return rotated(heads, rotary)

    def _mixed(self, values: Tensor, inputs: AttentionInputs) -> Tensor:
        """Return `values` mixed with the first layer's values of the same tokens."""
        if self.value_residual_scale is None:
            return values
        first = inputs.first_values
        assert first is not None, "the encoder computes the first layer's values"
        first = first[:, -values.shape[1] :] if inputs.packing is None else inputs.packing.pack(first)
        return torch.lerp(values, first.to(values.dtype), self.value_residual_scale.to(values.dtype))
