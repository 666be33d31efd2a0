"""Encode sentences with labelled spans as token ids and spans of tokens.

Source: docs/papers/ltg-bert.md, "Edge probing" and "Detokenisation". The input is [CLS] s [SEP], where s is the
sentence; an external tokenizer may have no such special tokens. A span of words is mapped to all subwords that share a
character with the span, so a subword that overlaps two words belongs to both. Sentences that are too long are dropped,
never truncated.

Words are joined to running text as LTG-BERT prepares pre-tokenised data (docs/papers/ltg-bert.md, "Detokenisation"):
each word is normalised, the words are joined by spaces, and rules then remove or insert spaces. The rules change only
spaces, so a word's position in the text is found by counting the characters that are not spaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.finetuning.batches import Batch
from hatchery.evaluation.finetuning.framing import TextTokenizer
from hatchery.evaluation.probing.formats import UNKNOWN_LABEL
from hatchery.evaluation.tasks.example import SpanExample
from hatchery.evaluation.tasks.settings import Normalisation
from hatchery.evaluation.tasks.texts import detokenise, normalise


@dataclass(frozen=True)
class PlacedWords:
    """A text, and the range of characters [start, end) of each word in the text."""

    text: str
    places: tuple[tuple[int, int], ...]


def place_words(words: Sequence[str], normalisation: Normalisation) -> PlacedWords:
    """Return the text of a sentence with the character range of each word.

    The normalisation `none` joins the words by spaces. `ltg_detokenised` normalises the words and joins them to running
    text, for example without a space before a comma. If the normalisation removes all characters of a word, the word
    gets an empty range in front of the next word. Raises ConfigError for another normalisation. Words must contain no
    space.
    """
    if normalisation == "none":
        ends = accumulate(len(word) + 1 for word in words)
        places = tuple((end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True))
        return PlacedWords(" ".join(words), places)
    if normalisation != "ltg_detokenised":
        raise ConfigError(f"normalisation: got {normalisation!r}, expected none or ltg_detokenised for marked words")
    text = detokenise(" ".join(words))
    return PlacedWords(text, _found_again([normalise(word) for word in words], text))


def _found_again(words: Sequence[str], text: str) -> tuple[tuple[int, int], ...]:
    visible = [index for index, character in enumerate(text) if not character.isspace()]
    counts = [sum(not character.isspace() for character in word) for word in words]
    assert sum(counts) == len(visible), "a rule for spaces changed a character that is not a space"
    visible.append(len(text))
    places, first = [], 0
    for count in counts:
        last = first + count
        places.append((visible[first], visible[last - 1] + 1 if count else visible[first]))
        first = last
    return tuple(places)


SENTENCES_AT_A_TIME = 4096


@dataclass(frozen=True)
class TokenSequences:
    """Token sequences of distinct sentences, concatenated in one array: sequence i is `ids[starts[i] : starts[i + 1]]`,
    special tokens included.
    """

    ids: np.ndarray
    starts: np.ndarray
    pad_id: int

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sequence, int64 [sequences]."""
        return np.diff(self.starts)

    def padded(self, sequences: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the padded ids int64 [B, T] of the sequences with the indices `sequences`, and a mask bool [B, T] that
        is True at tokens and False at padding.
        """
        lengths = self.lengths[sequences]
        mask = np.arange(lengths.max(initial=1)) < lengths[:, None]
        ids = np.full(mask.shape, self.pad_id, dtype=np.int64)
        ids[mask] = self.ids[flat_ranges(self.starts[sequences], lengths)]
        return torch.from_numpy(ids), torch.from_numpy(mask)


@dataclass(frozen=True)
class EncodedSpans:
    """Encoded sentences with the interface `EncodedData`: items are sentences, and units are targets (labelled spans).

    The targets of item i are units `unit_starts[i]` to `unit_starts[i + 1] - 1`. `spans` int64 [units, S, 2] are the
    token positions [start, end) of the S spans of each unit; position 0 is the input's first token, such as [CLS].
    `labels` are bool [units, K] for K labels, or int64 [units] if each unit has one label. `dropped` is the number of
    sentences in the full data set that were too long or had no subword.
    """

    sequences: TokenSequences
    sequence_of: np.ndarray
    unit_starts: np.ndarray
    spans: np.ndarray
    labels: np.ndarray
    examples: tuple[SpanExample, ...]
    dropped: int

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sentence, special tokens included, int64 [sentences]."""
        return self.sequences.lengths[self.sequence_of]

    @property
    def n_units(self) -> int:
        """Number of units: the targets of all sentences."""
        return len(self.labels)

    def units_of(self, items: np.ndarray) -> np.ndarray:
        """Return the indices of all targets of the sentences `items`, in the order of these sentences."""
        return flat_ranges(self.unit_starts[items], np.diff(self.unit_starts)[items])

    def batch(self, items: np.ndarray) -> Batch:
        """Return a batch of sentences with all their targets, padded to the longest sentence. The input `widest` is the
        number of tokens of the longest span in the batch.
        """
        items = np.asarray(items, dtype=np.int64)
        ids, mask = self.sequences.padded(self.sequence_of[items])
        units = self.units_of(items)
        spans = self.spans[units]
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "spans": torch.from_numpy(spans),
            "sentences": torch.from_numpy(np.repeat(np.arange(len(items)), np.diff(self.unit_starts)[items])),
            "widest": int((spans[..., 1] - spans[..., 0]).max(initial=1)),
        }
        return Batch(inputs, torch.from_numpy(self.labels[units]), units)

    def subset(self, items: Sequence[int]) -> "EncodedSpans":
        """Return the sentences with the indices `items`, in this order. The subset shares its token ids with the full
        data set, and `dropped` is still the number of sentences that were dropped from the full data set.
        """
        chosen = np.asarray(items, dtype=np.int64)
        units = self.units_of(chosen)
        counts = np.diff(self.unit_starts)[chosen]
        return EncodedSpans(
            sequences=self.sequences,
            sequence_of=self.sequence_of[chosen],
            unit_starts=starts_of(counts),
            spans=self.spans[units],
            labels=self.labels[units],
            examples=tuple(self.examples[item] for item in chosen.tolist()),
            dropped=self.dropped,
        )


