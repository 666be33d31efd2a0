"""Pseudo-log-likelihood of sentences under a masked language model (Salazar et al. 2020; LTG-BERT section 5.3).

Every token is masked alone in a row of its own, and the score of a sentence is the plain sum of the log-probabilities
of its tokens. Rows of equal length share a batch, so nothing is padded; the head runs on the masked position only;
softmax in float32, sums in float64. Promise: the numbers are those of the one-sentence-at-a-time loop up to float32
rounding, and do not depend at all on the order of the sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch

from hatchery.errors import ConfigError, EvaluationError
from hatchery.modeling.masked_language_model import MaskedLanguageModel


@dataclass(frozen=True)
class SpecialIds:
    """The ids that frame and mask a sentence."""

    cls: int
    sep: int
    mask: int


def token_log_probabilities(
    model: MaskedLanguageModel,
    sentences: Sequence[Sequence[int]],
    special: SpecialIds,
    tokens_per_batch: int,
    device: torch.device,
    on_tokens: Callable[[int], None] = lambda tokens: None,
) -> list[np.ndarray]:
    """Natural log-probability of every token when it alone is masked: one float32 array [N] per sentence.

    `sentences` are ids without special tokens. Each row is [CLS] t_1 … [MASK] … t_N [SEP]; a batch holds at most
    `tokens_per_batch` tokens, but always one row. Sentences of equal ids are scored once. `on_tokens` is told the
    number of tokens of each finished batch. Raises EvaluationError for a sentence without tokens or a log-probability
    that is not finite, ConfigError for a budget below 1.
    """
    if tokens_per_batch < 1:
        raise ConfigError(f"runtime.tokens_per_batch must be at least 1, got {tokens_per_batch}")
    distinct = distinct_sentences(sentences)
    scores: dict[tuple[int, ...], np.ndarray] = {}
    for _, group in groupby(distinct, key=len):
        bucket = list(group)
        values = _score_bucket(model, np.array(bucket, dtype=np.int64), special, tokens_per_batch, device, on_tokens)
        scores.update(zip(bucket, values, strict=True))
    return [scores[tuple(sentence)] for sentence in sentences]


def distinct_sentences(sentences: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """The different sentences, by length and then by ids.

    This canonical order fixes which rows share a batch, so the scores are the same to the last bit however the
    input is ordered. Raises EvaluationError for a sentence without tokens.
    """
    distinct = sorted({tuple(sentence) for sentence in sentences}, key=lambda ids: (len(ids), ids))
    if distinct and not distinct[0]:
        raise EvaluationError("a sentence has no tokens, so it cannot be scored")
    return distinct


def _score_bucket(
    model: MaskedLanguageModel,
    bucket: np.ndarray,
    special: SpecialIds,
    tokens_per_batch: int,
    device: torch.device,
    on_tokens: Callable[[int], None],
) -> np.ndarray:
    """Log-probabilities [S, N] of S sentences of N tokens each; `bucket` is int64 [S, N]."""
    n_sentences, length = bucket.shape
    ids = torch.from_numpy(bucket).to(device)
    framed = torch.nn.functional.pad(ids, (1, 1))
    framed[:, 0], framed[:, -1] = special.cls, special.sep
    n_rows = n_sentences * length
    rows_per_batch = max(1, tokens_per_batch // (length + 2))
    results = torch.empty(n_rows, dtype=torch.float32)
    for start in range(0, n_rows, rows_per_batch):
        rows = torch.arange(start, min(start + rows_per_batch, n_rows), device=device)
        sentence, position = rows // length, rows % length
        batch = framed[sentence]
        batch[torch.arange(len(rows), device=device), position + 1] = special.mask
        log_probabilities = _masked_log_probabilities(model, batch, position + 1)
        targets = ids[sentence, position].unsqueeze(-1)
        results[start : start + len(rows)] = log_probabilities.gather(-1, targets).squeeze(-1).cpu()
        on_tokens(batch.numel())
    if not bool(torch.isfinite(results).all()):
        raise EvaluationError("the model gives log-probabilities that are not finite: its weights are damaged")
    return results.view(n_sentences, length).numpy()


@torch.inference_mode()
def _masked_log_probabilities(model: MaskedLanguageModel, batch: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [R, V] at one position per row; `batch` is int64 [R, T], `positions` int64 [R]."""
    hidden = model.encoder(batch, torch.ones_like(batch, dtype=torch.bool))[-1]
    # The head is the widest product of the model: one vector per row instead of T.
    vectors = hidden[torch.arange(len(batch), device=batch.device), positions]
    return torch.log_softmax(model.logits_at(vectors).float(), dim=-1)


def sentence_scores(token_scores: Sequence[np.ndarray]) -> np.ndarray:
    """Float64 [sentences]: the plain sums of the token log-probabilities, never divided by a length."""
    return np.array([scores.sum(dtype=np.float64) for scores in token_scores], dtype=np.float64)
