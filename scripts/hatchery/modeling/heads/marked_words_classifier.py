"""One class for words that are marked in the input: does a word mean the same in two sentences (WiC)?

Source: LTG-BERT Table 10 and reference evaluation.md 6.5: the vectors of the marked words are used beside that of
[CLS]. How a word of several subwords becomes one vector is not published; here it is their mean, without parameters.
"""

import torch
from torch import Tensor

from hatchery.modeling.heads.checks import check_spans, token_mask
from hatchery.modeling.heads.score_head import ScoreHead, TransformName
from hatchery.modeling.heads.span_pooling import select_tokens, tokens_of_spans
from hatchery.modeling.heads.targets import OneClass
from hatchery.modeling.heads.task_model import EncoderMode, TaskModel
from hatchery.modeling.layered_encoder import LayeredEncoder


class MarkedWordsClassifier(TaskModel):
    """`n_labels` scores per sequence with `n_marked` marked words, from [CLS] and the words' vectors side by side."""

    def __init__(
        self,
        encoder: LayeredEncoder,
        n_labels: int,
        dropout: float,
        seed: int,
        *,
        n_marked: int = 2,
        transform: TransformName = "ltg_wrapper",
        encoder_mode: EncoderMode = "trained",
    ) -> None:
        config = encoder.config
        width = (1 + n_marked) * config.hidden_size
        head = ScoreHead(width, n_labels, config.layer_norm_eps, transform, config.hidden_size)
        super().__init__(encoder, head, OneClass(), dropout, seed, encoder_mode)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, *, spans: Tensor) -> Tensor:
        """Scores [B, n_labels] of `input_ids` int64 [B, T], mask bool [B, T].

        `spans` int64 [B, n_marked, 2] are token positions [start, end), [CLS] being position 0. Raises EvaluationError
        for spans that are empty or reach outside of the tokens.
        """
        sentences = torch.arange(len(input_ids), device=input_ids.device)
        check_spans(spans, sentences, token_mask(input_ids, attention_mask))
        states = self.encoder(input_ids, attention_mask)[-1]
        vectors = [states[:, 0]]
        for span in spans.unbind(dim=1):
            rows, inside = tokens_of_spans(sentences, span, states.shape[1])
            weights = inside.unsqueeze(-1).to(states.dtype)
            vectors.append((select_tokens(states, rows) * weights).sum(dim=1) / weights.sum(dim=1))
        return self.head(torch.cat(vectors, dim=-1))
