"""Held-out sequences, and a model's loss, perplexity, accuracy and pseudo-perplexity on these sequences.

Sequences depend only on the token shards, the settings and the objective that defines the targets
(`trained_objective.asked_objective`). By default, all masked models with the same tokenizer predict the same masked
tokens (the common masks). Common masks never mask padding, even for models that were trained to predict padding
(docs/papers/reduced-vocabulary.md, "Padding"). Models that are trained without masks predict every token: a causal
model predicts the tokens of the split, and a translation model predicts the tokens of the target texts. Cross-entropies
are computed in float32, and summed in float64 over all labelled tokens of the split. The result is the mean per token,
not a mean of batch means.

Pseudo-perplexity is exp of minus the mean pseudo-log-likelihood per token, over sentences drawn from a split (Salazar
et al. 2020). Pseudo-log-likelihoods are computed as for minimal pairs. They do not depend on random masks, but cost one
forward pass per token.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Protocol, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.own_text import OwnText
from hatchery.evaluation.draws import generator
from hatchery.evaluation.minimal_pairs.scoring import token_scores
from hatchery.evaluation.minimal_pairs.sentence_model import EncodedSentence, SentenceModel
from hatchery.evaluation.perplexity.rows import (
    LOG_FREQUENCY,
    LOG_PROBABILITY,
    SLOPES,
    WITHOUT_BIAS,
    FrequencyRow,
    SplitScore,
    WordScore,
)
from hatchery.evaluation.settings import PerplexitySettings
from hatchery.modeling.count_distributions import smoothed_distribution
from hatchery.objectives.mask_rates import MASKABLE, WEIGHTS
from hatchery.objectives.segments import DocumentCollection
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.sums import plain_sum
from hatchery.tokenization.special_tokens import UNLABELLED, SpecialTokens
from hatchery.tokenization.token_shards import TokenShards
from hatchery.training.data_order import epoch_permutation
from hatchery.training.examples import Examples
from hatchery.training.objective import Objective

# Number of sequences that are drawn together and then batched by length. The number bounds the memory.
_DRAWN_AT_ONCE = 2048


class HeldOutText(DocumentCollection, Protocol):
    """The encoded documents of a split: token shards, or documents encoded by an external model."""

    where: str
    """Location of the documents, for messages."""
    split: str
    n_tokens: int
    vocabulary_size: int

    @property
    def special(self) -> SpecialTokens | SpecialIds:
        """Special tokens of the vocabulary, with their ids."""

    @property
    def n_special(self) -> int:
        """Number of special ids at the beginning of the vocabulary; all following ids are tokens of text."""

    @property
    def words(self) -> int:
        """Number of words in the split's text."""


def check_tokenizer(model: Manifest, tokens: Manifest) -> None:
    """Raise EvaluationError unless the shards were encoded with the model's tokenizer."""
    mine, theirs = model.inputs.get("tokenizer"), tokens.inputs.get("tokenizer")
    if theirs is None:
        raise EvaluationError(
            f"{tokens.path}: the manifest names no tokenizer, expected the manifest of encoded token shards"
        )
    if mine != theirs:
        raise EvaluationError(
            f"{tokens.path}: the shards were encoded with another tokenizer than the model of {model.path} "
            "was trained with; perplexities of different tokenizers cannot be compared: encode the text "
            "again with the model's tokenizer"
        )


def held_out_examples(shards: HeldOutText, settings: PerplexitySettings, objective: Objective) -> Examples:
    """Return the sequences of a split as training examples. Raises EvaluationError for a split without examples."""
    examples: Examples
    if isinstance(shards, OwnText) and objective.settings.causal:
        examples = shards.next_tokens(settings.sequence_length)
    else:
        # The cast is safe, because objectives use only methods that `TokenShards` and `OwnText` share.
        examples = objective.examples(cast("TokenShards", shards), settings.sequence_length)
    if len(examples) == 0:
        raise EvaluationError(
            f"{shards.where}: the split {shards.split!r} contains no text, expected at least one sequence"
        )
    return examples


