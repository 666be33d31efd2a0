"""Two texts in a sequence, and the question whether they belong together: next-sentence objectives.

Source: LTG-BERT, Section 5.2; docs/papers/ltg-bert.md, "Sentence pairs". `document` asks whether the second text
follows the first or comes from elsewhere, `order` whether two neighbouring texts stand in their original order.
"""

from typing import Literal

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.framing import FramedSequence, Framer
from hatchery.objectives.segments import N_ADDED_TOKENS, Segment, Segments
from hatchery.objectives.single_segments import TargetLength, single_target

PairKind = Literal["document", "order"]
# The text from elsewhere is drawn once, and again up to so many times while it comes from the same document.
N_REDRAWS = 10


class SentencePairs:
    """`[CLS] A [SEP] B [SEP]` made from the segments of a split, one pair for each of them.

    A and B together hold `sequence_length` - 3 tokens, or with `short_probability` a uniform number from 2 to
    `sequence_length` - 4. A segment of one sentence cannot be cut in two: `document` takes its B from elsewhere, and
    `order` shows it alone with the label 0, which is noise, as published. Raises TrainingError when `sequence_length`
    is below 5.
    """

    def __init__(
        self, segments: Segments, kind: PairKind, sequence_length: int, short_probability: float, framer: Framer
    ) -> None:
        full = sequence_length - N_ADDED_TOKENS - 1
        if full < 2:
            raise TrainingError(f"sequence_length: got {sequence_length}, expected 5 or more for sentence pairs")
        self._segments, self._kind, self._framer = segments, kind, framer
        self._pair_target = TargetLength(full, 2, short_probability)
        self._single_target = single_target(sequence_length, short_probability)

    def __len__(self) -> int:
        return len(self._segments)

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """The pair of segment `index`, its label and its lengths drawn from `generator`."""
        short_draw, length_draw, relation_draw, boundary_draw, hole_draw = generator.random(5)
        segment = self._segments[index]
        boundaries = segment.inner_sentence_starts
        if self._kind == "document" and (relation_draw <= 0.5 or len(boundaries) == 0):
            stranger = self._stranger(segment, generator)
            if stranger is not None:
                return self._framer.frame(self._fitted(segment, stranger, short_draw, length_draw, hole_draw), 0)
        if len(boundaries) == 0:
            # Also where `document` finds no other document: there is no second text, hence none that follows.
            return self._framer.frame([segment.first(self._single_target(short_draw, length_draw))], 0)
        first, second = segment.split_at(boundaries.item(int(boundary_draw * len(boundaries))))
        swapped = self._kind == "order" and relation_draw < 0.5
        if swapped:
            first, second = second, first
        return self._framer.frame(self._fitted(first, second, short_draw, length_draw, hole_draw), int(not swapped))

    def _stranger(self, segment: Segment, generator: np.random.Generator) -> Segment | None:
        """A segment of another document; None where all draws gave the same document."""
        for draw in generator.random(1 + N_REDRAWS):
            drawn = self._segments[int(draw * len(self._segments))]
            if drawn.number != segment.number:
                return drawn
        return None

    def _fitted(
        self, first: Segment, second: Segment, short_draw: float, length_draw: float, hole_draw: float
    ) -> tuple[Segment, Segment]:
        """Both texts, at least one token of each, without as many tokens of their ends as are too many.

        What is cut off from the first text leaves a hole between the two, also where they are neighbours.
        """
        excess = len(first) + len(second) - self._pair_target(short_draw, length_draw)
        if excess <= 0:
            return first, second
        least, most = max(0, excess - len(second) + 1), min(excess, len(first) - 1)
        from_first = least + int(hole_draw * (most - least + 1))
        return first.first(len(first) - from_first), second.first(len(second) - (excess - from_first))
