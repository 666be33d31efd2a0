"""The settings of the training objectives: how text becomes examples, and what a model has to predict there.

Source of the masked one: LTG-BERT, Section 5, and the published code of the papers (docs/papers/ltg-bert.md, "Masking";
docs/papers/elc-bert.md, "Masking"; docs/papers/reduced-vocabulary.md, "Masking"). The last one's always-[MASK] is
`kind` subword with `random_probability` and `keep_probability` 0 and `special_tokens_maskable`. Source of the causal
one: "A Natural Bias for Language Generation Models", Figure 1, whose text leaves the contexts open. Source of
translation: its Section 4.1 and Appendices A and B.3; docs/papers/natural-bias.md, "Data", "Training" and "Away from
the unigram distribution".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from hatchery.objectives.masking import KINDS
from hatchery.settings.base import (
    Count,
    Natural,
    Positive,
    Range,
    ReadingName,
    RefusedError,
    Settings,
    Share,
    ShareBelowOne,
    require,
)
from hatchery.settings.fields import ChosenBy
from hatchery.typed import build

SegmentsName = Literal["babylm", "bnc", "packed", "documents"]
if TYPE_CHECKING:
    MaskingKind = str
else:
    MaskingKind = Literal[KINDS]
DEFAULT_TASK = "masked"
"""The task of an objective that names none."""


class ObjectiveKeys(Settings):
    """What the settings of every objective offer."""

    causal: ClassVar[bool] = False
    """Whether a finished model reads text from left to right, where nothing else is said."""

    def sequences_of_step(self, batch_size: int, sequence_length: int) -> float:
        """How many sequences of that length a step has: as many as the batch size says, unless that counts tokens."""
        return batch_size

    @property
    def texts_of_sequence(self) -> int:
        """How many texts of that length a sequence is made of: one, or a source and its target."""
        return 1

    def early_evaluations_at(self, interval: int) -> tuple[int, ...]:
        """Steps after which development text is scored besides those at the interval; 0 is before the first."""
        return ()


@dataclass(frozen=True)
class MaskingSettings(ObjectiveKeys):
    """How text becomes examples, which positions the model has to predict, and what it sees there."""

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
    short_probability: Share = 0.1
    """Share of the sequences that are cut to a random shorter length."""
    at_least_one: bool = True
    """Corrected spans ask for at least one token, as in the BabyLM revision; the ELC-BERT code does not."""
    special_tokens_maskable: bool = False
    """Whether the tokens that frame a sequence can be masked (reduced-vocabulary study)."""
    segments: SegmentsName = "babylm"
    """How documents are cut into sequences; packed fills every sequence."""
    sentence_pairs: Literal["none", "document", "order"] = "none"
    """Two texts in a sequence, and a head that judges whether they belong together."""
    padding_in_loss: bool = False
    """Quirk of the reduced-vocabulary study: padding is predicted."""
    padding_attended: bool = False
    """Quirk of the reduced-vocabulary study: padding is attended to."""
    task: Literal["masked"] = "masked"
    """What a model learns: masked guesses hidden tokens, causal the next one, translation a sentence in another
    language."""

    def __post_init__(self) -> None:
        shown_otherwise = self.random_probability + self.keep_probability
        require(shown_otherwise <= 1, "random_probability and keep_probability", shown_otherwise, "together at most 1")
        whole = self.segments not in ("packed", "documents")
        if self.sentence_pairs != "none" and not whole:
            raise RefusedError(
                "sentence_pairs",
                f"got {self.sentence_pairs!r} with segments {self.segments!r}, expected none: pairs are made of whole "
                "sentences; use the segments babylm or bnc",
            )
        for key in ("padding_in_loss", "padding_attended"):
            if getattr(self, key) and self.segments == "packed":
                raise RefusedError(key, "got true, expected false: packed sequences have no padding")

    @property
    def labelled_share(self) -> float:
        """Share of the positions that something is predicted at."""
        return self.mask_probability

    @property
    def model_values(self) -> dict[str, Any]:
        """What the objective decides of a model's configuration."""
        return {"sentence_pair_head": self.sentence_pairs != "none"}


