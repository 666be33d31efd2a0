"""What the heads refuse: masks of another shape, labels outside of the classes, spans that hold no token.

Looking at values is free on the CPU; on a GPU it would be a wait for the device, and under torch.compile a break of
the graph. So heads look at tensors of the CPU alone, and whoever loads data can call the same checks there before it
moves them. Every message is one line.
"""

import torch
from torch import Tensor

from hatchery.errors import EvaluationError, ModelError
from hatchery.modeling.language_model import UNLABELLED as UNLABELLED

# Finite, so that logits stay finite; far enough below any score that its probability is exactly 0.
IMPOSSIBLE_SCORE = -1e9


def can_look(*tensors: Tensor) -> bool:
    """Whether the values of all `tensors` can be read without waiting."""
    return not torch.compiler.is_compiling() and all(tensor.device.type == "cpu" for tensor in tensors)


def token_mask(input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """bool, True at tokens, of the shape of `input_ids`; None stands for tokens everywhere.

    Raises ModelError for a mask of another shape, such as that of packed segments, which heads cannot tell apart.
    """
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    if attention_mask.shape != input_ids.shape:
        shape, expected = tuple(attention_mask.shape), tuple(input_ids.shape)
        raise ModelError(f"attention_mask: got shape {shape}, expected {expected}, one value per token")
    return attention_mask.bool()


def check_class_labels(scores: Tensor, labels: Tensor) -> None:
    """Raise EvaluationError unless every label int64 [...] is UNLABELLED or a possible class of `scores` [..., K]."""
    if labels.shape != scores.shape[:-1]:
        shape, expected = tuple(labels.shape), tuple(scores.shape[:-1])
        raise EvaluationError(f"labels: got shape {shape}, expected {expected}")
    if not can_look(scores, labels):
        return
    n_classes = scores.shape[-1]
    outside = (labels != UNLABELLED) & ((labels < 0) | (labels >= n_classes))
    if bool(outside.any()):
        wrong = int(labels[outside][0])
        raise EvaluationError(f"labels: got {wrong}, expected 0 to {n_classes - 1}, or {UNLABELLED} for none")
    given = labels != UNLABELLED
    chosen = scores[given].gather(-1, labels[given].unsqueeze(-1))
    if bool((chosen <= IMPOSSIBLE_SCORE).any()):
        raise EvaluationError("labels: a label names a choice or a position that the input does not have")


def check_spans(spans: Tensor, sentences: Tensor, mask: Tensor) -> None:
    """Raise EvaluationError unless every span holds tokens and nothing else.

    `spans` int64 [N, S, 2] are positions [start, end) in the sentences int64 [N] of a batch whose `mask` bool [B, T] is
    True at tokens.
    """
    if spans.ndim != 3 or spans.shape[-1] != 2 or sentences.shape != spans.shape[:1]:
        shapes = f"{tuple(spans.shape)} and {tuple(sentences.shape)}"
        raise EvaluationError(f"spans: got shapes {shapes}, expected [N, spans per target, 2] and [N]")
    if not can_look(spans, sentences, mask) or len(spans) == 0:
        return
    if bool(((sentences < 0) | (sentences >= len(mask))).any()):
        raise EvaluationError(f"spans: a sentence number is not one of the {len(mask)} sentences of the batch")
    # tokens_before[b, t] is the number of tokens left of position t, so a span's tokens are one difference.
    tokens_before = torch.nn.functional.pad(mask.long().cumsum(1), (1, 0))
    start, end = spans[..., 0], spans[..., 1]
    for condition, complaint in (
        (end <= start, "is empty"),
        ((start < 0) | (end > mask.shape[1]), "leaves the sequence"),
    ):
        _refuse(condition, spans, complaint)
    rows = tokens_before[sentences]
    _refuse(rows.gather(1, end) - rows.gather(1, start) != end - start, spans, "covers padding")


def _refuse(condition: Tensor, spans: Tensor, complaint: str) -> None:
    if bool(condition.any()):
        start, end = spans[condition][0].tolist()
        raise EvaluationError(f"spans: [{start}, {end}) {complaint}; expected 0 <= start < end, tokens only")