def encode_spans(
    examples: Sequence[SpanExample],
    tokenizer: TextTokenizer,
    max_length: int,
    n_labels: int,
    multi_label: bool,
    normalisation: Normalisation = "none",
) -> EncodedSpans:
    """Encode every distinct sentence once. Sentences of more than `max_length` tokens, and sentences without a subword,
    are dropped; `dropped` is their number.

    `max_length` includes the special tokens: with [CLS] and [SEP], 128 corresponds to LTG-BERT's limit of 126 subwords.
    Raises EvaluationError if targets have different numbers of spans. If `multi_label` is False, raises EvaluationError
    naming file and line of a target that does not have exactly one label.
    """
    distinct = {words: index for index, words in enumerate(dict.fromkeys(example.words for example in examples))}
    texts = [place_words(words, normalisation) for words in distinct]
    before = [] if tokenizer.cls_id is None else [tokenizer.cls_id]
    ids: list[np.ndarray] = []
    offsets: list[np.ndarray] = []
    for first in range(0, len(texts), SENTENCES_AT_A_TIME):
        part = [placed.text for placed in texts[first : first + SENTENCES_AT_A_TIME]]
        for encoding in tokenizer.backend.encode_batch(part, add_special_tokens=False):
            ids.append(np.array([*before, *encoding.ids, *tokenizer.end_ids], dtype=np.int64))
            offsets.append(np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2))
    around = len(before) + len(tokenizer.end_ids)
    fits = [around < len(sequence) <= max_length for sequence in ids]
    kept = [example for example in examples if fits[distinct[example.words]]]
    spans = [
        [span_of_subwords(offsets[index], texts[index], span, len(before)) for span in target.spans]
        for example in kept
        for index in [distinct[example.words]]
        for target in example.targets
    ]
    if len(widths := {len(pair) for pair in spans}) > 1:
        raise EvaluationError(
            f"targets: got targets with {' and '.join(map(str, sorted(widths)))} spans, expected the same number of "
            "spans in all targets of a task"
        )
    # A dropped sentence keeps its index, but its sequence of ids is empty.
    ids = [sequence if fit else sequence[:0] for sequence, fit in zip(ids, fits, strict=True)]
    return EncodedSpans(
        sequences=TokenSequences(
            np.concatenate([*ids, np.zeros(0, np.int64)]), starts_of([len(s) for s in ids]), tokenizer.pad_id
        ),
        sequence_of=np.array([distinct[example.words] for example in kept], dtype=np.int64),
        unit_starts=starts_of([len(example.targets) for example in kept]),
        spans=np.array(spans, dtype=np.int64).reshape(len(spans), next(iter(widths), 1), 2),
        labels=_labels(kept, n_labels, multi_label),
        examples=tuple(kept),
        dropped=len(examples) - len(kept),
    )


def span_of_subwords(
    offsets: np.ndarray, placed: PlacedWords, span: tuple[int, int], n_before: int = 1
) -> tuple[int, int]:
    """Return the input positions [start, end) of the tokens that overlap a span of words [i, j). `n_before` is the
    number of special tokens, such as [CLS], before the text's first token.

    `offsets` int64 [subwords, 2] are ranges of characters [start, end). If no token overlaps the words, return the
    position of the next token or, at the end of the text, of the last token.
    """
    start, end = placed.places[span[0]][0], placed.places[span[1] - 1][1]
    first = int(np.searchsorted(offsets[:, 1], start, side="right"))
    last = int(np.searchsorted(offsets[:, 0], end, side="left"))
    if first >= last:
        first = min(first, len(offsets) - 1)
        last = first + 1
    return first + n_before, last + n_before


def _labels(examples: Sequence[SpanExample], n_labels: int, multi_label: bool) -> np.ndarray:
    targets = [(example, target) for example in examples for target in example.targets]
    if multi_label:
        hot = np.zeros((len(targets), n_labels), dtype=bool)
        for row, (_, target) in enumerate(targets):
            hot[row, [label for label in target.labels if label != UNKNOWN_LABEL]] = True
        return hot
    for example, target in targets:
        if len(target.labels) != 1:
            raise EvaluationError(
                f"{example.where}: a target has {len(target.labels)} labels, expected one label for this head"
            )
    return np.array([target.labels[0] for _, target in targets], dtype=np.int64)


def starts_of(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the start of each of n consecutive ranges with the lengths `counts`, followed by the end of the last
    range: int64 [n + 1].
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(counts, dtype=np.int64))])


def flat_ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the concatenated indices of all ranges, int64. Range i begins at `starts[i]` and contains `counts[i]`
    indices.
    """
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())
