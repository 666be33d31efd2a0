"""One vector per sequence: the first token's, the mean over tokens, or a learned weighting of positions.

A pooling asks the encoder for the states it needs, so that one that looks at a single position does not pay for the
others.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.heads.checks import can_look, token_mask
from hatchery.modeling.layered_encoder import LayeredEncoder

PoolingName = Literal["first_token", "mean", "position_linear"]

POOLINGS: dict[PoolingName, str] = {
    "first_token": "The last state of the first token, [CLS] (LTG-BERT section 6.3 of the reference, RoBERTa's stock).",
    "mean": "The mean of the last states of all tokens, special tokens included.",
    "position_linear": "One linear layer over 128 positions for all channels, padding included and attended to: the "
    "custom family of the reduced-vocabulary study (reference section 6.1).",
}


class FirstToken(nn.Module):
    """The last state at position 0."""

    def forward(self, encoder: LayeredEncoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]. Raises EvaluationError for padding in front."""
        if can_look(mask := token_mask(input_ids, attention_mask)) and not bool(mask[:, 0].all()):
            raise EvaluationError("input_ids: a sequence begins with padding, expected [CLS] at its first position")
        batch, length = input_ids.shape
        rows = torch.arange(batch, device=input_ids.device) * length
        return encoder.hidden_at(input_ids, attention_mask, rows)


class MeanOverTokens(nn.Module):
    """The mean of the last states over everything that is not padding."""

    def forward(self, encoder: LayeredEncoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]."""
        states = encoder(input_ids, attention_mask)[-1]
        weights = token_mask(input_ids, attention_mask).to(states.dtype).unsqueeze(-1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)


class PositionLinear(nn.Module):
    """A learned weight per position and one bias, the same for all channels.

    Every input is padded to `n_positions` with `pad_id`, so the result does not depend on the batch. As published, no
    mask is passed to the encoder: tokens attend to padding. With `attend_padding` False they do not; padding is still
    weighted.
    """

    def __init__(self, n_positions: int, pad_id: int, attend_padding: bool = True) -> None:
        super().__init__()
        if n_positions < 1:
            raise ModelError(f"n_positions: got {n_positions!r}, expected 1 or more")
        self.n_positions, self.pad_id, self.attend_padding = n_positions, pad_id, attend_padding
        self.position_weights = nn.Linear(n_positions, 1)

    def forward(self, encoder: LayeredEncoder, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Vectors [B, D]; `input_ids` int64 [B, T], mask bool [B, T]. Raises EvaluationError for T > n_positions."""
        missing = self.n_positions - input_ids.shape[1]
        if missing < 0:
            length, most = input_ids.shape[1], self.n_positions
            raise EvaluationError(
                f"input_ids: got {length} positions, expected at most the {most} that the head weighs"
            )
        mask = F.pad(token_mask(input_ids, attention_mask), (0, missing))
        ids = F.pad(input_ids, (0, missing), value=self.pad_id).where(mask, self.pad_id)
        states = encoder(ids, None if self.attend_padding else mask)[-1]
        return self.position_weights(states.transpose(1, 2)).squeeze(-1)
