"""Encode texts, pairs, triples and choices (docs/papers/ltg-bert.md, "Fine-tuning").

Every distinct text is encoded once into one flat array, which all epochs, seeds and learning rates share. An example
refers to its texts by their indices. When a batch is made, the texts of its examples are truncated, special tokens are
added, and the inputs are padded. Without sharing, ReCoRD would not fit into memory: it repeats a passage for each of a
dozen candidates and has more than a million training inputs.

Inputs contain only token ids. Hatchery's models have no segment embeddings, and the encoder of an external model
computes token types from the separators.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.batches import Batch
from hatchery.evaluation.finetuning.framing import Framing, TextTokenizer, kept_tokens, marked_token_spans
from hatchery.evaluation.tasks.example import Example

TEXTS_PER_CALL = 8192


@dataclass(frozen=True)
class SegmentPool:
    """Encoded texts: text i has the ids `tokens[starts[i] : starts[i + 1]]`; `tokens` is int32 [total], and `starts` is
    int64 [n + 1].
    """

    tokens: np.ndarray
    starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each text, int64 [n]."""
        return np.diff(self.starts)


def encode_pool(texts: Sequence[str], tokenizer: TextTokenizer) -> SegmentPool:
    """Encode texts without special tokens. The tokenizer's Python lists need much memory, so texts are encoded in
    several calls of limited size.
    """
    parts, lengths = [np.empty(0, dtype=np.int32)], [0]
    for start in range(0, len(texts), TEXTS_PER_CALL):
        encoded = tokenizer.encode_sentences(texts[start : start + TEXTS_PER_CALL])
        lengths += map(len, encoded)
        parts.append(np.fromiter(chain.from_iterable(encoded), dtype=np.int32))
    return SegmentPool(np.concatenate(parts), np.cumsum(lengths, dtype=np.int64))


class TextNumbers:
    """Indices of distinct texts, assigned in the order of first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """Distinct texts in the order of their indices."""
        return list(self._numbers)

    def of(self, texts: Iterable[str]) -> list[int]:
        """Return the index of each of the `texts` among the distinct texts so far; a new text gets the next index."""
        numbers = self._numbers
        return [numbers.setdefault(text, len(numbers)) for text in texts]


NO_SEGMENT = -1


@dataclass(frozen=True)
class TextArrays:
    """Arrays of all examples, shared by all subsets of a data set. The inputs of example i begin at row
    `first_inputs[i]` of `segments`.

    `segments` int32 [inputs, S] are indices of texts in `pool`; an input with fewer than S texts has NO_SEGMENT in the
    remaining columns. `kept` int32 [inputs, S] are the lengths of these texts in tokens after truncation. `spans` int64
    [examples, M, 2] are the token positions [start, end) of the M marked words (`Example.marked`) of each example, or
    None without marked words. If `pads_in_front` is true, padding precedes the shorter inputs of a batch.
    """

    pool: SegmentPool
    framing: Framing
    segments: np.ndarray
    kept: np.ndarray
    first_inputs: np.ndarray
    labels: np.ndarray
    is_truncated: np.ndarray
    lengths: np.ndarray
    spans: np.ndarray | None
    pads_in_front: bool = False


@dataclass(frozen=True)
class EncodedTexts:
    """Encoded examples. Each example is both an item (batches consist of items) and a unit (a unit has one label).
    `items` int64 [n] are the indices of the n examples in `arrays`.
    """

    arrays: TextArrays
    items: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each example, special tokens included, int64 [n]. If an example has choices, this is the
        length of its longest choice."""
        return self.arrays.lengths[self.items]

    @property
    def n_units(self) -> int:
        """Number of examples; each example is one unit."""
        return len(self.items)

    @property
    def labels(self) -> np.ndarray:
        """Labels of the examples: int64 [n] for classes and correct choices, int64 [n, K] for several labels per
        example, float64 [n] for regression.
        """
        return self.arrays.labels[self.items]

    @property
    def truncated(self) -> int:
        """Number of examples that were truncated to the maximum length."""
        return int(self.arrays.is_truncated[self.items].sum())

    def subset(self, items: Sequence[int]) -> "EncodedTexts":
        """Return the examples with the indices `items`, in this order, without a copy of the arrays."""
        return replace(self, items=self.items[np.asarray(items, dtype=np.int64)])

    def batch(self, items: np.ndarray) -> Batch:
        """Return `input_ids` int64 and `attention_mask` bool, both [examples, tokens] or, for choices, [examples,
        choices, tokens]. Also return `spans` if words are marked.

        The attention mask of a missing choice is False everywhere.
        """
        arrays, examples = self.arrays, self.items[items]
        counts = arrays.first_inputs[examples + 1] - arrays.first_inputs[examples]
        has_choices = len(arrays.segments) > len(arrays.labels)
        if has_choices:
            choices = np.arange(counts.max())
            exists = choices < counts[:, None]
            ids, mask = _framed(arrays, (arrays.first_inputs[examples][:, None] + choices)[exists])
            ids, mask = (
                _laid_out(values, exists, pad) for values, pad in ((ids, arrays.framing.pad_id), (mask, False))
            )
        else:
            ids, mask = _framed(arrays, arrays.first_inputs[examples])
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if arrays.spans is not None:
            moved = (~mask).sum(axis=1) if arrays.pads_in_front else np.zeros(len(mask), dtype=np.int64)
            inputs["spans"] = torch.from_numpy(arrays.spans[examples] + moved[:, None, None])
        return Batch(inputs, torch.from_numpy(arrays.labels[examples]), np.asarray(items, dtype=np.int64))


