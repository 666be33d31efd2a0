"""The language-model head of the LTG-BERT family: from hidden states to logits over the vocabulary.

Source: the published code of LTG-BERT and ELC-BERT (docs/papers/ltg-bert.md, "Model"). The output matrix is the word
embedding itself unless the configuration unties them.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from hatchery.modeling.ltg.configuration import LtgBertConfig
from hatchery.modeling.norm_and_dropout import Dropout, LayerNorm
from hatchery.modeling.pretraining_heads import VocabularyHead


class LtgHead(VocabularyHead):
    """Norm, linear layer, exact GELU, norm, dropout, and the product with the output matrix.

    The order norm-then-dropout is that of the BabyLM code and of ELC-BERT; the BNC training code drops before it
    normalises (`head_dropout`).
    """

    def __init__(self, config: LtgBertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.pre_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.linear = nn.Linear(size, size)
        self.post_layer_norm = LayerNorm(size, config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.dropout_first = config.head_dropout == "before_norm"
        self.add_output_layer(config)

    def features(self, hidden: Tensor) -> Tensor:
        """What the output matrix is multiplied with, [..., D] from `hidden` [..., D]; of unit mean square."""
        hidden = F.gelu(self.linear(self.pre_layer_norm(hidden)))
        if self.dropout_first:
            return self.post_layer_norm(self.dropout(hidden))
        return self.dropout(self.post_layer_norm(hidden))
