"""Masking: choice of the tokens to predict, and their replacement in the input; settings, and one file per rule.

Source: LTG-BERT, Section 5, and the published code: docs/papers/ltg-bert.md, "Masking"; docs/papers/elc-bert.md,
"Masking"; docs/papers/reduced-vocabulary.md, "Masking". The reduced-vocabulary study replaces all chosen tokens by
[MASK]: `kind` subword with `random_probability` 0, `keep_probability` 0 and `special_tokens_maskable`. A rule is a
function of the tokens and a random generator. The function `rule` of its file creates the rule from the settings.
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
"""Names of the rules; planning needs the names without importing the rules."""
if TYPE_CHECKING:
    MaskingKind = str
else:
    MaskingKind = Literal[KINDS]


@dataclass(frozen=True)
class MaskingSettings(Settings):
    """The tokens that are predicted, and their replacement in the input."""

    kind: MaskingKind = "span"
    """Unit of masking: all tokens of a unit are masked together."""
    reading: ReadingName = "corrected"
    """Version of the masking. as_published reproduces the defect of LTG-BERT's BNC code, in which overlapping spans
    make about 6 % of the labels wrong; corrected fixes this defect."""
    mask_probability: Annotated[float, Range(gt=0, lt=1)] = 0.15
    """Share of the tokens that the model must predict."""
    random_probability: Share = 0.1
    """Share of the predicted tokens that are replaced by a random token."""
    keep_probability: Share = 0.1
    """Share of the predicted tokens that stay visible. All other predicted tokens are replaced by [MASK] or a random
    token."""
    at_least_one: bool = True
    """Mask at least one token of every sequence, as in the BabyLM revision; false is the ELC-BERT code. Applies to kind
    short_span, and to kind span with reading corrected."""
    special_tokens_maskable: bool = False
    """Allow masking of the special tokens at the ends of a sequence (reduced-vocabulary study)."""
    final_mask_probability: Annotated[float, Range(gt=0, lt=1)] | None = None
    """mask_probability at the end of training, reached linearly; null keeps mask_probability constant."""

    def __post_init__(self) -> None:
        shown_otherwise = self.random_probability + self.keep_probability
        if shown_otherwise > 1:
            raise refused("random_probability + keep_probability", shown_otherwise, "a sum of at most 1")

    @property
    def hidden_share(self) -> str:
        """Share of hidden tokens, as text for readers."""
        return f"{100 * self.mask_probability:g} %"

    def mask_rate(self, progress: float) -> float:
        """Return the share of tokens to predict at `progress`, the share (0 to 1) of finished steps."""
        first, last = self.mask_probability, self.final_mask_probability
        return first if last is None else first + (last - first) * progress


class MaskingRule(Protocol):
    """Interface of a masking rule, which chooses the tokens to predict in an example and hides them."""

    @property
    def needs_word_starts(self) -> bool:
        """True if the rule reads word starts."""

    def at(self, rate: float) -> "MaskingRule":
        """Return the rule with another share of tokens to predict."""

    def __call__(
        self, ids: "np.ndarray", word_starts: "np.ndarray | None", generator: "np.random.Generator"
    ) -> "tuple[np.ndarray, np.ndarray]":
        """Return the masked example: (input ids, labels), both int64 [n], with label -100 at tokens without prediction.

        `ids` int64 [n] include [CLS] and [SEP] but no padding; n is at most the sequence length. `word_starts` bool [n]
        is True at the first token of each word and at special tokens; it may be None if `needs_word_starts` is False.
        """


def masking_rule(
    settings: MaskingSettings, sequence_length: int, vocab_size: int, special: "SpecialIds"
) -> MaskingRule:
    """Return the rule of `settings` for sequences of at most `sequence_length` tokens.

    If the share of tokens to predict changes in training, the rule has the last share. Raises TrainingError if the
    vocabulary has only special tokens.
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
