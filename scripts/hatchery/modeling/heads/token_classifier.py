"""Token classification: one of K classes at every token, for labelled words (their first subword, say).

Source: the token classifier of Devlin et al. 2019 with any of the transforms; LTG-BERT itself asks about words by edge
probing.
"""

from torch import Tensor

from hatchery.modeling.heads.checks import token_mask
from hatchery.modeling.heads.score_head import TransformName, score_head
from hatchery.modeling.heads.targets import OneClass
from hatchery.modeling.heads.task_model import EncoderMode, TaskModel
from hatchery.modeling.layered_encoder import LayeredEncoder


class TokenClassifier(TaskModel):
    """`n_labels` scores per token; labels and predictions int64 [B, T], labels UNLABELLED where nothing is asked."""

    def __init__(
        self,
        encoder: LayeredEncoder,
        n_labels: int,
        dropout: float,
        seed: int,
        *,
        transform: TransformName = "ltg_wrapper",
        encoder_mode: EncoderMode = "trained",
    ) -> None:
        head = score_head(encoder, n_labels, transform)
        super().__init__(encoder, head, OneClass(), dropout, seed, encoder_mode)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores [B, T, n_labels] of `input_ids` int64 [B, T]; 0 at padding, whose labels should be UNLABELLED."""
        scores = self.head(self.encoder(input_ids, attention_mask)[-1])
        return scores.where(token_mask(input_ids, attention_mask).unsqueeze(-1), 0.0)
