"""Hidden tokens and, where the settings ask for them, pairs of texts.

Source: LTG-BERT, Section 5, and the published code of the papers (docs/papers/ltg-bert.md, "Masking" and "Examples").
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from hatchery.objectives.masking import MaskingSettings
from hatchery.settings.base import RefusedError, Share
from hatchery.settings.fields import SegmentsName
from hatchery.training.objective import HeldOutTerms, ModelKind, Objective, ObjectiveKeys, Term

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.objectives.examples import MaskedExamples
    from hatchery.tokenization.token_shards import TokenShards


@dataclass(frozen=True)
class MaskedSettings(MaskingSettings, ObjectiveKeys):
    """How text becomes examples, which positions the model has to predict, and what it sees there."""

    kinds: ClassVar[tuple[ModelKind, ...]] = ("masked",)
    perplexity_per: ClassVar[str] = "per masked token"
    asked_for: ClassVar[str] = (
        "Fixed masks; common ones are the same for every model with a tokenizer. Accuracy in percent of masked tokens."
    )

    short_probability: Share = 0.1
    """Share of the sequences that are cut to a random shorter length."""
    segments: SegmentsName = "babylm"
    """How documents are cut into sequences; packed fills every sequence."""
    sentence_pairs: Literal["none", "document", "order"] = "none"
    """Two texts in a sequence, and a head that judges whether they belong together."""
    padding_in_loss: bool = False
    """Quirk of the reduced-vocabulary study: padding is predicted."""
    padding_attended: bool = False
    """Quirk of the reduced-vocabulary study: padding is attended to."""
    task: Literal["masked"] = "masked"
    """What a model learns: masked guesses hidden tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Share of the positions that something is predicted at."""
        return self.mask_probability if mask_rate is None else mask_rate

    @property
    def predicts_text_alone(self) -> bool:
        """Padding and special tokens represent no text."""
        return not (self.padding_in_loss or self.special_tokens_maskable)

    @property
    def model_values(self) -> dict[str, object]:
        """What the objective decides of a model's configuration."""
        return {"sentence_pair_head": self.sentence_pairs != "none"}


class MaskedObjective(Objective):
    """Hidden tokens, and whether two texts belong together."""

    columns = (("loss", "masked_accuracy"), ("pair_loss", "pair_accuracy"))
    settings: MaskedSettings

    def examples(self, shards: "TokenShards", sequence_length: int) -> "MaskedExamples":
        """Framed segments, pairs or packs of them, masked anew in every epoch."""
        from hatchery.objectives.examples import MaskedExamples, Padding, sequences_of
        from hatchery.objectives.masking import masking_rule
        from hatchery.objectives.sequences import Framer
        from hatchery.objectives.special_ids import SpecialIds

        settings, special = self.settings, SpecialIds.of(shards.special)
        rule = masking_rule(settings, sequence_length, shards.vocabulary_size, special)
        framer = Framer(special, rule.needs_word_starts)
        cut = (settings.segments, settings.sentence_pairs, settings.short_probability)
        sequences = sequences_of(shards, sequence_length, framer, *cut)
        padding = Padding(special.pad, sequence_length, settings.padding_in_loss, settings.padding_attended)
        return MaskedExamples(sequences, rule, padding, special)

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Tokens, and pairs."""
        tokens = Term(output.loss_sum, (output.n_correct,))
        return (
            (tokens,) if output.pair_logits is None else (tokens, pair_term(output.pair_logits, batch["pair_labels"]))
        )

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> HeldOutTerms:
        """The likelihood of hidden tokens, and pairs judged rightly."""
        if output.pair_logits is None:
            return HeldOutTerms(output.loss_sum)
        return HeldOutTerms(output.loss_sum, pair_term(output.pair_logits, batch["pair_labels"]).sums[0])

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """The tokens of a split that masking can choose: int64 [V]."""
        from hatchery.objectives.label_counts import maskable_tokens

        return maskable_tokens(shards)


def pair_term(logits: "Tensor", labels: "Tensor") -> Term:
    """Binary cross-entropies (nats) and right judgements of pairs: `logits` fp32 [B], `labels` int64 [B], 1 or 0."""
    import torch.nn.functional as F

    loss = F.binary_cross_entropy_with_logits(logits, labels.to(logits), reduction="sum")
    return Term(loss, (((logits.detach() > 0) == labels.bool()).sum(),))


OBJECTIVE = MaskedSettings, MaskedObjective
