"""The language-model head of the RoBERTa-like family: from hidden states to logits over the vocabulary.

Source: the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Families of models"). The output
matrix is the word embedding in the tied models and a parameter of the head in the others; it covers the spare rows of
the vocabulary, too.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.norm_and_dropout import LayerNorm
from hatchery.modeling.roberta.configuration import RobertaConfig


class RobertaHead(nn.Module):
    """Linear layer, exact GELU, norm, and the product with the output matrix. No dropout."""

    def __init__(self, config: RobertaConfig) -> None:
        super().__init__()
        size, rows = config.hidden_size, config.vocabulary_rows
        self.linear = nn.Linear(size, size)
        self.layer_norm = LayerNorm(size, config.layer_norm_eps, affine=True)
        self.vocabulary_bias = nn.Parameter(torch.zeros(rows)) if config.vocabulary_bias else None
        self.vocabulary_weight = None if config.tie_word_embeddings else nn.Parameter(torch.zeros(rows, size))

    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with, [..., D] from `hidden` [..., D]."""
        normalised: Tensor = self.layer_norm(F.gelu(self.linear(hidden)))
        return normalised

    def forward(self, hidden: Tensor, word_embedding: Tensor) -> Tensor:
        """Logits [..., V] of `hidden` [..., D]; `word_embedding` [V, D] is the output matrix where they are tied."""
        weight = word_embedding if self.vocabulary_weight is None else self.vocabulary_weight
        return F.linear(self.features(hidden), weight, self.vocabulary_bias)
