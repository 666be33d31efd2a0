"""Which tokens of an example are to be predicted, and how the input hides them: settings, and the rules, a file each.

Source: LTG-BERT, Section 5, and the published code: docs/papers/ltg-bert.md, "Masking"; docs/papers/elc-bert.md,
"Masking"; docs/papers/reduced-vocabulary.md, "Masking", whose always-[MASK] is `kind` subword with `random_probability`
and `keep_probability` 0 and `special_tokens_maskable`. A rule is a pure function of the tokens and of the generator
handed to it. Its file has a function `rule`, which makes it of the settings.
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
"""What can be masked together; whoever plans knows it without a rule."""
if TYPE_CHECKING:
    MaskingKind = str
else:
    MaskingKind = Literal[KINDS]


@dataclass(frozen=True)
class MaskingSettings(Settings):
    """Which tokens of a sequence have to be predicted, and what is seen in their places."""

    kind: MaskingKind = "span"
    """What is masked together."""
    reading: ReadingName = "corrected"
    """as_published repeats the label defect of LTG-BERT's BNC code, whose overlapping spans label some 6 % wrongly."""
    mask_probability: Annotated[float, Range(gt=0, lt=1)] = 0.15
    """Share of the tokens that the model has to predict."""
    random_probability: Share = 0.1
    """Share of these that are shown as a random token."""
    keep_probability: Share = 0.1
    """Share of these that are shown as they are; the rest is shown as [MASK]."""
    at_least_one: bool = True
    """Corrected spans ask for at least one token, as in the BabyLM revision; the ELC-BERT code does not."""
    special_tokens_maskable: bool = False
    """Whether the tokens that frame a sequence can be masked (reduced-vocabulary study)."""
    final_mask_probability: Annotated[float, Range(gt=0, lt=1)] | None = None
    """mask_probability at the end of training, to which it falls or rises linearly; null keeps it."""

    def __post_init__(self) -> None:
        shown_otherwise = self.random_probability + self.keep_probability
        if shown_otherwise > 1:
            raise refused("random_probability and keep_probability", shown_otherwise, "together at most 1")

    @property
    def hidden_share(self) -> str:
        """The share of the tokens that is hidden, for people."""
        return f"{100 * self.mask_probability:g} %"

    def mask_rate(self, progress: float) -> float:
        """The share of the tokens to be predicted where so much, 0 to 1, of the steps is done."""
        first, last = self.mask_probability, self.final_mask_probability
        return first if last is None else first + (last - first) * progress


class MaskingRule(Protocol):
    """Chooses the tokens of one example that are to be predicted, and hides them."""

    @property
    def needs_word_starts(self) -> bool:
        """Whether the rule has to know where words start."""

    def at(self, rate: float) -> "MaskingRule":
        """The same rule with another share of tokens to be predicted."""

    def __call__(
        self, ids: "np.ndarray", word_starts: "np.ndarray | None", generator: "np.random.Generator"
    ) -> "tuple[np.ndarray, np.ndarray]":
        """The corrupted example: (input ids, labels), both int64 [n], labels -100 where nothing is to be predicted.

        `ids` int64 [n] are framed with [CLS] and [SEP] and carry no padding, n at most the sequence length.
        `word_starts` bool [n] is True at the first token of each word and at special tokens; it may be None where
        `needs_word_starts` is False.
        """


def masking_rule(
    settings: MaskingSettings, sequence_length: int, vocab_size: int, special: "SpecialIds"
) -> MaskingRule:
    """The rule that `settings` asks for, at sequences of nominally `sequence_length` tokens.

    Where the share of tokens to be predicted changes in training, it is that of the end. Raises TrainingError when the
    vocabulary has no ordinary token.
    """
    from hatchery.objectives.special_ids import Corruption

    if vocab_size <= special.n_protected:
        raise TrainingError(f"vocab_size: got {vocab_size}, expected more than {special.n_protected}")
    corruption = Corruption(special, vocab_size, settings.random_probability, settings.keep_probability)
    settings = replace(settings, mask_probability=settings.mask_rate(1.0), final_mask_probability=None)
    rule: MaskingRule = import_module(f"{__name__}.{settings.kind}").rule(settings, corruption, sequence_length)
    return rule
