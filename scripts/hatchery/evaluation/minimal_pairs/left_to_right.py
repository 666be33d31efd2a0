"""Left-to-right likelihood of sentences under a causal language model, as BabyLM's pipeline computes it.

LL = sum over i of log p(t_i | context, t_1 … t_(i-1)), where the context is one special token (EOS, or BOS where there
is none); there is no term for a final EOS (reference section 3.2). One forward pass per sentence; sentences of equal
length share a batch, so nothing is padded.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import torch

from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, SentenceModel, target_log_probabilities


def token_left_to_right_likelihoods(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
) -> list[np.ndarray]:
    """Natural log-probability of every token given those before it: one float32 array [N] per sentence.

    `sentences` are distinct and in ascending length. A batch holds at most `tokens_per_batch` tokens, but always one
    sentence; `on_tokens` is told the tokens that are done, context included.
    """
    context = np.array(model.frame.before, dtype=np.int64)
    scores: list[np.ndarray] = []
    for length, bucket in groupby(sentences, key=lambda sentence: len(sentence.ids)):
        ids = np.array([sentence.ids for sentence in bucket], dtype=np.int64)
        # The last token is predicted and conditions nothing, so it is no input.
        inputs = np.concatenate([np.broadcast_to(context, (len(ids), len(context))), ids[:, :-1]], axis=1)
        columns = np.arange(len(context) - 1, inputs.shape[1])
        rows_per_batch = max(1, tokens_per_batch // inputs.shape[1])
        for start in range(0, len(ids), rows_per_batch):
            batch = inputs[start : start + rows_per_batch]
            flat = (np.arange(len(batch))[:, None] * batch.shape[1] + columns).ravel()
            asked = (np.arange(len(flat)), ids[start : start + len(batch)].ravel())
            tensors = [torch.from_numpy(array).to(model.device) for array in (batch, flat, *asked)]
            scores.extend(target_log_probabilities(model, *tensors).reshape(len(batch), length))
            on_tokens(len(batch) * (len(context) + length))
    return scores
