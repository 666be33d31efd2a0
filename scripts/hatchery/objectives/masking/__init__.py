"""Choice of the predicted tokens of an example and their replacement in the input: settings, and one file per rule.

Source: LTG-BERT, Section 5, and the published code: docs/papers/ltg-bert.md, "Masking"; docs/papers/elc-bert.md,
"Masking"; docs/papers/reduced-vocabulary.md, "Masking", whose always-[MASK] is `kind` subword with `random_probability`
and `keep_probability` 0 and `special_tokens_maskable`. A rule is a pure function of the tokens and of its generator
argument. The function `rule` of its file creates it from the settings.
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
"""Names of the units of masking; planning uses them without importing a rule."""
if TYPE_CHECKING:
    MaskingKind = str
else:
    MaskingKind = Literal[KINDS]


@dataclass(frozen=True)
class MaskingSettings(Settings):
    """The tokens of a sequence that are predicted, and their replacement in the input."""

    kind: MaskingKind = "span"
    """Unit that is masked as a whole."""
    reading: ReadingName = "corrected"
    """Version of the masking. as_published reproduces the label defect of LTG-BERT's BNC code, in which overlapping
    spans give some 6 % wrong labels; corrected has no such labels."""
    mask_probability: Annotated[float, Range(gt=0, lt=1)] = 0.15
    """Share of the tokens that the model must predict."""
    random_probability: Share = 0.1
    """Share of the predicted tokens that are replaced by a random token."""
    keep_probability: Share = 0.1
    """Share of the predicted tokens that remain visible; all other predicted tokens are replaced by [MASK] or a random
    token."""
    at_least_one: bool = True
    """Mask at least one token of every sequence, as in the BabyLM revision; the ELC-BERT code does not. Applies to kind
    short_span, and to kind span with reading corrected."""
    special_tokens_maskable: bool = False
    """Allow masking of the special tokens at the ends of a sequence (reduced-vocabulary study)."""
    final_mask_probability: Annotated[float, Range(gt=0, lt=1)] | None = None
    """mask_probability at the end of training, reached linearly; null keeps mask_probability constant."""

    def __post_init__(self) -> None:
        shown_otherwise = self.random_probability + self.keep_probability
        if shown_otherwise > 1:
            raise refused("random_probability and keep_probability", shown_otherwise, "together at most 1")

    @property
    def hidden_share(self) -> str:
        """Return the share of hidden tokens as text for readers."""
        return f"{100 * self.mask_probability:g} %"

    def mask_rate(self, progress: float) -> float:
        """Return the share of tokens to predict at `progress`, 0 to 1, of the steps."""
        first, last = self.mask_probability, self.final_mask_probability
        return first if last is None else first + (last - first) * progress


class MaskingRule(Protocol):
    """Chooses the predicted tokens of one example, and hides them."""

    @property
    def needs_word_starts(self) -> bool:
        """Return whether the rule needs word starts."""

    def at(self, rate: float) -> "MaskingRule":
        """Return the same rule with another share of tokens to predict."""

    def __call__(
        self, ids: "np.ndarray", word_starts: "np.ndarray | None", generator: "np.random.Generator"
    ) -> "tuple[np.ndarray, np.ndarray]":
        """Return the corrupted example: (input ids, labels), both int64 [n], with label -100 at tokens without a
        prediction.

        `ids` int64 [n] include [CLS] and [SEP] but no padding; n is at most the sequence length. `word_starts` bool [n]
        is True at the first token of each word and at special tokens; it may be None if `needs_word_starts` is False.
        """


def masking_rule(
    settings: MaskingSettings, sequence_length: int, vocab_size: int, special: "SpecialIds"
) -> MaskingRule:
    """Return the rule of `settings` for a nominal `sequence_length`.

    If the share of tokens to predict changes in training, the rule has the final share. Raises TrainingError if the
    vocabulary has no ordinary token.
    """
    from hatchery.objectives.special_ids import Corruption

    if vocab_size <= special.n_protected:
        raise TrainingError(f"vocab_size: got {vocab_size}, expected more than {special.n_protected}")
    corruption = Corruption(special, vocab_size, settings.random_probability, settings.keep_probability)
    settings = replace(settings, mask_probability=settings.mask_rate(1.0), final_mask_probability=None)
    rule: MaskingRule = import_module(f"{__name__}.{settings.kind}").rule(settings, corruption, sequence_length)
    return rule
