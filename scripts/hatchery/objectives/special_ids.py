"""The token ids that objectives insert or leave alone."""

from dataclasses import dataclass

import numpy as np

from hatchery.tokenization.special_tokens import SpecialTokens


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the structural tokens; made by `SpecialIds.of` from the set of the tokenizer."""

    cls: int
    sep: int
    pad: int
    mask: int
    n_protected: int
    """Ids below this one are never predicted: [UNK] to [PAR], but not [TAB] (docs/papers/elc-bert.md, "Masking")."""
    first_random: int
    """Lowest id that may replace a token at random."""

    @classmethod
    def of(cls, special: "SpecialTokens | SpecialIds") -> "SpecialIds":
        """The ids of a set of special tokens; such ids as they are.

        Where the set has [PAR], random tokens start there: the published code starts one too low, so that [PAR] can
        be drawn. A set without it comes from no published span objective; none of its tokens is predicted or drawn.
        """
        if isinstance(special, SpecialIds):
            return special
        ids = special.ids
        paragraph = len(special.order) if special.paragraph is None else ids[special.paragraph]
        n_protected = min(paragraph + 1, len(special.order))
        return cls(ids[special.cls], ids[special.sep], ids[special.pad], ids[special.mask], n_protected, paragraph)

    def maskable(self, ids: np.ndarray, special_tokens_too: bool = False) -> np.ndarray:
        """Which of the tokens `ids` may be predicted, bool, in the shape of `ids`.

        Ordinary tokens; with `special_tokens_too` all but padding, as in the code of the reduced-vocabulary study
        (docs/papers/reduced-vocabulary.md, "Masking").
        """
        return ids != self.pad if special_tokens_too else ids >= self.n_protected
