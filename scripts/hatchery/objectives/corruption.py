"""What a token that is to be predicted looks like in the input: [MASK], a random token, or itself.

Source: LTG-BERT, Section 5.1 (the 80/10/10 rule of BERT). Masking rules choose the tokens and the unit that shares one
decision (token, word or span); everything that happens to a chosen token happens here, in the same way for all of them.
"""

from dataclasses import dataclass

import numpy as np

from hatchery.objectives.special_ids import SpecialIds


@dataclass(frozen=True)
class Corruption:
    """Shares of the units that become random tokens or stay visible; all others become [MASK]."""

    special: SpecialIds
    vocab_size: int
    random_probability: float
    keep_probability: float

    def __call__(self, original: np.ndarray, decision: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """What the model sees in place of `original` int64 [n].

        `decision` [n] holds a uniform number from [0, 1) for each token, the same for all tokens of a unit: low numbers
        hide, the highest keep. Random tokens are drawn for each token by itself, and may equal the original.
        """
        keep_from = 1 - self.keep_probability
        visible = np.where(decision < keep_from, self.random_ids(len(original), generator), original)
        return np.where(decision < keep_from - self.random_probability, self.special.mask, visible)

    def random_ids(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Uniform ids int64 [count] from `special.first_random` on: as published, [PAR] is one of them."""
        # Uniform numbers are the steadiest part of numpy's generators from version to version.
        n_random = self.vocab_size - self.special.first_random
        return self.special.first_random + (generator.random(count) * n_random).astype(np.int64)
