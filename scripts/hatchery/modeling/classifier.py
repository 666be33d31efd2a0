"""A pretrained encoder with a classification head on the first token.

Source: the head published with LTG-BERT's checkpoints (norm, linear, GELU, norm, dropout, linear), used for GLUE by
ELC-BERT too. The new head depends on its seed alone.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.errors import ModelError
from hatchery.modeling.encoder import Encoder, set_dropout
from hatchery.modeling.initialisation import initial_standard_deviation, initialise_linear_layers_
from hatchery.modeling.numerics import Dropout, LayerNorm, full_precision


class ClassificationHead(nn.Module):
    """From the hidden state of the first token to one logit per label."""

    def __init__(self, hidden_size: int, n_labels: int, layer_norm_eps: float) -> None:
        super().__init__()
        self.pre_layer_norm = LayerNorm(hidden_size, layer_norm_eps)
        self.linear = nn.Linear(hidden_size, hidden_size)
        self.post_layer_norm = LayerNorm(hidden_size, layer_norm_eps)
        self.dropout = Dropout(0.0)
        self.output = nn.Linear(hidden_size, n_labels)

    def forward(self, hidden: Tensor) -> Tensor:
        """Logits [B, labels] in full precision of `hidden` [B, D]."""
        hidden = F.gelu(self.linear(self.pre_layer_norm(hidden)))
        return full_precision(self.output(self.dropout(self.post_layer_norm(hidden))))


class SequenceClassifier(nn.Module):
    """An encoder with a fresh head for `n_labels` labels.

    `dropout` is used in the head and, replacing its pretraining values, in the encoder, which is not copied. `seed`
    determines the head's weights. Raises ModelError for an impossible number of labels or dropout.
    """

    def __init__(self, encoder: Encoder, n_labels: int, dropout: float, seed: int) -> None:
        super().__init__()
        if n_labels < 1:
            raise ModelError(f"n_labels: got {n_labels!r}, expected 1 or more")
        size = encoder.config.hidden_size
        self.encoder = encoder
        self.head = ClassificationHead(size, n_labels, encoder.config.layer_norm_eps)
        initialise_linear_layers_(self.head, initial_standard_deviation(size), seed)
        self.head.to(encoder.embedding.relative_embedding)
        self.set_dropout(dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits [B, n_labels] of `input_ids` int64 [B, T], whose first token is [CLS]; mask bool [B, T]."""
        return self.head(self.encoder(input_ids, attention_mask)[-1][:, 0])

    def set_dropout(self, probability: float) -> None:
        """Use `probability` at every dropout of encoder and head. Raises ModelError unless 0 <= probability < 1."""
        set_dropout(self, probability)
