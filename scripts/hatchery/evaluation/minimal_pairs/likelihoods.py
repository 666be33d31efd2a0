"""Pseudo-log-likelihoods of the tokens of sentences under a masked model, and log-probabilities of given tokens
(targets) under a masked or causal model.

Pseudo-log-likelihood (Salazar et al. 2020; LTG-BERT, Appendix B.3): each token is masked in an input of its own, and
the score of a sentence is the plain sum of the log-probabilities of its tokens. Kauf & Ivanova (2023) also mask the
later subwords of the token's word, so that the end of a word does not reveal its beginning.

A sentence of N tokens needs N inputs, which are rows of a batch. The sentences of a pair often differ only in the
masked token, and their rows are then identical; such rows are computed once. Logits are computed only at the position
of the scored token. Inputs of equal length share a batch, so nothing is padded. Up to float32 rounding, the scores
equal those of a loop over single sentences, in any order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from hatchery.evaluation.minimal_pairs.sentence_model import (
    AT_ONE,
    EncodedSentence,
    Frame,
    HatcheryModel,
    SentenceModel,
    Temperatures,
    no_gradients,
    target_log_probabilities,
)
from hatchery.modeling.language_model import moved

# Number of rows and number of vocabulary items in a tile of the logits. These two numbers were measured to be fastest
# with a second-level cache of one MiB. PyTorch rearranges the vocabulary items for every tile, so a tile has many rows.
ROWS_PER_TILE = 1024
ITEMS_PER_TILE = 512


def half_log_normalisers(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the values of `log_normalisers`, computed with products in bf16 and sums of exponentials in fp32."""
    rows, parts = features.bfloat16(), []
    biases = [None] * -(-len(weight) // ITEMS_PER_TILE) if bias is None else bias.split(ITEMS_PER_TILE)
    for items, its_bias in zip(weight.split(ITEMS_PER_TILE), biases, strict=True):
        logits = (rows @ items.bfloat16().T).float()
        if its_bias is not None:
            logits += its_bias
        # As in `log_normalisers`, the normaliser is a logit minus the log-probability of the same item, which is faster
        # to compute than torch's `logsumexp`.
        parts.append(logits[:, 0] - torch.log_softmax(logits, dim=-1)[:, 0])
    return torch.logsumexp(torch.stack(parts, dim=1), dim=-1)


def log_normalisers(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return, for each of the M vectors in `features` [M, D], the logarithm of the sum of exp(logit) over the
    vocabulary: float32 [M]. The logits are `features @ weight.T + bias`, with `weight` [V, D] and `bias` [V].
    """
    n_tiles = -(-len(weight) // ITEMS_PER_TILE)
    parts = features.new_empty((len(features), n_tiles))
    memory = features.new_empty((2, min(ROWS_PER_TILE, len(features)) * min(ITEMS_PER_TILE, len(weight))))
    biases = [None] * n_tiles if bias is None else bias.split(ITEMS_PER_TILE)
    for rows, part in zip(features.split(ROWS_PER_TILE), parts.split(ROWS_PER_TILE), strict=True):
        for column, (items, its_bias) in enumerate(zip(weight.split(ITEMS_PER_TILE), biases, strict=True)):
            shape = len(rows), len(items)
            logits, log_shares = (flat[: shape[0] * shape[1]].view(shape) for flat in memory)
            if its_bias is None:
                torch.mm(rows, items.T, out=logits)
            else:
                torch.addmm(its_bias, rows, items.T, out=logits)
            # The normaliser is any logit minus the log-probability of the same item. Torch's `log_softmax` is one fused
            # operation, but its `logsumexp` takes five operations.
            torch.log_softmax(logits, dim=-1, out=log_shares)
            torch.sub(logits[:, 0], log_shares[:, 0], out=part[:, column])
    return torch.logsumexp(parts, dim=-1)


def tiled_log_probabilities(
    features: Tensor, weight: Tensor, bias: Tensor | None, of: Tensor, targets: Tensor
) -> Tensor:
    """Return log p(targets[k]) under the model state `features[of[k]]`, float32 [K]; `of` and `targets` are int64 [K].

    `features` [M, D], `weight` [V, D] and `bias` [V] are float32 on the CPU. Under autocast to bf16, only the logits in
    the softmax denominators are computed in bf16; the logits of the targets are computed in float32.
    """
    logits = (features.index_select(0, of) * weight.index_select(0, targets)).sum(dim=-1)
    if bias is not None:
        logits = logits + bias.index_select(0, targets)
    normalisers = half_log_normalisers if torch.is_autocast_enabled("cpu") else log_normalisers
    return logits - normalisers(features, weight, bias).index_select(0, of)


class TargetScores:
    """Log-probabilities of `n_targets` targets; each batch requests some of them with `ask`.

    Two methods save time for a Hatchery model on the CPU at temperature 1. First, multiplying states by the vocabulary
    matrix is fastest with many rows, but a batch has few masked positions. Therefore the states of several batches are
    collected and multiplied together. Only the order of the requests determines which states are multiplied together.

    Second, a target needs only its own logit and the logarithm of the sum over the vocabulary, not the matrix of all
    log-probabilities. The logits are therefore computed in tiles: some rows and some vocabulary items at a time. In
    float32, all tiles use the same memory, because allocating new memory takes as long as the matrix product. Up to
    rounding, the log-probabilities equal those of log_softmax.

    `finished` returns all log-probabilities, float32 [n_targets]. If several temperatures are given, it returns
    [n_targets, temperatures], and all logits are computed.
    """

    def __init__(self, model: SentenceModel, n_targets: int, temperatures: Temperatures = AT_ONE) -> None:
        self.model, self._temperatures = model, temperatures
        shape = (n_targets,) if temperatures == AT_ONE else (n_targets, len(temperatures))
        self.values = np.empty(shape, dtype=np.float32)
        self._features: list[Tensor] = []
        self._of: list[np.ndarray] = []
        self._targets: list[np.ndarray] = []
        self._places: list[np.ndarray] = []
        self._n_rows = 0
        # Log-probabilities on the device, perhaps still being computed, and their positions in `values`.
        self._found: list[Tensor] = []
        self._found_places: list[np.ndarray] = []

    def ask(self, ids: Tensor, rows: Tensor, of: np.ndarray, targets: np.ndarray, places: np.ndarray) -> None:
        """Request log p(targets[k]) at the position `rows[of[k]]` of `ids`. `finished` returns the result at the index
        `places[k]`.

        `ids` is int64 [B, T], and `rows` is int64 [M] with flat indices b * T + t; both are on the model's device.
        `of`, `targets` and `places` are int64 [K].
        """
        tiled = isinstance(self.model, HatcheryModel) and self.model.device.type == "cpu"
        if not tiled or self._temperatures != AT_ONE:
            asked = (moved(torch.from_numpy(part), self.model.device) for part in (of, targets))
            self._found.append(target_log_probabilities(self.model, ids, rows, *asked, temperatures=self._temperatures))
            self._found_places.append(places)
            return
        assert isinstance(self.model, HatcheryModel)
        with no_gradients(self.model.device):
            self._features.append(self.model.features_at(ids, rows))
        self._of.append(of + self._n_rows)
        self._targets.append(targets)
        self._places.append(places)
        self._n_rows += len(rows)
        if self._n_rows >= ROWS_PER_TILE:
            self._answer()

    def finished(self) -> np.ndarray:
        """Compute the requested log-probabilities that are still missing, and return all log-probabilities."""
        if self._n_rows:
            self._answer()
        if self._found:
            # Each transfer from the device waits for the device, so copy all results at the end in one transfer.
            self.values[np.concatenate(self._found_places)] = torch.cat(self._found).cpu().numpy()
        return self.values

    def _answer(self) -> None:
        assert isinstance(self.model, HatcheryModel)
        of, targets = (torch.from_numpy(np.concatenate(parts)) for parts in (self._of, self._targets))
        with no_gradients(self.model.device):
            features = torch.cat(self._features)
            log_probabilities = tiled_log_probabilities(features, *self.model.network.output_layer, of, targets)
        self.values[np.concatenate(self._places)] = log_probabilities.numpy()
        self._features, self._of, self._targets, self._places = [], [], [], []
        self._n_rows = 0


def scored_tokens(sentences: Sequence[EncodedSentence], length: int | None = None) -> np.ndarray:
    """Return which tokens of S sentences, padded to N tokens, are scored: bool [S, N]. N is `length`, by default the
    sentences' common length."""
    given, ends = (np.array([of(one) for one in sentences]) for of in (lambda one: one.given, lambda one: len(one.ids)))
    token = np.arange(length or ends[0])
    return (token >= given[:, None]) & (token < ends[:, None])


# Duplicates among the masked rows are searched within groups of about this number of tokens, so that the memory is
# bounded for suites of any size.
TOKENS_PER_BLOCK = 1 << 22


@dataclass(frozen=True)
class MaskedRows:
    """The distinct masked inputs (rows) of some sentences of equal length, and the tokens scored in each row.

    `ids` int64 [R, T] are R rows of T tokens, sorted by position and then by content. `positions` int64 [R] is the
    position of the masked, scored token in each row. `of` int64 [A] contains, for each of the A scored tokens, the
    index of the row in which this token is masked and scored. The tokens are ordered sentence by sentence.
    """

    ids: np.ndarray
    positions: np.ndarray
    of: np.ndarray


def masked_tokens(sentences: Sequence[EncodedSentence], within_word: bool) -> np.ndarray:
    """Return which tokens (last axis) are masked when token i (second axis) is scored: bool [S, N, N].

    All sentences have N tokens. If `within_word` is false, only token i is masked. If `within_word` is true, the later
    tokens of the same word are also masked, and the sentences must have word numbers.
    """
    length = len(sentences[0].ids)
    alone = np.broadcast_to(np.eye(length, dtype=bool), (len(sentences), length, length))
    if not within_word:
        return alone
    words = np.array([sentence.words for sentence in sentences])
    later = np.triu(np.ones((length, length), dtype=bool))
    return (words[:, :, None] == words[:, None, :]) & later


def expand(sentences: Sequence[EncodedSentence], frame: Frame, mask_id: int, within_word: bool) -> MaskedRows:
    """Return the inputs [before] t_1 … [MASK] … t_N [after] of sentences of N tokens each. There is one input for each
    scored token; equal inputs are returned once. For `within_word`, see `masked_tokens`."""
    ids = np.array([sentence.ids for sentence in sentences], dtype=np.int64)
    length, first = ids.shape[1], len(frame.before)
    # For each masked input: the index of its sentence, and the position of its scored token.
    sentence, token = np.nonzero(scored_tokens(sentences))
    keyed = np.empty((len(sentence), 1 + first + length + len(frame.after)), dtype=np.int64)
    keyed[:, 0] = first + token
    keyed[:, 1 : 1 + first] = frame.before
    keyed[:, 1 + first + length :] = frame.after
    masked = masked_tokens(sentences, within_word)[sentence, token]
    keyed[:, 1 + first : 1 + first + length] = np.where(masked, mask_id, ids[sentence])
    distinct, of = np.unique(keyed, axis=0, return_inverse=True)
    return MaskedRows(distinct[:, 1:], distinct[:, 0], of.reshape(-1))


def blocks(bucket: Sequence[EncodedSentence], frame: Frame) -> Iterator[Sequence[EncodedSentence]]:
    """Split a list of equally long sentences, in order, into parts. A sentence needs a masked input for each of its
    tokens. All inputs of a part have at most TOKENS_PER_BLOCK tokens in total, unless the part is a single sentence.
    """
    length = len(bucket[0].ids)
    tokens = length * (length + len(frame.before) + len(frame.after))
    size = max(1, TOKENS_PER_BLOCK // tokens)
    for start in range(0, len(bucket), size):
        yield bucket[start : start + size]


def token_pseudo_log_likelihoods(
    model: SentenceModel,
    sentences: Sequence[EncodedSentence],
    tokens_per_batch: int,
    on_tokens: Callable[[int], None],
    temperatures: Temperatures = AT_ONE,
    *,
    within_word: bool = False,
) -> list[np.ndarray]:
    """Return the natural log-probability of every scored token when it is masked: one float32 array [N] for each
    sentence with N scored tokens.

    If several `temperatures` are given, the arrays are [N, temperatures].

    `sentences` are distinct and in ascending length. If `within_word` is true, the later subwords of the token's word
    are masked as well. A batch holds at most `tokens_per_batch` tokens, but always at least one masked sentence.
    `on_tokens` is called with the number of tokens of finished masked sentences; equal masked sentences count
    separately.
    """
    assert model.mask_id is not None, "a masked model has a mask token"
    lengths = np.array([sentence.scored for sentence in sentences], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores = TargetScores(model, int(starts[-1]), temperatures)
    n_done = 0
    for _, bucket in groupby(sentences, key=lambda sentence: len(sentence.ids)):
        for block in blocks(list(bucket), model.frame):
            rows = expand(block, model.frame, model.mask_id, within_word)
            length = rows.ids.shape[1]
            # Sort the targets by row, so that the targets of a batch are contiguous.
            order = np.argsort(rows.of, kind="stable")
            of = rows.of[order]
            targets = np.array([sentence.ids for sentence in block], dtype=np.int64)[scored_tokens(block)][order]
            ids = moved(torch.from_numpy(rows.ids), model.device)
            positions = moved(torch.from_numpy(rows.positions), model.device)
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
"""Pseudo-log-likelihood within words from left to right (Kauf & Ivanova 2023), with the arguments of
`token_pseudo_log_likelihoods`."""