def chosen_sequences(examples: Sized, settings: PerplexitySettings) -> np.ndarray:
    """Return the indices of the sequences to score, int64, ascending and distinct: `settings.sequences` indices drawn
    with `settings.seed`, or all indices if `settings.sequences` is None.
    """
    return np.sort(epoch_permutation(settings.seed, 0, len(examples))[: settings.sequences])


def batches(
    examples: Examples, chosen: np.ndarray, seed: int, tokens_per_batch: int
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Yield batches of the sequences with the indices `chosen`: the number of sequences of the batch, and the tensors
    `input_ids` and `labels` [B, T] and `attention_mask`.

    A batch holds at most `tokens_per_batch` tokens, padding included, but always at least one sequence. Sequences of
    similar length share a batch. Columns after the last attended or labelled position are removed.
    """
    if isinstance(examples, TranslationPairs):
        yield from _batches_of_pairs(examples, chosen, tokens_per_batch)
        return
    for start in range(0, len(chosen), _DRAWN_AT_ONCE):
        drawn = examples.batch(seed, 0, chosen[start : start + _DRAWN_AT_ONCE])
        lengths = _used_lengths(drawn)
        order = np.argsort(lengths, kind="stable")
        first = 0
        while first < len(order):
            # Lengths ascend, so the last row of a batch is its longest. Padded to this length, n rows have n times this
            # number of tokens.
            sizes = lengths[order[first:]] * np.arange(1, len(order) - first + 1)
            rows = order[first : first + max(1, int(np.searchsorted(sizes, tokens_per_batch, side="right")))]
            first += len(rows)
            yield len(rows), {key: _cut(values[rows], int(lengths[rows[-1]])) for key, values in drawn.items()}


def _batches_of_pairs(
    pairs: TranslationPairs, chosen: np.ndarray, tokens_per_batch: int
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Yield batches of translation pairs, as `batches` does. `tokens_per_batch` limits the number of source tokens plus
    target tokens.
    """
    order = chosen[np.argsort(pairs.lengths[chosen].sum(axis=1), kind="stable")]
    first = 0
    while first < len(order):
        widths = np.maximum.accumulate(pairs.lengths[order[first : first + tokens_per_batch]], axis=0).sum(axis=1)
        sizes = widths * np.arange(1, len(widths) + 1)
        rows = order[first : first + max(1, int(np.searchsorted(sizes, tokens_per_batch, side="right")))]
        first += len(rows)
        yield len(rows), pairs.batch(0, 0, rows)


def _used_lengths(batch: dict[str, Tensor]) -> np.ndarray:
    """Return, for each row, the number of positions up to the last attended or labelled position, at least 1: int64
    [B]."""
    mask = batch["attention_mask"]
    used = (mask if mask.dim() == 2 else mask.any(dim=1)) | (batch["labels"] != UNLABELLED)
    positions = np.arange(1, used.shape[1] + 1)
    return np.asarray((used.numpy() * positions).max(axis=1, initial=1))


def _cut(values: Tensor, length: int) -> Tensor:
    for dimension in range(1, values.dim()):
        values = values.narrow(dimension, 0, length)
    return values.contiguous()


class FrequencyTally:
    """The log-probabilities of target tokens, summed for each vocabulary entry. Means and slopes by token frequency are
    computed from these sums.

    Source: "A Natural Bias for Language Generation Models", Section 4.2 and Figure 4, as interpreted in
    docs/papers/natural-bias.md, "Frequency". The variable x is the logarithm of a vocabulary entry's fraction of the
    targets in the training text. One is added to every count, so that all logarithms are finite. The variable v is the
    log-probability of a target token under the model, or under the model without its output bias. Each slope is that of
    a least-squares regression of v on x over tokens. Means are computed over bins, which are ranges of x. The bins have
    equal width and begin at integer multiples of the width, so all models and seeds have the same bins.
    """

    def __init__(self, target_counts: np.ndarray) -> None:
        """`target_counts` int64 [V] is the number of occurrences of each vocabulary entry as a target in the training
        text.
        """
        self.types = len(target_counts)
        """Number of entries of the vocabulary."""
        self._x = np.log(smoothed_distribution(target_counts))
        self._count = np.zeros(self.types, dtype=np.int64)
        self._sums = {name: np.zeros((2, self.types)) for name in SLOPES}

    def add(self, targets: Tensor, log_probabilities: Tensor, without_bias: Tensor) -> None:
        """Add target tokens int64 [N] with two log-probabilities [N] of each token: under the model, and under the
        model without its output bias.
        """
        types, size = targets.cpu().numpy(), self.types
        self._count += np.bincount(types, minlength=size)
        for name, found in ((LOG_PROBABILITY, log_probabilities), (WITHOUT_BIAS, without_bias)):
            values = found.cpu().double().numpy()
            for power in (1, 2):
                self._sums[name][power - 1] += np.bincount(types, weights=values**power, minlength=size)

    def rows(self, split: str, bin_nats: float) -> Iterator[FrequencyRow]:
        """Yield first the slopes over log-frequency: the slope of the log-probability under the model, and the slope of
        the log-probability under the model without its output bias. Then yield, for each non-empty bin, the means of
        log-frequency and of the two log-probabilities over the bin's tokens. A bin is a range of log-frequency of width
        `bin_nats`; bins are sorted from rare to frequent tokens.
        """
        for metric, slope in SLOPES.items():
            if (line := self._slope(*self._sums[metric])) is not None:
                yield FrequencyRow(split, None, int(self._count.sum()), slope, *line)
        bins = np.floor(self._x / bin_nats).astype(np.int64)
        moments = {LOG_FREQUENCY: self._count * np.stack([self._x, self._x**2]), **self._sums}
        for place in np.unique(bins[self._count > 0]).tolist():
            among = bins == place
            tokens = int(self._count[among].sum())
            for metric, (first, second) in moments.items():
                mean = float(first[among].sum()) / tokens
                spread = float(second[among].sum()) - tokens * mean**2
                yield FrequencyRow(
                    split, round(place * bin_nats, 9), tokens, metric, mean, _standard_error(spread, tokens)
                )

    def _slope(self, values: np.ndarray, squares: np.ndarray) -> tuple[float, float | None] | None:
        """Return the slope of the regression of the target tokens' log-probabilities on their log-frequencies, and the
        slope's standard error. Return None if all tokens are equally frequent.

        `values` and `squares` are the sums of the log-probabilities, and of their squares, by vocabulary entry.
        """
        tokens = int(self._count.sum())
        mean_x, mean_v = float(self._count @ self._x) / tokens, float(values.sum()) / tokens
        from_mean = self._x - mean_x
        in_x = float(self._count @ from_mean**2)
        if in_x <= 0:
            return None
        slope = float(from_mean @ values) / in_x
        left = float(squares.sum()) - tokens * mean_v**2 - slope**2 * in_x
        return slope, None if tokens < 3 else math.sqrt(max(left, 0.0) / (tokens - 2) / in_x)


def _standard_error(squares: float, tokens: int) -> float | None:
    """Return the standard error of a mean, from the sum of squared deviations; None for fewer than two tokens."""
    return None if tokens < 2 else math.sqrt(max(squares, 0.0) / (tokens - 1) / tokens)


def word_score(score: SplitScore, shards: HeldOutText) -> WordScore | None:
    """Return the loss per word of a split.

    Return None unless every token of the split, and the end of every document, was predicted exactly once.
    """
    if score.labelled_tokens != shards.n_tokens + int(np.count_nonzero(shards.document_lengths())):
        return None
    loss = score.loss_nats * score.labelled_tokens / shards.words
    return WordScore(score.split, shards.words, loss, exponential(loss))


@torch.inference_mode()
def score_batches(
    model: SentenceModel,
    batches: Iterable[tuple[int, dict[str, Tensor]]],
    split: str,
    tally: FrequencyTally | None = None,
) -> SplitScore:
    """Return the scores of a model on `batches`; each batch is a pair (number of sequences, tensors). The loss is NaN
    if the model's logits are not finite.

    If no token has a label, `labelled_tokens` is 0, and loss, perplexity and accuracy are NaN. If labels have weights,
    loss and accuracy are weighted sums over the labelled tokens, divided by the number of maskable tokens. All labelled
    tokens are added to `tally`.
    """
    bias = model.output_bias
    sequences = labelled = 0
    loss_sum = torch.zeros((), dtype=torch.float64, device=model.device)
    correct = torch.zeros((), dtype=torch.float64, device=model.device)
    for rows, batch in batches:
        sequences += rows
        if not (batch["labels"] != UNLABELLED).any():
            continue
        weights = label_weights(batch, model.device)
        labelled += int(batch[MASKABLE].sum()) if MASKABLE in batch else len(weights)
        for logits, wanted in model.labelled_logits(batch):
            own, weights = weights[: len(wanted)], weights[len(wanted) :]
            logits = logits.float()
            losses = F.cross_entropy(logits, wanted, reduction="none")
            loss_sum += (losses.double() * own).sum()
            correct += ((logits.argmax(dim=-1) == wanted) * own).sum()
            if tally is not None:
                # The output matrix may have padding rows, which belong to no token. Without the output bias, padding
                # rows would receive probability, so exclude these rows.
                free = logits if bias is None else (logits - bias)[:, : tally.types]
                tally.add(wanted, -losses, -F.cross_entropy(free, wanted, reduction="none"))
    loss = float(loss_sum) / labelled if labelled else math.nan
    return SplitScore(
        split, sequences, labelled, loss, exponential(loss), float(correct) / labelled if labelled else math.nan
    )


def label_weights(batch: Mapping[str, Tensor], device: torch.device) -> Tensor:
    """Return the loss weight of each labelled position, float64 [N]; the default weight is 1."""
    labelled = batch["labels"] != UNLABELLED
    weights = batch.get(WEIGHTS, torch.ones(1, 1).expand_as(labelled))
    return weights[labelled].double().to(device)


def exponential(loss: float) -> float:
    """Return exp(loss), or infinity for a loss above 709, because larger exponentials exceed float64."""
    return math.inf if loss > 709.0 else math.exp(loss)


def drawn_sentences(shards: HeldOutText, number: int, seed: int, longest: int) -> list[list[int]]:
    """Return the token ids of `number` sentences, or of all sentences if there are fewer. Special tokens are excluded,
    and each sentence is truncated to `longest` tokens.

    Sentences are drawn without replacement from the sentences with at least one token. Raises EvaluationError if there
    are no sentences.
    """
    counts = [len(shards.document(index).sentence_starts) for index in range(shards.n_documents)]
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
        # The special token at the end of a paragraph is not a target, so omit it.
        words = ids[ids >= shards.n_special][:longest].tolist()
        if words:
            sentences.append(words)
    if not sentences:
        raise EvaluationError(
            f"{shards.where}: the split {shards.split!r} contains no sentence, expected at least one sentence for the "
            "pseudo-perplexity"
        )
    return sentences


def pseudo_perplexity(model: SentenceModel, sentences: Sequence[Sequence[int]], tokens_per_batch: int | None) -> float:
    """Return exp(-sum of log-probabilities / number of tokens). Each token is predicted with only this token masked."""
    encoded = [EncodedSentence(tuple(sentence)) for sentence in sentences]
    scores = token_scores(model, encoded, "pll", tokens_per_batch)
    total = plain_sum(float(values.sum(dtype=np.float64)) for values in scores)
    return exponential(-total / sum(map(len, sentences)))
