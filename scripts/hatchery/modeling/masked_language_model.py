"""The masked language model: the encoder and a head that predicts the original subword at labelled positions.

Source: LTG-BERT section 3.1 and ELC-BERT section 3, after the published code. The output matrix is the word embedding
itself. The loss is a sum and not a mean, so that the training engine can divide by the count of the global batch.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.configuration import EncoderConfig
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.layer_weighting import LayerWeighting
from hatchery.modeling.numerics import Dropout, LayerNorm, full_precision

UNLABELLED = -100


class MaskedLanguageModelOutput(NamedTuple):
    """What one batch contributes to loss and accuracy; three scalar tensors."""

    loss_sum: Tensor
    """Sum of the cross-entropies (nats) over the labelled positions, fp32."""
    n_labelled: Tensor
    """Number of labelled positions, int64."""
    n_correct: Tensor
    """Labelled positions at which the most probable subword is the right one, int64."""


class MaskedLanguageModelHead(nn.Module):
    """Norm, linear layer, exact GELU, norm, dropout, and the product with the word embedding.

    The order norm-then-dropout is that of the BabyLM code and of ELC-BERT; the BNC training code drops before it
    normalises.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.pre_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.linear = nn.Linear(size, size)
        self.post_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.vocabulary_bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden: Tensor, word_embedding: Tensor) -> Tensor:
        """Logits [..., V] of `hidden` [..., D]; `word_embedding` is the tied matrix [V, D]."""
        hidden = F.gelu(self.linear(self.pre_layer_norm(hidden)))
        hidden = self.dropout(self.post_layer_norm(hidden))
        return F.linear(hidden, word_embedding, self.vocabulary_bias)


class MaskedLanguageModel(nn.Module):
    """Encoder and head; call `hatchery.modeling.initialisation.initialise_` before training it."""

    def __init__(self, config: EncoderConfig, weighting: LayerWeighting | None = None) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config, weighting)
        self.head = MaskedLanguageModelHead(config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> MaskedLanguageModelOutput:
        """Loss and accuracy of predicting `labels` int64 [B, T] (-100: nothing to predict).

        `input_ids` int64 [B, T] and `attention_mask` bool [B, T] are those of the encoder. A batch without labels has
        the loss 0, with a gradient of 0.
        """
        hidden = self.encoder(input_ids, attention_mask)[-1]
        # Some 15 % of the positions are labelled, and the product with the vocabulary is the widest of the model.
        labelled = (labels.flatten() != UNLABELLED).nonzero().squeeze(1)
        targets = labels.flatten()[labelled]
        logits = full_precision(self.logits_at(hidden.flatten(0, 1)[labelled]))
        loss_sum = F.cross_entropy(logits, targets, reduction="sum")
        n_correct = (logits.detach().argmax(dim=-1) == targets).sum()
        return MaskedLanguageModelOutput(loss_sum, torch.full_like(n_correct, len(targets)), n_correct)

    def logits_at(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of last hidden states [..., D]; softmax over the vocabulary gives the prediction."""
        return self.head(hidden, self.encoder.embedding.word_embedding.weight)
