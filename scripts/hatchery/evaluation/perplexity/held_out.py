"""The masked sequences that a model is judged by: which, and in which batches.

A pure function of the token shards, the settings and, with masking "own", the run's objective
(docs/papers/reduced-vocabulary.md, "Padding": common masks leave padding out of the loss whatever a run was trained
with). Models that no mask means anything to are asked for every token: causal ones of the split, those that translate
of its targets.
"""

from collections.abc import Iterator, Sized
from typing import Protocol, cast

import numpy as np
from torch import Tensor

from hatchery.artifacts.manifests import Manifest
from hatchery.errors import EvaluationError
from hatchery.evaluation.baselines.own_text import OwnText
from hatchery.evaluation.perplexity.settings import PerplexitySettings
from hatchery.objectives.segments import DocumentCollection
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.translation_pairs import TranslationPairs
from hatchery.tokenization.special_tokens import UNLABELLED, SpecialTokens
from hatchery.tokenization.token_reader import TokenShards
from hatchery.training.batches import Examples
from hatchery.training.data_order import epoch_permutation
from hatchery.training.objective import Objective

# Sequences that are drawn together and laid into batches by length; bounds the memory.
_DRAWN_AT_ONCE = 2048


class HeldOutText(DocumentCollection, Protocol):
    """The encoded documents of a split: token shards, or those that a model of others has encoded for itself."""

    manifest: Manifest
    """What they come from."""
    split: str
    n_tokens: int
    vocabulary_size: int

    @property
    def special(self) -> SpecialTokens | SpecialIds:
        """The special tokens among the ids."""

    @property
    def n_special(self) -> int:
        """Ids below this one are no words of a sentence."""

    @property
    def words(self) -> int:
        """Words of the split."""


def check_tokenizer(model: Manifest, tokens: Manifest) -> None:
    """Raise EvaluationError unless shards and model were made with the same tokenizer."""
    mine, theirs = model.inputs.get("tokenizer"), tokens.inputs.get("tokenizer")
    if theirs is None:
        raise EvaluationError(f"{tokens.path}: the manifest names no tokenizer, expected that of encoded token shards")
    if mine != theirs:
        raise EvaluationError(
            f"{tokens.path}: the shards were encoded with another tokenizer than the model of {model.path} was "
            "trained with; perplexities of different tokenizers cannot be compared, encode the text again"
        )


def held_out_examples(shards: HeldOutText, settings: PerplexitySettings, objective: Objective) -> Examples:
    """The examples of a split. Raises EvaluationError when it holds none."""
    examples: Examples
    if isinstance(shards, OwnText) and objective.settings.causal:
        examples = shards.next_tokens(settings.sequence_length)
    else:
        # Objectives ask no more of shards than of the text of a model of others.
        examples = objective.examples(cast("TokenShards", shards), settings.sequence_length)
    if len(examples) == 0:
        raise EvaluationError(f"{shards.manifest.path}: the split {shards.split!r} holds no text to measure on")
    return examples


def chosen_sequences(examples: Sized, settings: PerplexitySettings) -> np.ndarray:
    """Indices of the sequences that are scored, int64, ascending, each once."""
    return np.sort(epoch_permutation(settings.seed, 0, len(examples))[: settings.sequences])


def batches(
    examples: Examples, chosen: np.ndarray, seed: int, tokens_per_batch: int
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Number of sequences and batch (`input_ids`, `labels` [B, T], `attention_mask`) until all `chosen` have come.

    A batch holds at most `tokens_per_batch` tokens with its padding, but always one sequence. Sequences of similar
    length share one, and columns in which none of them attends or is labelled are cut off.
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
            # Ascending lengths: a further row is the longest so far.
            sizes = lengths[order[first:]] * np.arange(1, len(order) - first + 1)
            rows = order[first : first + max(1, int(np.searchsorted(sizes, tokens_per_batch, side="right")))]
            first += len(rows)
            yield len(rows), {key: _cut(values[rows], int(lengths[rows[-1]])) for key, values in drawn.items()}


def _batches_of_pairs(
    pairs: TranslationPairs, chosen: np.ndarray, tokens_per_batch: int
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The same of sources and targets, whose lengths are known: tokens are those of both sides."""
    order = chosen[np.argsort(pairs.lengths[chosen].sum(axis=1), kind="stable")]
    first = 0
    while first < len(order):
        widths = np.maximum.accumulate(pairs.lengths[order[first : first + tokens_per_batch]], axis=0).sum(axis=1)
        sizes = widths * np.arange(1, len(widths) + 1)
        rows = order[first : first + max(1, int(np.searchsorted(sizes, tokens_per_batch, side="right")))]
        first += len(rows)
        yield len(rows), pairs.batch(0, 0, rows)


def _used_lengths(batch: dict[str, Tensor]) -> np.ndarray:
    """Positions of each row up to the last one that is attended to or labelled, int64 [B]."""
    mask = batch["attention_mask"]
    used = (mask if mask.dim() == 2 else mask.any(dim=1)) | (batch["labels"] != UNLABELLED)
    positions = np.arange(1, used.shape[1] + 1)
    return np.asarray((used.numpy() * positions).max(axis=1, initial=1))


def _cut(values: Tensor, length: int) -> Tensor:
    for dimension in range(1, values.dim()):
        values = values.narrow(dimension, 0, length)
    return values.contiguous()
