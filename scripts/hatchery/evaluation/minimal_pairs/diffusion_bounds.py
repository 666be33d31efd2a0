"""Variational bound on the log-likelihood of sentences by masked diffusion.

Masked diffusion (Sahoo et al. 2024; Shi et al. 2024) trains a masked model with all fractions of masked tokens. Its
bound on log p of N tokens is a sum over k = 1 ... N. To compute term k, the log-probabilities of the k masked tokens of
a set are summed and divided by k; the term is the mean over all sets of k tokens. The bound equals the mean
log-likelihood over all orders of the tokens.

Here, DIFFUSION_ORDERS random orders of the tokens are drawn. In each order, the masked sets are the last k tokens, for
all k. The second half of the orders are the orders of the first half, reversed. More orders give a smaller error of the
bound. Sentences with equal numbers of scored tokens share their orders, which reduces the error of the difference of
their scores.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import torch

from hatchery.evaluation.minimal_pairs.likelihoods import TargetScores
from hatchery.evaluation.minimal_pairs.sentence_model import AT_ONE, EncodedSentence, SentenceModel, Temperatures
from hatchery.evaluation.ways_of_scoring import DIFFUSION_ORDERS
from hatchery.modeling.language_model import moved


def orders_of(tokens: int, orders: int = DIFFUSION_ORDERS) -> np.ndarray:
    """Return `orders` random permutations of the positions of `tokens` tokens: int64 [orders, tokens]. The result
    depends only on the arguments; `orders` is even.
    """
    keys = [np.random.Philox(np.random.SeedSequence([tokens, draw])).random_raw(tokens) for draw in range(orders // 2)]
    drawn = np.argsort(np.array(keys, dtype=np.uint64).reshape(-1, tokens), axis=1, kind="stable")
    return np.concatenate([drawn, drawn[:, ::-1]]).astype(np.int64)


def hidden_sets(tokens: int, orders: int = DIFFUSION_ORDERS) -> np.ndarray:
    """Return which of a sentence's tokens are masked in each model input: bool [orders * tokens, tokens].

    An order is a random permutation of the tokens (`orders_of`) and has `tokens` inputs. Input k, with k from 0, masks
    the tokens whose rank in the order is k or higher.
    """
    ranks = np.argsort(orders_of(tokens, orders), axis=1)
    firsts = np.arange(tokens)[:, None]
    return np.concatenate([rank[None, :] >= firsts for rank in ranks])


def token_diffusion_bounds(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
    temperatures: Temperatures = AT_ONE,
) -> list[np.ndarray]:
    """Return the contribution (nats) of every scored token to the variational bound on the log-likelihood of its
    sentence: one float32 array [N] for each sentence with N scored tokens.

    The arguments and the order of the sentences are those of `likelihoods.token_pseudo_log_likelihoods`.
    """
    assert model.mask_id is not None, "a masked model has a mask token"
    asked = [DIFFUSION_ORDERS * one.scored * (one.scored + 1) // 2 for one in sentences]
    starts = np.concatenate([[0], np.cumsum(asked)]).astype(np.int64)
    scores = TargetScores(model, int(starts[-1]), temperatures)
    first = len(model.frame.before)
    done = 0
    for (length, scored), bucket in groupby(sentences, key=lambda one: (len(one.ids), one.scored)):
        hidden = hidden_sets(scored)
        row_of, token = np.nonzero(hidden)
        width = first + length + len(model.frame.after)
        rows_per_batch = max(1, tokens_per_batch // width)
        for sentence in bucket:
            ids = np.array(sentence.ids, dtype=np.int64)
            rows = np.tile([*model.frame.before, *sentence.ids, *model.frame.after], (len(hidden), 1))
            rows[:, first + length - scored : first + length][hidden] = model.mask_id
            for start in range(0, len(rows), rows_per_batch):
                batch = rows[start : start + rows_per_batch]
                here = np.flatnonzero((row_of >= start) & (row_of < start + len(batch)))
                flat = (row_of[here] - start) * width + first + length - scored + token[here]
                shown, asked_at = (moved(torch.from_numpy(part), model.device) for part in (batch, flat))
                targets = ids[length - scored + token[here]]
                scores.ask(shown, asked_at, np.arange(len(here)), targets, starts[done] + here)
                on_tokens(len(batch) * width)
            done += 1
    values = np.split(scores.finished(), starts[1:-1])[: len(sentences)]
    return [_of_tokens(shares, one.scored) for shares, one in zip(values, sentences, strict=True)]


def _of_tokens(values: np.ndarray, scored: int) -> np.ndarray:
    """Return the contribution of each of the N scored tokens of a sentence to the variational bound on its
    log-likelihood: float32 [N], or [N, temperatures] with several temperatures.
    """
    hidden = hidden_sets(scored)
    row_of, token = np.nonzero(hidden)
    weights = 1.0 / (hidden.sum(axis=1)[row_of] * DIFFUSION_ORDERS)
    shares = np.zeros((scored, *values.shape[1:]))
    np.add.at(shares, token, (values.T * weights).T)
    return shares.astype(np.float32)
