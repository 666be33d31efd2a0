"""Ids of the special tokens that objectives insert or protect from masking, and replacement of masked tokens in the
input.

Source of the replacement: LTG-BERT, Section 5.1 (the 80/10/10 rule of BERT): a masked token becomes [MASK] or a random
token, or stays unchanged. A masking rule chooses the masked tokens, in units (such as words or spans). All tokens of a
unit get the same kind of replacement. This module replaces the tokens for all masking rules.
"""

from dataclasses import dataclass

import numpy as np

from hatchery.tokenization.special_tokens import SpecialTokens


@dataclass(frozen=True)
class SpecialIds:
    """Ids of special tokens. `SpecialIds.of` reads these ids from the tokenizer's set of special tokens."""

    cls: int
    sep: int
    pad: int
    mask: int
    n_protected: int
    """Tokens with ids below this number are masked only if special tokens are maskable. In a set with [PAR], these are
    [UNK] to [PAR]; [TAB] has a higher id (docs/papers/elc-bert.md, "Masking"). In a set without [PAR], these are all
    special tokens.
    """
    first_random: int
    """Lowest id that may be drawn as a random token."""
    n_special: int = 0
    """Number of special tokens; their ids are below this number."""
    unknown: int = -1
    """Id of the unknown token, which is the only special token that represents text."""

    @classmethod
    def of(cls, special: "SpecialTokens | SpecialIds") -> "SpecialIds":
        """Return the ids of a set of special tokens; a `SpecialIds` is returned unchanged.

        If the set has a paragraph token [PAR], this token may be drawn as a random token, although it is masked only if
        special tokens are maskable: in LTG-BERT's code, the lowest random id is too low by 1, and this class reproduces
        the error. If the set has no [PAR], no special token is drawn, and all special tokens are protected from masking
        (`n_protected`).
        """
        if isinstance(special, SpecialIds):
            return special
        ids = special.ids
        paragraph = len(special.order) if special.paragraph is None else ids[special.paragraph]
        n_protected = min(paragraph + 1, len(special.order))
        framing = ids[special.cls], ids[special.sep], ids[special.pad], ids[special.mask]
        return cls(*framing, n_protected, paragraph, len(special.order), ids[special.unknown])

    def maskable(self, ids: np.ndarray, special_tokens_too: bool = False) -> np.ndarray:
        """Return a mask, bool with the shape of `ids`, that is True for tokens that can be masked.

        Tokens with ids from `n_protected` on can be masked. If `special_tokens_too` is true, all tokens except padding
        can be masked, as in the code of the reduced-vocabulary study (docs/papers/reduced-vocabulary.md, "Masking").
        """
        return ids != self.pad if special_tokens_too else ids >= self.n_protected


@dataclass(frozen=True)
class Corruption:
    """Replacement of masked tokens: the share that becomes random tokens, and the share that stays visible; all other
    masked tokens become [MASK].
    """

    special: SpecialIds
    vocab_size: int
    random_probability: float
    keep_probability: float

    def __call__(self, original: np.ndarray, decision: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Return the input ids that replace the masked tokens `original` int64 [n].

        `decision` [n] contains a uniform number for each token. Tokens that were masked as one unit, such as a word or
        a span, have the same number. Low numbers replace the token by [MASK], middle numbers replace it by a random
        token, and high numbers keep it visible. Random tokens are drawn for each token separately, and may equal the
        original token.
        """
        keep_from = 1 - self.keep_probability
        visible = np.where(decision < keep_from, self.random_ids(len(original), generator), original)
        return np.where(decision < keep_from - self.random_probability, self.special.mask, visible)

    def random_ids(self, count: int, generator: np.random.Generator) -> np.ndarray:
        """Return `count` random token ids, int64, drawn uniformly from `special.first_random` (the lowest id of a
        random token) to the largest id of the vocabulary.
        """
        # Draw uniform numbers, because numpy guarantees the stream of uniform numbers across versions.
        n_random = self.vocab_size - self.special.first_random
        return self.special.first_random + (generator.random(count) * n_random).astype(np.int64)
