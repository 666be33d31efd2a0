"""Heads that label words: all words, given words, marked words, or the span of an answer.

- `TokenClassifier`: one of K classes per token; words are labelled at their first subword. Source: Devlin et al. 2019;
  here, the transform can be chosen. LTG-BERT itself evaluates words by edge probing.
- `WordClassifier`: one of K classes per given word, from the mean encoder output of its subwords. This head tags
  parts of speech in BabyLM's multilingual track (docs/papers/babylm-2026.md, "The multilingual track").
- `MarkedWordsClassifier`: one class per sequence with marked words, such as whether a word has the same meaning in two
  sentences (WiC). Source: the BERT baseline of SuperGLUE (Wang et al. 2019), which concatenates the vectors of [CLS]
  and of the marked words. A word's vector is the mean over its subwords. LTG-BERT reads only [CLS] (Appendix B.1).
- `ExtractiveSpan`: first token and last token of an answer. Source: Devlin et al. 2019, Section 4.2. Each token has a
  score as first token and a score as last token. The loss is the mean of the two cross-entropies, and the prediction is
  the span with the highest sum of scores. Spans are half-open, [start, end).
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.encoder import Encoder
from hatchery.modeling.heads.span_classifier import select_tokens, tokens_of_spans
from hatchery.modeling.heads.targets import (
    IMPOSSIBLE_SCORE,
    OneClass,
    SummedLoss,
    can_read_values,
    check_spans,
    token_mask,
)
from hatchery.modeling.heads.task_model import (
    EncoderOptions,
    HeadContext,
    ScoreHead,
    TaskModel,
    TransformName,
    score_head,
)
from hatchery.modeling.output_bias import Link
from hatchery.tokenization.special_tokens import UNLABELLED


@dataclass(frozen=True)
class WordOptions(EncoderOptions):
    """Options of the head `token_classification`."""

    transform: TransformName = "ltg_wrapper"


@dataclass(frozen=True)
class GivenWordsOptions(EncoderOptions):
    """Options of the head `word_classification`."""

    transform: TransformName = "dropout"
    # Number of spans per target. The reader of a task format checks that the task's data has this number.
    n_spans: int = 1


@dataclass(frozen=True)
class MarkedWordsOptions(WordOptions):
    """Options of the head `marked_words_classification`."""

    # Number of marked words per input.
    n_marked: int = 2


@dataclass(frozen=True)
class ExtractiveOptions(EncoderOptions):
    """Options of the head `extractive_span`."""

    transform: TransformName = "none"
    # Maximum number of tokens in a predicted answer.
    max_span_length: int = 30


class TokenClassifier(TaskModel):
    """Computes a score for each label and token. Labels and predictions are int64 [B, T]; the label of an unlabelled
    token is UNLABELLED.
    """

    def __init__(self, encoder: Encoder, context: HeadContext, options: WordOptions) -> None:
        head = score_head(encoder, context.n_outputs, options.transform)
        super().__init__(encoder, head, OneClass(), context, options.encoder_mode)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return scores [B, T, n_labels] of `input_ids` int64 [B, T]; the mask is bool [B, T].

        Scores at padding are 0.
        """
        scores = self.head(self.encoder(input_ids, attention_mask)[-1])
        return scores.where(token_mask(input_ids, attention_mask).unsqueeze(-1), 0.0)


class WordClassifier(TaskModel):
    """Computes a score for each label and each given word, from the mean of the last hidden states of the word's
    subwords. Raises ModelError unless the option `n_spans` is 1.
    """

    def __init__(self, encoder: Encoder, context: HeadContext, options: GivenWordsOptions) -> None:
        if options.n_spans != 1:
            raise ModelError(f"n_spans: got {options.n_spans!r}, expected 1, because this head classifies single words")
        head = score_head(encoder, context.n_outputs, options.transform)
        super().__init__(encoder, head, OneClass(), context, options.encoder_mode)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        spans: Tensor,
        sentences: Tensor,
        widest: int | None = None,
    ) -> Tensor:
        """Return scores [N, n_labels] of N words in the sequences `input_ids` int64 [B, T]; the mask is bool [B, T].

        `spans` int64 [N, 1, 2] are the words' token positions [start, end), in the sequences `sentences` int64 [N].
        `widest` is the length of the longest span. On the CPU, raises EvaluationError for a span that is empty or not
        within the tokens.
        """
        check_spans(spans, sentences, token_mask(input_ids, attention_mask))
        states = self.encoder(input_ids, attention_mask)[-1]
        return self.head(mean_of_pieces(states, sentences, spans[:, 0], widest))


def mean_of_pieces(states: Tensor, sentences: Tensor, spans: Tensor, widest: int | None = None) -> Tensor:
    """Return the mean state [N, D] of each span. `spans` int64 [N, 2] are [start, end), and `sentences` int64 [N] are
    the indices of their sequences in `states`.
    """
    rows, inside = tokens_of_spans(sentences, spans, states.shape[1], widest)
    weights = inside.unsqueeze(-1).to(states.dtype)
    return (select_tokens(states, rows) * weights).sum(dim=1) / weights.sum(dim=1)


