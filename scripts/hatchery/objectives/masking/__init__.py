"""Masking: choice of the tokens to predict, and replacement of these tokens in the input. This module contains the
settings; every other file of the package contains one rule.

Source: LTG-BERT, Section 5, and the published code: docs/papers/ltg-bert.md, "Masking"; docs/papers/elc-bert.md,
"Masking"; docs/papers/reduced-vocabulary.md, "Masking". The reduced-vocabulary study replaces all chosen tokens by
[MASK]: `kind: subword` with `random_probability: 0`, `keep_probability: 0` and `special_tokens_maskable: true`. A rule
is a function of the tokens and a random generator. Each file defines a function `rule`, which creates the rule from the
settings.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from hatchery.errors import TrainingError
from hatchery.folders import names_in_folder
from hatchery.settings.base import Range, ReadingName, Settings, Share, refused

if TYPE_CHECKING:
    import numpy as np

    from hatchery.objectives.special_ids import SpecialIds

KINDS = names_in_folder(__file__)
"""Names of the masking rules. Planning needs these names, but does not import the rules."""
if TYPE_CHECKING:
    MaskingKind = str
else:
    MaskingKind = Literal[KINDS]


@dataclass(frozen=True)
class MaskingSettings(Settings):
    """Settings of masking: the tokens that are predicted, and their replacement in the input."""

    kind: MaskingKind = "span"
    """Unit whose tokens are masked together: a single subword, a whole word, a span of up to nine tokens (`span`, as in
    LTG-BERT), or a span of one to three tokens (`short_span`, as in GPT-BERT).
    """
    reading: ReadingName = "corrected"
    """Version of the masking. `as_published` reproduces the errors of published code; `corrected` fixes these errors.
    For the kind `span`, the error is that of LTG-BERT's BNC code: overlapping spans make about 6 % of the labels wrong.
    For `short_span`, the error is that all tokens of a text, special tokens included, are masked if fewer tokens are
    maskable than must be masked. For all other kinds, the two versions have the same distribution, except for
    differences below 1e-6.
    """
    mask_probability: Annotated[float, Range(gt=0, lt=1)] = 0.15
    """Share of the tokens that the model must predict."""
    random_probability: Share = 0.1
    """Share of the predicted tokens that are replaced by a random token."""
    keep_probability: Share = 0.1
    """Share of the predicted tokens that stay visible in the input. All predicted tokens that neither stay visible nor
    become random tokens are replaced by [MASK].
    """
    at_least_one: bool = True
    """Mask at least one token of every sequence, as in the BabyLM revision of LTG-BERT's code; `false` reproduces
    ELC-BERT's code. The key has an effect only for the kind `short_span`, and for the kind `span` with the reading
    `corrected`.
    """
    special_tokens_maskable: bool = False
    """Allow masking of special tokens, such as those at the ends of a sequence (reduced-vocabulary study)."""
    final_mask_probability: Annotated[float, Range(gt=0, lt=1)] | None = None
    """Value of `mask_probability` at the end of training. During training, the share of masked tokens changes linearly
    from `mask_probability` to this share; `null` keeps the share constant.
    """

    def __post_init__(self) -> None:
        shown_otherwise = self.random_probability + self.keep_probability
        if shown_otherwise > 1:
            raise refused("random_probability + keep_probability", shown_otherwise, "a sum of at most 1")

    @property
    def hidden_share(self) -> str:
        """Share of masked tokens, as text for messages."""
        return f"{100 * self.mask_probability:g} %"

    def mask_rate(self, progress: float) -> float:
        """Return the share of tokens to predict at `progress`, the share (0 to 1) of the training steps that are
        finished.
        """
        first, last = self.mask_probability, self.final_mask_probability
        return first if last is None else first + (last - first) * progress


class MaskingRule(Protocol):
    """Interface of a masking rule, which chooses the tokens of an example to predict and replaces them in the input."""

    @property
    def needs_word_starts(self) -> bool:
        """True if the rule reads word starts."""

    def at(self, rate: float) -> "MaskingRule":
        """Return a copy of the rule with `rate` as the share of tokens to predict."""

    def __call__(
        self, ids: "np.ndarray", word_starts: "np.ndarray | None", generator: "np.random.Generator"
    ) -> "tuple[np.ndarray, np.ndarray]":
        """Return the input ids and the labels of the masked example, both int64 [n]. The label of a token that is not
        predicted is -100.

        `ids` int64 [n] include [CLS] and [SEP] but no padding; n is at most the sequence length. `word_starts` bool [n]
        is True at the first token of each word and at special tokens; it may be None if `needs_word_starts` is False.
        """


def masking_rule(
    settings: MaskingSettings, sequence_length: int, vocab_size: int, special: "SpecialIds"
) -> MaskingRule:
    """Return the masking rule of `settings` for sequences of at most `sequence_length` tokens.

    If the share of masked tokens changes in training, the rule masks the share of the last step. Raises TrainingError
    if all tokens of the vocabulary are protected from masking (`SpecialIds.n_protected`).
    """
    from hatchery.objectives.special_ids import Corruption

    if vocab_size <= special.n_protected:
        raise TrainingError(
            f"vocab_size: got {vocab_size}, expected more than the {special.n_protected} tokens that are never masked"
        )
    corruption = Corruption(special, vocab_size, settings.random_probability, settings.keep_probability)
    settings = replace(settings, mask_probability=settings.mask_rate(1.0), final_mask_probability=None)
    rule: MaskingRule = import_module(f"{__name__}.{settings.kind}").rule(settings, corruption, sequence_length)
    return rule
