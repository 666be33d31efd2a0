"""The token ids that objectives insert or leave alone."""

from dataclasses import dataclass

from hatchery.tokenization.special_tokens import CLS, MASK, PAD, PAR, SEP, SPECIAL_IDS


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the structural tokens, by default those of every tokenizer of this house."""

    cls: int = SPECIAL_IDS[CLS]
    sep: int = SPECIAL_IDS[SEP]
    pad: int = SPECIAL_IDS[PAD]
    mask: int = SPECIAL_IDS[MASK]
    n_protected: int = SPECIAL_IDS[PAR] + 1
    """Ids below this one are never predicted: [UNK] to [PAR], but not [TAB] (ELC-BERT section 3.3)."""
    first_random: int = SPECIAL_IDS[PAR]
    """Lowest id that may replace a token at random. The published code starts one too low, so [PAR] can be drawn."""
