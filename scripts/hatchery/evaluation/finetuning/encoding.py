"""Inputs of a classifier: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, cut to a maximum length (LTG-BERT, section 6.5).

With the special tokens of RoBERTa `<s> a </s> </s> b </s>`. Token ids only: these models have no segment embeddings,
so only the separators separate.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hatchery.evaluation.tasks.example import Example
from hatchery.tokenization.tokenizer_file import Tokenizer


@dataclass(frozen=True)
class EncodedExamples:
    """Examples as ids: `sequences[i]` is int64 [T_i] with special tokens, `labels` int64 [n]."""

    sequences: list[np.ndarray]
    labels: np.ndarray
    truncated: int

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sequence, int64 [n]."""
        return np.array([len(sequence) for sequence in self.sequences], dtype=np.int64)

    def subset(self, indices: Sequence[int]) -> "EncodedExamples":
        """The examples at the given positions; `truncated` stays that of the whole."""
        return EncodedExamples([self.sequences[i] for i in indices], self.labels[list(indices)], self.truncated)


def encode_examples(examples: Sequence[Example], tokenizer: Tokenizer, max_length: int) -> EncodedExamples:
    """Encode every distinct text once; at most `max_length` tokens per input, special tokens included."""
    texts = sorted({text for example in examples for text in example.segments})
    ids = dict(zip(texts, tokenizer.encode_sentences(texts), strict=True))
    sequences, truncated = [], 0
    for example in examples:
        segments = [ids[text] for text in example.segments]
        room = max_length - len(_framed([()] * len(segments), tokenizer))
        kept = truncate_longest(segments, room)
        truncated += sum(map(len, kept)) < sum(map(len, segments))
        sequences.append(np.array(_framed(kept, tokenizer), dtype=np.int64))
    return EncodedExamples(sequences, np.array([example.label for example in examples], dtype=np.int64), truncated)


def _framed(segments: Sequence[Sequence[int]], tokenizer: Tokenizer) -> list[int]:
    between = [tokenizer.sep_id] * tokenizer.special.separators_in_pair
    ids = [tokenizer.cls_id, *segments[0]]
    for segment in segments[1:]:
        ids += [*between, *segment]
    return [*ids, tokenizer.sep_id]


def truncate_longest(segments: Sequence[Sequence[int]], room: int) -> list[Sequence[int]]:
    """Cut tokens, one by one, from the end of the segment that is longest at the time, until `room` holds all.

    Of equally long segments the later one is cut.
    """
    lengths = [len(segment) for segment in segments]
    for _ in range(max(0, sum(lengths) - room)):
        longest = max(range(len(lengths)), key=lambda index: (lengths[index], index))
        lengths[longest] -= 1
    return [segment[:length] for segment, length in zip(segments, lengths, strict=True)]
