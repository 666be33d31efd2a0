"""Pseudo-perplexity: exp of minus the pseudo-log-likelihood per token, over sentences drawn from a split.

Source: Salazar et al. 2020, section 3.2, with the scorer of the minimal pairs. Independent of any choice of masks, and
one forward pass per token dear.
"""

from collections.abc import Sequence

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.minimal_pairs.scoring import token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, SentenceModel
from hatchery.evaluation.perplexity.scoring import exponential
from hatchery.evaluation.seeds import generator
from hatchery.tokenization.token_reader import TokenShards


def drawn_sentences(shards: TokenShards, number: int, seed: int, longest: int) -> list[list[int]]:
    """Ids of `number` sentences (all, when there are fewer), without special tokens, cut after `longest` tokens.

    Drawn without replacement among the sentences that have a token. Raises EvaluationError when there is none.
    """
    n_special = len(shards.special.order)
    counts = [len(document.sentence_starts) for document in shards]
    bounds = np.cumsum([0, *counts])
    sentences: list[list[int]] = []
    for index in generator(seed, "pseudo_perplexity", shards.split).permutation(int(bounds[-1])).tolist():
        if len(sentences) == number:
            break
        document_index = int(np.searchsorted(bounds, index, side="right")) - 1
        document = shards.document(document_index)
        edges = [*document.sentence_starts.tolist(), len(document.ids)]
        first = index - int(bounds[document_index])
        ids = document.ids[edges[first] : edges[first + 1]]
        # A paragraph's end is no word to guess.
        words = ids[ids >= n_special][:longest].tolist()
        if words:
            sentences.append(words)
    if not sentences:
        raise EvaluationError(f"{shards.manifest.path}: the split {shards.split!r} holds no sentence to measure on")
    return sentences


def pseudo_perplexity(model: SentenceModel, sentences: Sequence[Sequence[int]], tokens_per_batch: int | None) -> float:
    """exp(-sum of log-probabilities / number of tokens); every token is masked alone."""
    encoded = [EncodedSentence(tuple(sentence)) for sentence in sentences]
    scores = token_scores(model, encoded, "pll", tokens_per_batch)
    total = sum(float(values.sum(dtype=np.float64)) for values in scores)
    return exponential(-total / sum(map(len, sentences)))
