"""Frame segments as one input, `[CLS] a [SEP] b [SEP] c [SEP]`, with longest-first truncation to a maximum number of
tokens.

This order of segments and special tokens is LTG-BERT's (docs/papers/ltg-bert.md, "Fine-tuning"). With RoBERTa's special
tokens, the input is `<s> a </s> </s> b </s>`. With T5's, it is `a </s> b </s>`, and with GPT-BERT's, it is `<s> a <s>
b`. Lengths are computed before any input is built, so a data set can be sorted and divided into batches first.

Words marked in a text (the two target words of WiC) are mapped to tokens of the input. A mark is a range of characters,
and a token belongs to the mark if both share a character. Character offsets cost time, so only texts with marks are
encoded a second time to get them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer as Backend

from hatchery.errors import ConfigError, EvaluationError
from hatchery.evaluation.tasks.example import Example, MarkedSpan


class TextTokenizer(Protocol):
    """A tokenizer, and the ids of the tokens that it adds around texts, as in `[CLS] a [SEP] b [SEP]`."""

    @property
    def backend(self) -> Backend:
        """Return the tokenizer object of the library `tokenizers`, for character offsets."""

    @property
    def cls_id(self) -> int | None:
        """Id of the token in front of the first text; None for a model that was pretrained without this token (T5)."""

    @property
    def between_ids(self) -> Sequence[int]:
        """Ids of the tokens between two texts: no token, one separator, or two separators."""

    @property
    def end_ids(self) -> Sequence[int]:
        """Ids of the tokens after the last text: one separator, or no token."""

    @property
    def pad_id(self) -> int:
        """Id of the padding token, which the attention mask hides from the model."""

    def encode_sentences(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return ids of each text, without special tokens before and after the text."""


@dataclass(frozen=True)
class Framing:
    """Ids of the tokens around segments, and the number of separators between two segments."""

    cls_id: int | None
    separator_id: int
    pad_id: int
    separators_between: int
    n_behind: int
    """Number of tokens after the last segment: 1 if a separator ends the input, else 0."""

    @classmethod
    def of(cls, tokenizer: TextTokenizer) -> "Framing":
        """Return the special tokens that a tokenizer adds around texts."""
        between, end = tokenizer.between_ids, tokenizer.end_ids
        ids = {*between, *end} or {tokenizer.pad_id}
        # The token at the end of a text also separates two texts, so framing needs exactly one separator id.
        assert len(ids) == 1
        return cls(tokenizer.cls_id, ids.pop(), tokenizer.pad_id, len(between), len(end))

    @property
    def n_before(self) -> int:
        """Number of tokens in front of the first segment."""
        return int(self.cls_id is not None)

    def overhead(self, n_segments: np.ndarray) -> np.ndarray:
        """Return the number of special tokens of inputs with `n_segments` int64 [...] segments."""
        return self.n_before + self.n_behind + self.separators_between * (n_segments - 1)

    def segment_starts(self, kept: np.ndarray) -> np.ndarray:
        """Return the input position of each segment's first token, int64 [..., S]. `kept` [..., S] is the number of
        tokens of each segment after truncation.
        """
        before = np.cumsum(kept, axis=-1) - kept
        return self.n_before + before + self.separators_between * np.arange(kept.shape[-1])


def kept_tokens(lengths: np.ndarray, n_segments: np.ndarray, framing: Framing, max_length: int) -> np.ndarray:
    """Return the number of tokens of every segment after truncation, int64 [inputs, S]; S is the largest number of
    segments of an input.

    `lengths` [inputs, S] are the segments' numbers of tokens before truncation. `n_segments` is the number of segments
    of each input. Raises ConfigError if the special tokens leave no room for a token of each segment.
    """
    room = max_length - framing.overhead(n_segments)
    if len(room) and np.any(room < n_segments):
        most = int(n_segments.max())
        raise ConfigError(
            f"finetune.protocol.max_length: got {max_length}, expected at least "
            f"{int(framing.overhead(np.array(most))) + most} for inputs of {most} segments"
        )
    return truncate_longest(lengths, room)


def truncate_longest(lengths: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return the lengths int64 [N, S] of segments after longest-first truncation to `room` int64 [N] tokens in total.

    The result is the same as if tokens were removed one by one from the end of the longest segment, or of the last
    among equally long segments. To compute it, all segments longer than a common length are truncated to this length.
    The remaining tokens go to the first of these segments, one token to each.
    """
    kept = lengths.astype(np.int64)
    rows = np.flatnonzero(kept.sum(axis=1) > room)
    if not len(rows):
        return kept
    long, space = kept[rows], np.maximum(room[rows], 0)
    # Find the largest common length of the segments by bisection: segments of length `low` fit into the input, and
    # segments of length `high` do not.
    low, high = np.zeros(len(rows), dtype=np.int64), long.max(axis=1)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        fits = np.minimum(long, middle[:, None]).sum(axis=1) <= space
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    level = np.minimum(long, low[:, None])
    above = long > low[:, None]
    spare = space - level.sum(axis=1)
    kept[rows] = level + (above & (np.cumsum(above, axis=1) <= spare[:, None]))
    return kept


FIRST_TOKEN = (0, 1)


def marked_token_spans(
    examples: Sequence[Example], tokenizer: TextTokenizer, kept: np.ndarray, framing: Framing
) -> np.ndarray | None:
    """Return the token positions [start, end) of the M marks of every example, int64 [examples, M, 2]; None if no
    example has a mark. A mark is a range of characters (`Example.marked`), such as a target word of WiC.

    `kept` int64 [examples, S] are the lengths of the segments in tokens after truncation. If truncation removed all
    tokens of a mark, the position of the input's first token ([CLS], if the model has it) is returned. Raises
    EvaluationError if examples have different numbers of marks, for an example with several inputs, and for a mark
    without a token.
    """
    n_marks = max((len(example.marked) for example in examples), default=0)
    if n_marks == 0:
        return None
    spans = np.empty((len(examples), n_marks, 2), dtype=np.int64)
    offsets: dict[str, np.ndarray] = {}
    starts = framing.segment_starts(kept)
    for row, example in enumerate(examples):
        if len(example.marked) != n_marks or len(example.inputs) != 1:
            found = f"{len(example.marked)} in {len(example.inputs)} inputs"
            raise EvaluationError(f"{example.where}: marked words: got {found}, expected {n_marks} in one input")
        for number, mark in enumerate(example.marked):
            text = example.segments[mark.segment]
            if text not in offsets:
                offsets[text] = _offsets(text, tokenizer)
            first, end = _tokens_of(mark, offsets[text], example.where)
            segment_start, n_kept = int(starts[row, mark.segment]), int(kept[row, mark.segment])
            is_cut = first >= n_kept
            spans[row, number] = FIRST_TOKEN if is_cut else (segment_start + first, segment_start + min(end, n_kept))
    return spans


def _offsets(text: str, tokenizer: TextTokenizer) -> np.ndarray:
    encoding = tokenizer.backend.encode(text, add_special_tokens=False)
    return np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)


def _tokens_of(mark: MarkedSpan, offsets: np.ndarray, where: str) -> tuple[int, int]:
    touched = np.flatnonzero((offsets[:, 0] < mark.end) & (offsets[:, 1] > mark.start))
    if not len(touched):
        raise EvaluationError(f"{where}: no token covers the marked characters [{mark.start}, {mark.end})")
    return int(touched[0]), int(touched[-1]) + 1