def encode_texts(
    examples: Sequence[Example], tokenizer: TextTokenizer, max_length: int, pads_in_front: bool = False
) -> EncodedTexts:
    """Encode every distinct text once. An input has at most `max_length` tokens, special tokens included. If
    `pads_in_front` is true, padding precedes the shorter inputs of a batch.

    Raises EvaluationError for an example without inputs, for a marked word without a token, and for examples with
    different numbers of marked words. Raises ConfigError for a `max_length` that leaves no room for a token of each
    segment.
    """
    numbers, flat, segment_counts, input_counts = TextNumbers(), array("i"), array("i"), array("i")
    for example in examples:
        if not example.inputs or not all(example.inputs):
            raise EvaluationError(f"{example.where}: the row has no text to encode")
        input_counts.append(len(example.inputs))
        for texts in example.inputs:
            segment_counts.append(len(texts))
            flat.extend(numbers.of(texts))
    n_segments = np.array(segment_counts, dtype=np.int64)
    segments = np.full((len(n_segments), int(n_segments.max(initial=1))), NO_SEGMENT, dtype=np.int32)
    segments[np.arange(segments.shape[1]) < n_segments[:, None]] = flat
    first_inputs = np.concatenate(([0], np.cumsum(input_counts, dtype=np.int64)))
    pool, framing = encode_pool(numbers.texts, tokenizer), Framing.of(tokenizer)
    lengths = np.where(segments == NO_SEGMENT, 0, np.append(pool.lengths, 0)[segments])
    kept = kept_tokens(lengths, n_segments, framing, max_length)
    input_lengths = kept.sum(axis=1) + framing.overhead(n_segments)
    spans = marked_token_spans(examples, tokenizer, kept[first_inputs[:-1]], framing)
    arrays = TextArrays(
        pool=pool,
        framing=framing,
        segments=segments,
        kept=kept.astype(np.int32),
        first_inputs=first_inputs,
        labels=_labels(examples),
        is_truncated=_per_example(np.logical_or, np.any(kept < lengths, axis=1), first_inputs),
        lengths=_per_example(np.maximum, input_lengths, first_inputs),
        spans=spans,
        pads_in_front=pads_in_front,
    )
    return EncodedTexts(arrays, np.arange(len(examples)))


def _framed(arrays: TextArrays, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the token ids int64 and the mask bool, both [inputs, tokens], of the inputs with the indices `inputs`
    int64 in `arrays`. The ids include special tokens and padding; the mask is False at padding.
    """
    framing, segments, kept = arrays.framing, arrays.segments[inputs], arrays.kept[inputs].astype(np.int64)
    lengths = kept.sum(axis=1) + framing.overhead((segments != NO_SEGMENT).sum(axis=1))
    longest = int(lengths.max())
    mask = np.arange(longest) < lengths[:, None]
    # Each position is [CLS], a token of a segment, a separator, or padding.
    ids = np.where(mask, framing.separator_id, framing.pad_id)
    if framing.cls_id is not None:
        ids[:, 0] = framing.cls_id
    counts = kept.ravel()
    ahead = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    targets = (framing.segment_starts(kept) + np.arange(len(inputs))[:, None] * longest).ravel()
    sources = arrays.pool.starts[segments].ravel()
    ids.ravel()[np.repeat(targets, counts) + ahead] = arrays.pool.tokens[np.repeat(sources, counts) + ahead]
    if arrays.pads_in_front:
        places = (np.arange(longest) + lengths[:, None]) % longest
        ids, mask = (np.take_along_axis(values, places, axis=1) for values in (ids, mask))
    return ids, mask


def _laid_out(rows: np.ndarray, exists: np.ndarray, missing: int | bool) -> np.ndarray:
    """Write `rows` [inputs, tokens] in order into an array [examples, choices, tokens], at the pairs of example and
    choice at which `exists`, bool [examples, choices], is True. All other entries of the array are `missing`.
    """
    laid_out = np.full((*exists.shape, rows.shape[1]), missing, dtype=rows.dtype)
    laid_out[exists] = rows
    return laid_out


def _labels(examples: Sequence[Example]) -> np.ndarray:
    labels = np.array([example.label for example in examples])
    return labels.astype(np.float64 if labels.dtype.kind == "f" else np.int64)


def _per_example(combine: np.ufunc, values: np.ndarray, first_inputs: np.ndarray) -> np.ndarray:
    """Return one value for each example: the `values` [inputs] of its inputs, combined by the NumPy ufunc `combine`,
    such as maximum.
    """
    return combine.reduceat(values, first_inputs[:-1]) if len(values) else values
