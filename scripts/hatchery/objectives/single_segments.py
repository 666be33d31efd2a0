"""One segment per sequence, now and then cut to a random shorter length.

Source: docs/papers/ltg-bert.md, "Examples".
"""

from dataclasses import dataclass

import numpy as np

from hatchery.objectives.framing import FramedSequence, Framer
from hatchery.objectives.segments import Segments, room_for_tokens


@dataclass(frozen=True)
class TargetLength:
    """How many tokens a sequence may hold at most: `full`, or rarely a uniform number from `least` to `full` - 1."""

    full: int
    least: int
    short_probability: float

    def __call__(self, short_draw: float, length_draw: float) -> int:
        """The length that two uniform numbers from [0, 1) mean."""
        if short_draw >= self.short_probability:
            return self.full
        return self.least + int(length_draw * (self.full - self.least))


def single_target(sequence_length: int, short_probability: float) -> TargetLength:
    """Of one segment: `sequence_length` - 2, or 1 to `sequence_length` - 3."""
    return TargetLength(room_for_tokens(sequence_length), 1, short_probability)


class SingleSegments:
    """`[CLS] segment [SEP]`; a segment that is shorter than its target length stays whole."""

    def __init__(self, segments: Segments, target: TargetLength, framer: Framer) -> None:
        self._segments, self._target, self._framer = segments, target, framer

    def __len__(self) -> int:
        return len(self._segments)

    def draw(self, index: int, generator: np.random.Generator) -> FramedSequence:
        """Segment `index`, cut to a target length drawn from `generator`."""
        short_draw, length_draw = generator.random(2)
        return self._framer.frame([self._segments[index].first(self._target(short_draw, length_draw))])
