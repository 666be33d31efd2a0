"""Pseudo-log-likelihood of sentences under a masked language model (Salazar et al. 2020; LTG-BERT section 5.3).

Every token is masked in a row of its own, and the score of a sentence is the plain sum of the log-probabilities of
its tokens. Rows of equal length share a batch, so nothing is padded; logits are made at the masked position only.
Promise: the numbers are those of the one-sentence-at-a-time loop up to float32 rounding, and do not depend at all on
the order of the sentences.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

import numpy as np
import torch

from hatchery.evaluation.minimal_pairs.masked_rows import blocks, expand
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, SentenceModel
from hatchery.evaluation.minimal_pairs.target_scores import TargetScores


def token_pseudo_log_likelihoods(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
    *,
    within_word: bool = False,
) -> list[np.ndarray]:
    """Natural log-probability of every token when it is masked: one float32 array [N] per sentence.

    `sentences` are distinct and in ascending length. With `within_word`, the later pieces of the token's word are
    masked as well. A batch holds at most `tokens_per_batch` tokens, but always one row; `on_tokens` is told the tokens
    that are done, repeated rows included.
    """
    assert model.mask_id is not None, "a masked model has a mask token"
    lengths = np.array([len(sentence.ids) for sentence in sentences], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores = TargetScores(model, int(starts[-1]))
    n_done = 0
    for _, bucket in groupby(sentences, key=lambda sentence: len(sentence.ids)):
        for block in blocks(list(bucket), model.frame):
            rows = expand(block, model.frame, model.mask_id, within_word)
            length = rows.ids.shape[1]
            # In the order of the rows, so that each batch of rows answers a contiguous part of what is asked.
            order = np.argsort(rows.of, axis=None, kind="stable")
            of = rows.of.ravel()[order]
            targets = np.array([sentence.ids for sentence in block], dtype=np.int64).ravel()[order]
            ids = torch.from_numpy(rows.ids).to(model.device)
            positions = torch.from_numpy(rows.positions).to(model.device)
            rows_per_batch = max(1, tokens_per_batch // length)
            for start in range(0, len(ids), rows_per_batch):
                batch = ids[start : start + rows_per_batch]
                first, last = np.searchsorted(of, (start, start + len(batch)))
                flat = torch.arange(len(batch), device=model.device) * length + positions[start : start + len(batch)]
                places = starts[n_done] + order[first:last]
                scores.ask(batch, flat, of[first:last] - start, targets[first:last], places)
                on_tokens(int(last - first) * length)
            n_done += len(block)
    return np.split(scores.finished(), starts[1:-1])[: len(sentences)]


token_within_word_likelihoods = partial(token_pseudo_log_likelihoods, within_word=True)
"""Pseudo-log-likelihood within words from left to right (Kauf & Ivanova 2023); arguments as above."""