@dataclass(frozen=True)
class CausalSettings(ObjectiveKeys):
    """How text becomes examples for a model that predicts every token from those before it."""

    task: Literal["causal"] = "causal"
    """What a model learns: masked guesses hidden tokens, causal the next one, translation a sentence in another
    language."""
    segments: SegmentsName = "packed"
    """How documents are cut into sequences; packed fills every sequence, so that every token is learned once an
    epoch."""
    reset_attention: bool = True
    """Whether packed documents see themselves alone, or also those before them in their sequence."""

    causal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        alone = self.segments == "packed" or self.reset_attention
        require(alone, "reset_attention", self.reset_attention, "true with segments that hold one document each")

    @property
    def labelled_share(self) -> float:
        """Share of the positions that something is predicted at."""
        return 1.0

    @property
    def model_values(self) -> dict[str, Any]:
        """What the objective decides of a model's configuration."""
        return {"sentence_pair_head": False}


@dataclass(frozen=True)
class SearchSettings(Settings):
    """How translations are searched for."""

    beam: Count = 5
    """Translations that are followed at once."""
    length_factor: Positive = 1.2
    """A translation has at most so many times the tokens of its source, and `extra_length` more."""
    extra_length: Natural = 10
    """So many tokens are added to that."""

    def longest(self, source_tokens: int) -> int:
        """Most tokens of a translation, its end counted, of a source of so many tokens without its end."""
        return max(1, int(self.length_factor * source_tokens) + self.extra_length)


@dataclass(frozen=True)
class TranslationSettings(ObjectiveKeys):
    """How a model learns to translate the pairs of a parallel corpus. A step's `batch_size` are target tokens, and
    `sequence_length` the most tokens of a side, its end counted."""

    task: Literal["translation"] = "translation"
    """What a model learns: masked guesses hidden tokens, causal the next one, translation a sentence in another
    language."""
    direction: Literal["forward", "backward"] = "forward"
    """forward translates the first language of the corpus into the second, backward the second into the first."""
    longest_ratio: Annotated[float, Range(ge=1)] | None = 1.5
    """Pairs of which one side is more than so many times longer are left out of training; null keeps them."""
    label_smoothing: ShareBelowOne = 0.1
    """Share of the target distribution that is spread evenly over the vocabulary; the development loss has none."""
    unigram_penalty: ShareBelowOne = 0.0
    """How strongly predictions are kept away from the unigram distribution of the targets (the study's lambda)."""
    search: SearchSettings = field(default_factory=SearchSettings)
    """How translations are searched for."""
    development_translations: Natural | None = None
    """At most so many development pairs are translated at every evaluation, for BLEU and chrF; null translates all of
    them, 0 none."""
    early_evaluations: Natural = 2
    """Development text is scored before the first step, too, and after the interval was halved so many times: with an
    interval of 1,000 after 250 and 500 steps; 0 leaves all that out."""

    @property
    def labelled_share(self) -> float:
        """Share of the positions that something is predicted at."""
        return 1.0

    @property
    def model_values(self) -> dict[str, Any]:
        """What the objective decides of a model's configuration."""
        return {"sentence_pair_head": False}

    def sequences_of_step(self, batch_size: int, sequence_length: int) -> float:
        """About how many full sequences a step of so many tokens is worth."""
        return batch_size / sequence_length

    @property
    def texts_of_sequence(self) -> int:
        """Source and target."""
        return 2

    def early_evaluations_at(self, interval: int) -> tuple[int, ...]:
        """Before the first step, and after the interval's half, its quarter and so on."""
        halvings = self.early_evaluations
        return (0, *(interval >> times for times in range(1, halvings + 1) if interval >> times)) if halvings else ()


AnyObjective = MaskingSettings | CausalSettings | TranslationSettings
ObjectiveSettings = Annotated[AnyObjective, ChosenBy("task", default=DEFAULT_TASK)]
"""The objective of a run."""


def objective_settings(values: Mapping[str, Any], where: str) -> AnyObjective:
    """The objective in `values`, which stand at the key `where`. Raises ConfigError like `build`."""
    build_any: Any = build
    built: AnyObjective = build_any(ObjectiveSettings, values, where)
    return built
