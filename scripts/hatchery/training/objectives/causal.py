"""The causal objective: predict each token of a document from the tokens before this token. The end of the document is
also predicted, except with `segments: blocks`.

Source: "A Natural Bias for Language Generation Models", Figure 1. The paper does not specify which earlier tokens are
visible.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from hatchery.settings.base import require
from hatchery.settings.fields import ShiftedSegmentsName
from hatchery.training.objective import ModelKind, Objective, ObjectiveKeys, Term

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.objectives.blocks import BlockExamples
    from hatchery.objectives.masking import MaskingRule
    from hatchery.objectives.padded_examples import PaddedExamples
    from hatchery.tokenization.token_shards import TokenShards


@dataclass(frozen=True)
class CausalSettings(ObjectiveKeys):
    """Causal language modelling: every token is predicted from the tokens before it."""

    kinds: ClassVar[tuple[ModelKind, ...]] = ("causal",)
    perplexity_per: ClassVar[str] = "per token"
    asked_for: ClassVar[str] = (
        "Causal models predict every token and every end of a document. Accuracy is in percent of these predictions."
    )

    task: Literal["causal"] = "causal"
    """Objective: `causal` predicts the next token."""
    segments: ShiftedSegmentsName = "packed"
    """Method that splits documents into sequences. `packed` fills every sequence, so that every token is predicted once
    per epoch. `blocks` is GPT-BERT's packing: a sequence contains pieces of documents, each with a start token and
    without end token.
    """
    reset_attention: bool = True
    """Restrict attention to the same document in packed sequences; `false` also permits attention to earlier documents
    of the sequence.
    """

    def __post_init__(self) -> None:
        alone = self.segments == "packed" or self.reset_attention
        expected = f"true with segments {self.segments}, because only packed sequences can attend to earlier documents"
        require(alone, "reset_attention", self.reset_attention, expected)


class CausalObjective(Objective):
    """Predict the next token from all earlier tokens."""

    columns = (("loss", "next_token_accuracy"),)
    settings: CausalSettings

    def examples(self, shards: "TokenShards", sequence_length: int) -> "PaddedExamples":
        """Return the examples of a split.

        With `segments: packed`, every token is predicted once. With `segments: blocks`, randomly drawn pieces of
        documents fill the training sequences, so that some tokens are predicted several times. With all other values of
        `segments`, tokens may be omitted or repeated (see `objectives.segments`). Only `blocks` draws random numbers.
        """
        from hatchery.objectives.examples import SEGMENTS, NextTokenExamples
        from hatchery.objectives.padded_examples import Padding
        from hatchery.objectives.sequences import Framer
        from hatchery.objectives.special_ids import SpecialIds

        settings, special = self.settings, SpecialIds.of(shards.special)
        if settings.segments == "blocks":
            return block_examples(shards, sequence_length, None)
        pieces = SEGMENTS[settings.segments](shards, sequence_length)
        framer, padding = Framer(special, with_word_starts=False), Padding(special.pad, sequence_length)
        keeps_apart = settings.segments == "packed" and settings.reset_attention
        return NextTokenExamples(pieces, framer, padding, keeps_apart)

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return one loss term, with the loss of the predicted tokens and the number of correct predictions."""
        return (Term(output.loss_sum, (output.n_correct,)),)

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return the number of times that each token id is a target in a split: int64 [vocabulary size]. The ends of
        documents also count as targets, except with `segments: blocks`.
        """
        from hatchery.objectives.label_counts import next_token_counts
        from hatchery.objectives.special_ids import SpecialIds

        special = SpecialIds.of(shards.special)
        targets = (document.ids for document in shards if len(document.ids))
        counts = next_token_counts(targets, special.sep, special.cls, shards.vocabulary_size)
        if self.settings.segments == "blocks":
            # Sequences of `segments: blocks` have no end token, so the end token is never a target.
            counts[special.sep] = 0
        return counts

    def for_comparison(self, common: Objective) -> Objective:
        """Return a causal objective with default settings, except `segments: blocks`; a causal model has no masks, so
        `common` is not used.
        """
        return CausalObjective(CausalSettings(segments="blocks" if self.settings.segments == "blocks" else "packed"))


def block_examples(shards: "TokenShards", sequence_length: int, masking: "MaskingRule | None") -> "BlockExamples":
    """Return the examples of `segments: blocks`. Training sequences are filled with repeated pieces of documents;
    held-out sequences are not, so they may be shorter.
    """
    from hatchery.objectives.blocks import BlockExamples
    from hatchery.objectives.special_ids import SpecialIds
    from hatchery.tokenization.documents import TRAINING_SPLIT

    fills = shards.split == TRAINING_SPLIT
    return BlockExamples(shards, sequence_length, SpecialIds.of(shards.special), masking, fills)


OBJECTIVE = CausalSettings, CausalObjective