class MarkedWordsClassifier(TaskModel):
    """Computes a score for each label and sequence, from the concatenated vectors of [CLS] and of the marked words."""

    def __init__(self, encoder: Encoder, context: HeadContext, options: MarkedWordsOptions) -> None:
        config = encoder.config
        width = (1 + options.n_marked) * config.hidden_size
        head = ScoreHead(width, context.n_outputs, config.layer_norm_eps, options.transform, config.hidden_size)
        super().__init__(encoder, head, OneClass(), context, options.encoder_mode)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, *, spans: Tensor) -> Tensor:
        """Return scores [B, n_labels] of `input_ids` int64 [B, T]; the mask is bool [B, T].

        `spans` int64 [B, n_marked, 2] are token positions [start, end), where [CLS] is position 0. On the CPU, raises
        EvaluationError for a span that is empty or not within the tokens.
        """
        sentences = torch.arange(len(input_ids), device=input_ids.device)
        check_spans(spans, sentences, token_mask(input_ids, attention_mask))
        states = self.encoder(input_ids, attention_mask)[-1]
        vectors = [states[:, 0], *(mean_of_pieces(states, sentences, span) for span in spans.unbind(dim=1))]
        return self.head(torch.cat(vectors, dim=-1))


@dataclass(frozen=True)
class OneSpan:
    """One span per sequence. Scores [B, T, 2] rate each token as the first token and as the last token of the
    span; labels int64 [B, 2] are [start, end).

    Sequences with the label (UNLABELLED, UNLABELLED) are ignored. For a question without an answer, the label is
    [0, 1), the span of [CLS]. Such questions require that [CLS] is among the `candidates` of `ExtractiveSpan.forward`,
    the tokens that may be part of an answer.
    """

    # No prior sets the initial output bias of this target: the bias is equal at all positions, so it cannot change the
    # prediction.
    link: ClassVar[Link | None] = None

    max_span_length: int = 30

    def loss(self, scores: Tensor, labels: Tensor) -> SummedLoss:
        """Return the mean of the cross-entropies of first and last token, summed over the labelled sequences.

        On the CPU, raises EvaluationError for a span that is empty, or that begins or ends at a token that cannot be
        part of an answer (score IMPOSSIBLE_SCORE).
        """
        if labels.shape != (len(scores), 2):
            raise EvaluationError(
                f"labels: got shape {tuple(labels.shape)}, expected {(len(scores), 2)}, a start and an end"
            )
        start, end = labels.unbind(dim=-1)
        given = start != UNLABELLED
        wrong = (given != (end != UNLABELLED)) | (given & (end <= start))
        if can_read_values(labels) and bool(wrong.any()):
            span = labels[wrong][0].tolist()
            raise EvaluationError(
                f"labels: got {span}, expected [start, end) with start < end, or twice {UNLABELLED} for a missing label"
            )
        last = torch.where(given, end - 1, UNLABELLED)
        firsts, lasts = (OneClass().loss(scores[..., i], wanted) for i, wanted in enumerate((start, last)))
        return SummedLoss((firsts.loss_sum + lasts.loss_sum) / 2, firsts.n_labelled)

    def predictions(self, scores: Tensor) -> Tensor:
        """Return for each sequence the span [start, end) of at most `max_span_length` tokens whose first and last token
        have the highest sum of scores: int64 [B, 2].
        """
        widths = min(self.max_span_length, scores.shape[1])
        lasts = F.pad(scores[..., 1], (0, widths - 1), value=IMPOSSIBLE_SCORE).unfold(1, widths, 1)
        best = (scores[..., 0].unsqueeze(-1) + lasts).flatten(1).argmax(dim=-1)
        start = best // widths
        return torch.stack((start, start + best % widths + 1), dim=-1)


class ExtractiveSpan(TaskModel):
    """Scores of first and last tokens of an answer; see `OneSpan` for labels and predictions.

    Raises ModelError for a `max_span_length` below 1.
    """

    def __init__(self, encoder: Encoder, context: HeadContext, options: ExtractiveOptions) -> None:
        if options.max_span_length < 1:
            raise ModelError(f"max_span_length: got {options.max_span_length!r}, expected 1 or more")
        head = score_head(encoder, 2, options.transform)
        super().__init__(encoder, head, OneSpan(options.max_span_length), context, options.encoder_mode)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, candidates: Tensor | None = None
    ) -> Tensor:
        """Return scores [B, T, 2] of `input_ids` int64 [B, T]; the mask is bool [B, T].

        `candidates` bool [B, T] is True at tokens that may be part of an answer, such as the passage without the
        question (None: all tokens). All other positions have the score IMPOSSIBLE_SCORE. On the CPU, raises
        EvaluationError for a sequence without candidates.
        """
        mask = token_mask(input_ids, attention_mask)
        allowed = mask if candidates is None else mask & token_mask(input_ids, candidates)
        if can_read_values(allowed) and not bool(allowed.any(dim=-1).all()):
            raise EvaluationError("candidates: a sequence has no token that may be part of an answer")
        scores = self.head(self.encoder(input_ids, attention_mask)[-1])
        return scores.where(allowed.unsqueeze(-1), IMPOSSIBLE_SCORE)
