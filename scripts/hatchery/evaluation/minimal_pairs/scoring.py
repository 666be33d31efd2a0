"""Scores of a list of sentences with any scoring method.

Sentences with equal ids, equal word numbers and an equal number of context tokens are scored once. The order of
computation depends only on their content. A score is a plain sum in float64, never divided by a length. A score that is
not finite raises an error, unless the caller allows it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

import numpy as np

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.minimal_pairs.sentence_model import AT_ONE, EncodedSentence, SentenceModel, Temperatures
from hatchery.evaluation.ways_of_scoring import WAYS, Architecture, Edition, default_way, why_not

# Number of tokens in a batch. On CPUs, 4,096 was measured to be fastest for models of 64 to 192 dimensions (from 1,024
# to 8,192, the speed differs little). On GPUs, 65,536 tokens are enough to use the whole GPU.
TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 65536}
# Largest number of logits in one batch (one GiB in float32). In practice, only causal models and vocabularies of about
# 250,000 tokens reach this limit.
LOGITS_PER_BATCH = 1 << 28


def required_architecture(scoring: str, kinds: Sequence[str]) -> Architecture:
    """Return the architecture (masked or causal) in which the method `scoring` scores a model that was trained for the
    uses `kinds`.

    WAYS lists the architectures that a method supports; the first of these architectures that is in `kinds` is
    returned. If `kinds` contains no supported architecture, or if the method is "auto", causal is returned if `kinds`
    begins with "causal", else masked.
    """
    for architecture in WAYS[scoring].architectures if scoring in WAYS else ():
        if architecture in kinds:
            return architecture
    return "causal" if kinds[0] == "causal" else "masked"


def scoring_name(
    name: str, architecture: Architecture, predicted_before: int | None = None, edition: Edition = 2023
) -> str:
    """Return a key of WAYS: `name`, or the default method of the architecture if `name` is "auto". Raises ConfigError
    if the method does not fit the model.

    `predicted_before` is the distance (0 or 1) from the position of a prediction to its masked token; None skips the
    check of this distance.
    """
    if name == "auto":
        name = default_way(architecture)
    if name not in WAYS:
        raise ConfigError(f"scoring: got {name!r}, allowed are: auto, {', '.join(WAYS)}")
    before = WAYS[name].predicted_before or 0 if predicted_before is None else predicted_before
    if (reason := why_not(name, (architecture,), before, edition)) is not None:
        raise ConfigError(f"scoring: {reason}")
    return name


def tokens_per_batch_for(model: SentenceModel, wanted: int | None) -> int:
    """Return the number of tokens of a batch: `wanted`, or the device's number in TOKENS_PER_BATCH if `wanted` is None.
    This number is reduced if the batch would have more than LOGITS_PER_BATCH logits.

    Raises ConfigError if `wanted` is below 1.
    """
    tokens = TOKENS_PER_BATCH[model.device.type] if wanted is None else wanted
    if tokens < 1:
        raise ConfigError(f"runtime.tokens_per_batch must be at least 1, got {tokens}")
    return max(1, min(tokens, LOGITS_PER_BATCH // model.vocabulary_size))


def distinct_sentences(sentences: Sequence[EncodedSentence]) -> list[EncodedSentence]:
    """Return the distinct sentences, sorted by length and then by content.

    This order determines which sentences share a batch. Scores are thus equal to the last bit for every order of the
    input. Raises EvaluationError for a sentence without scored tokens.
    """
    distinct = sorted(set(sentences), key=lambda one: (len(one.ids), one.ids, one.words or (), one.given))
    if any(sentence.scored < 1 for sentence in distinct):
        raise EvaluationError("a sentence has no tokens, so it cannot be scored")
    return distinct


def token_scores(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    scoring: str = "auto",
    tokens_per_batch: int | None = None,
    on_tokens: Callable[[int], None] = lambda tokens: None,
    temperatures: Temperatures = AT_ONE,
    finite: bool = True,
    padded: bool = False,
) -> list[np.ndarray]:
    """Return the log-probability (nats) of every scored token under the method `scoring`: one float32 array [N] for
    each sentence with N scored tokens.

    If several `temperatures` are given, the arrays are [N, temperatures]. If `padded` is true, scoring a few sentences
    from left to right is faster, because sentences of similar lengths share a batch. The scores then change by rounding
    (about 1e-7).

    Raises EvaluationError for a sentence without scored tokens and, if `finite` is true, for a log-probability that is
    not finite. Raises ConfigError for a scoring method that does not fit the model and for `tokens_per_batch` below 1.
    """
    chosen = WAYS[scoring_name(scoring, model.architecture, model.predicted_before)]
    scores: Callable[..., list[np.ndarray]] = getattr(import_module(f"{__package__}.{chosen.module}"), chosen.tokens)
    if padded and chosen.pads:
        scores = partial(scores, padded=True)
    distinct = distinct_sentences(sentences)
    values = scores(model, distinct, tokens_per_batch_for(model, tokens_per_batch), on_tokens, temperatures)
    if finite and not all(np.isfinite(value).all() for value in values):
        raise EvaluationError("the model returns log-probabilities that are not finite: its weights are damaged")
    by_sentence = dict(zip(distinct, values, strict=True))
    return [by_sentence[sentence] for sentence in sentences]


def sentence_scores(tokens: Sequence[np.ndarray]) -> np.ndarray:
    """Return each sentence's score, float64 [sentences]: the plain sum of its token log-probabilities, never divided by
    a length.

    If `tokens` has several temperatures, the scores are [sentences, temperatures].
    """
    return np.array([values.sum(axis=0, dtype=np.float64) for values in tokens], dtype=np.float64)
