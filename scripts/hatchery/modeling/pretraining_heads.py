"""The heads that models are pretrained with: what all families' heads over the vocabulary share, and sentence pairs.

Source of the latter: LTG-BERT, Section 5.2, and the published training code, where the head was left out of the
optimiser (docs/papers/ltg-bert.md, "Sentence pairs"); here it is a part of the model, so it is trained and its gradient
takes part in clipping.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.configuration import ModelConfig
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm, full_precision


class VocabularyHead(nn.Module, ABC):
    """From hidden states to logits over the vocabulary; the output matrix is the word embedding unless it is untied."""

    vocabulary_bias: nn.Parameter | None
    """fp32 [V]; None in a head without one."""
    vocabulary_weight: nn.Parameter | None
    """fp32 [V, E]; None where the output matrix is the word embedding."""

    def add_output_layer(self, config: ModelConfig) -> None:
        """Register bias and matrix; subclasses call this last in their constructor."""
        rows, tied = config.vocabulary_rows, config.tie_word_embeddings
        self.vocabulary_bias = nn.Parameter(torch.zeros(rows)) if config.vocabulary_bias else None
        self.vocabulary_weight = None if tied else nn.Parameter(torch.zeros(rows, config.hidden_size))

    @abstractmethod
    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with: [..., E] from hidden states [..., D]."""

    def forward(self, hidden: Tensor, word_embedding: Tensor) -> Tensor:
        """Logits [..., V] of `hidden` [..., D]; `word_embedding` [V, E] is the output matrix where they are tied."""
        weight = word_embedding if self.vocabulary_weight is None else self.vocabulary_weight
        return F.linear(self.features(hidden), weight, self.vocabulary_bias)


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
