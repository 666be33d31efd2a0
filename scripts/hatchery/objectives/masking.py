"""Which tokens of an example are to be predicted, and how the input hides them: settings, and the rule they ask for.

Source: LTG-BERT sections 3.3 to 3.5, ELC-BERT section 3.3, reduced-vocabulary section 5.2. A rule is a pure function of
the tokens and of the generator handed to it.
"""

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from hatchery.errors import TrainingError
from hatchery.objectives.corruption import UNLABELLED as UNLABELLED
from hatchery.objectives.corruption import Corruption
from hatchery.objectives.published_span_masking import PublishedSpanMasking
from hatchery.objectives.span_masking import SpanMasking
from hatchery.objectives.special_ids import SpecialIds
from hatchery.objectives.subword_masking import SubwordMasking, published_shares
from hatchery.objectives.whole_word_masking import WholeWordMasking

MaskingKind = Literal["subword", "whole_word", "span"]
Reading = Literal["corrected", "as_published"]


@dataclass(frozen=True)
class MaskingSettings:
    """One masking objective. Raises TrainingError for impossible shares and unknown names.

    Always-[MASK] of the reduced-vocabulary study is `kind` subword with `random_probability` and `keep_probability` 0
    and `special_tokens_maskable`.
    """

    kind: MaskingKind = "span"
    """Unit that is chosen and that shares one decision between [MASK], random and kept."""
    reading: Reading = "corrected"
    """`as_published` is the BNC code: its spans mislabel about 6 % of the positions, its subwords are random with
    probability r / (r + k + 1e-6) where not [MASK]. Whole words have one reading only."""
    mask_probability: float = 0.15
    """Expected share of the maskable tokens that are to be predicted (spans overshoot it a little)."""
    random_probability: float = 0.1
    """Share of the units whose tokens are replaced by random ones."""
    keep_probability: float = 0.1
    """Share of the units whose tokens stay visible; the remaining units become [MASK]."""
    special_tokens_maskable: bool = False
    """Whether special tokens can be predicted too, as in the reduced-vocabulary study; padding never is."""
    at_least_one: bool = True
    """Whether corrected span masking always asks for a token: yes in the BabyLM revision, no in the ELC-BERT code.
    No other rule promises one."""

    def __post_init__(self) -> None:
        for name, allowed in (("kind", get_args(MaskingKind)), ("reading", get_args(Reading))):
            if getattr(self, name) not in allowed:
                expected = " or ".join(allowed)
                raise TrainingError(f"objective.{name}: got {getattr(self, name)!r}, expected {expected}")
        for name in ("mask_probability", "random_probability", "keep_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise TrainingError(f"objective.{name}: got {getattr(self, name)!r}, expected a number from 0 to 1")
        if self.random_probability + self.keep_probability > 1:
            total = self.random_probability + self.keep_probability
            raise TrainingError(f"objective.random_probability + keep_probability: got {total}, expected at most 1")


class MaskingRule(Protocol):
    """Chooses the tokens of one example that are to be predicted, and hides them."""

    @property
    def needs_word_starts(self) -> bool:
        """Whether the rule has to know where words start."""

    def __call__(
        self, ids: np.ndarray, word_starts: np.ndarray | None, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """The corrupted example: (input ids, labels), both int64 [n], labels -100 where nothing is to be predicted.

        `ids` int64 [n] are framed with [CLS] and [SEP] and carry no padding, n at most the sequence length.
        `word_starts` bool [n] is True at the first token of each word and at special tokens; it may be None where
        `needs_word_starts` is False.
        """


def masking_rule(settings: MaskingSettings, sequence_length: int, vocab_size: int, special: SpecialIds) -> MaskingRule:
    """The rule that `settings` asks for, at sequences of nominally `sequence_length` tokens.

    Raises TrainingError when the vocabulary has no ordinary token.
    """
    if vocab_size <= special.n_protected:
        raise TrainingError(f"vocab_size: got {vocab_size}, expected more than {special.n_protected}")
    published = settings.reading == "as_published"
    shares = (settings.random_probability, settings.keep_probability)
    if published and settings.kind == "subword":
        shares = published_shares(*shares)
    corruption = Corruption(special, vocab_size, *shares)
    common = (settings.mask_probability, corruption, settings.special_tokens_maskable)
    if settings.kind == "subword":
        return SubwordMasking(*common)
    if settings.kind == "whole_word":
        return WholeWordMasking(*common)
    if published:
        return PublishedSpanMasking(*common, sequence_length)
    return SpanMasking(*common, sequence_length, settings.at_least_one)
