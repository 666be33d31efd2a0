"""The head that says whether two texts belong together, for the document and order objectives (next-sentence tasks).

Source: LTG-BERT, Section 5.2, and the published training code, where the head was left out of the optimiser
(docs/papers/ltg-bert.md, "Sentence pairs"); here it is a part of the model, so it is trained and its gradient takes
part in clipping.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, full_precision


class SentencePairHead(nn.Module):
    """Norm, linear layer, exact GELU, dropout, norm, linear layer to one logit."""

    def __init__(self, hidden_size: int, layer_norm_eps: float, dropout: float) -> None:
        super().__init__()
        self.pre_layer_norm = LayerNorm(hidden_size, layer_norm_eps)
        self.linear = nn.Linear(hidden_size, hidden_size)
        self.dropout = Dropout(dropout)
        self.post_layer_norm = LayerNorm(hidden_size, layer_norm_eps)
        self.output = nn.Linear(hidden_size, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits [B] in full precision from the hidden states [B, D] of the first token; positive means "together"."""
        hidden = F.gelu(self.linear(self.pre_layer_norm(hidden)))
        return full_precision(self.output(self.post_layer_norm(self.dropout(hidden)))).squeeze(-1)
