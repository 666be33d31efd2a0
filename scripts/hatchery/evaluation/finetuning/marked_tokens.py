"""Marked words of a text as tokens of the framed input: the two target words of WiC (evaluation.md 6.5).

Marks are characters; a token belongs to a mark that it shares a character with. Only texts with marks are encoded
again, because character offsets cost time that no other task needs.
"""

from collections.abc import Sequence

import numpy as np

from hatchery.errors import EvaluationError
from hatchery.evaluation.finetuning.framing import Framing
from hatchery.evaluation.tasks.example import Example, MarkedSpan
from hatchery.tokenization.tokenizer_file import Tokenizer

FIRST_TOKEN = (0, 1)


def marked_token_spans(
    examples: Sequence[Example], tokenizer: Tokenizer, kept: np.ndarray, framing: Framing
) -> np.ndarray | None:
    """Positions int64 [examples, M, 2], [start, end), of the M marks of every example; None where nothing is marked.

    `kept` int64 [examples, S] are the tokens left of each segment. A mark that truncation cut away points at [CLS].
    Raises EvaluationError when examples have different numbers of marks, and for a mark without a token.
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


def _offsets(text: str, tokenizer: Tokenizer) -> np.ndarray:
    encoding = tokenizer.backend.encode(text, add_special_tokens=False)
    return np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)


def _tokens_of(mark: MarkedSpan, offsets: np.ndarray, where: str) -> tuple[int, int]:
    touched = np.flatnonzero((offsets[:, 0] < mark.end) & (offsets[:, 1] > mark.start))
    if not len(touched):
        raise EvaluationError(f"{where}: the marked characters [{mark.start}, {mark.end}) hold no token")
    return int(touched[0]), int(touched[-1]) + 1
