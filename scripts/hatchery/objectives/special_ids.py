"""The ids that objectives insert or never change, and the ids that replace predicted tokens in the input.

Source of the replacement: LTG-BERT, Section 5.1 (the 80/10/10 rule of BERT): [MASK], a random token, or the token
itself. Masking rules choose the tokens and the unit that shares one decision (token, word or span); the replacement of
a chosen token is here, and equal for all rules.
"""

from dataclasses import dataclass

import numpy as np

from hatchery.tokenization.special_tokens import SpecialTokens


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the structural tokens, created by `SpecialIds.of` from the set of the tokenizer."""

    cls: int
    sep: int
    pad: int
    mask: int
    n_protected: int
    """Ids below this number are never predicted: [UNK] to [PAR], but not [TAB] (docs/papers/elc-bert.md, "Masking")."""
    first_random: int
    """Lowest id that may replace a token at random."""
    n_special: int = 0
    """Ids below this number are special tokens."""
    unknown: int = -1
    """Id of the unknown token, the only special token that represents text."""

    @classmethod
    def of(cls, special: "SpecialTokens | SpecialIds") -> "SpecialIds":
        """Return the ids of a set of special tokens; a `SpecialIds` is returned unchanged.

        If the set has [PAR], random tokens include [PAR]: the published code starts their ids one too low. No
        published span objective uses a set without [PAR]; none of its special tokens is predicted or drawn.
        """
        if isinstance(special, SpecialIds):
            return special
        ids = special.ids
        paragraph = len(special.order) if special.paragraph is None else ids[special.paragraph]
        n_protected = min(paragraph + 1, len(special.order))
        framing = ids[special.cls], ids[special.sep], ids[special.pad], ids[special.mask]
        return cls(*framing, n_protected, paragraph, len(special.order), ids[special.unknown])

    def maskable(self, ids: np.ndarray, special_tokens_too: bool = False) -> np.ndarray:
        """Return which of the tokens `ids` may be predicted, bool, in the shape of `ids`.

        These are ordinary tokens, or with `special_tokens_too` all except padding, as in the code of the
        reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Masking").
        """
        return ids != self.pad if special_tokens_too else ids >= self.n_protected


@dataclass(frozen=True)
class Corruption:
    """Shares of the units that become random tokens or stay visible; all others become [MASK]."""

    special: SpecialIds
    vocab_size: int
    random_probability: float
    keep_probability: float

    def __call__(self, original: np.ndarray, decision: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return the model's input in place of `original` int64 [n].

        `decision` [n] is a uniform number from [0, 1) for each token, equal for all tokens of a unit: low numbers hide,
        the highest numbers keep. Random tokens are drawn for each token separately, and may equal the original.
        """
        keep_from = 1 - self.keep_probability
        visible = np.where(decision < keep_from, self.random_ids(len(original), generator), original)
        return np.where(decision < keep_from - self.random_probability, self.special.mask, visible)

    def random_ids(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Return uniform ids int64 [count] from `special.first_random` on; as published, they include [PAR]."""
        # Uniform numbers, because numpy's generators keep their stream stable across versions.
        n_random = self.vocab_size - self.special.first_random
        return self.special.first_random + (generator.random(count) * n_random).astype(np.int64)
