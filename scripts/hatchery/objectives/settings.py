"""Settings that objectives are made of: how text is cut into sequences, and how tokens are masked.

An objective itself is a file of `training/objectives/`. Source of masking: LTG-BERT, Section 5, and the published code
of the papers (docs/papers/ltg-bert.md, "Masking"; docs/papers/elc-bert.md, "Masking";
docs/papers/reduced-vocabulary.md, "Masking"). The last one's always-[MASK] is `kind` subword with `random_probability`
and `keep_probability` 0 and `special_tokens_maskable`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from hatchery.objectives.masking import KINDS
from hatchery.settings.base import Range, ReadingName, Settings, Share, refused

SegmentsName = Literal["babylm", "bnc", "packed", "documents"]
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

    def __post_init__(self) -> None:
        shown_otherwise = self.random_probability + self.keep_probability
        if shown_otherwise > 1:
            raise refused("random_probability and keep_probability", shown_otherwise, "together at most 1")
