"""Hidden tokens and next tokens in one run: masked next-token prediction beside causal language modelling.

Source: "GPT or BERT: why not both?" (Charpentier & Samuel, 2024). A hidden token is predicted at the position before
it, so both kinds of sequences ask the same of the same head, and differ in what a token may attend to and in what is
hidden. The text is read twice, once for each kind, at a pace of its own; every batch has a fixed share of causal
sequences, and the loss is that share of their mean plus the rest of the other mean. Ours: `[CLS]` and `[SEP]` around
documents, as in all packed sequences here; each mean is over the global batch, so that the number of processes does not
matter; the rate of masking does not change.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from hatchery.modeling.flops import PassShape
from hatchery.objectives.masking import MaskingSettings
from hatchery.settings.base import Range, require
from hatchery.settings.fields import SegmentsName
from hatchery.training.objective import HeldOutTerms, ModelKind, Objective, ObjectiveKeys, Term
from hatchery.training.objectives.causal import CausalObjective, CausalSettings
from hatchery.training.objectives.masked import MaskedObjective, MaskedSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.objectives.examples import TwoKinds
    from hatchery.tokenization.token_shards import TokenShards


@dataclass(frozen=True)
class HybridSettings(MaskingSettings, ObjectiveKeys):
    """How text becomes sequences of two kinds, and what is hidden in those that are not causal."""

    kinds: ClassVar[tuple[ModelKind, ...]] = ("masked", "causal")
    perplexity_per: ClassVar[str] = "per masked token"
    asked_for: ClassVar[str] = (
        "Hybrid models are asked for masked tokens at the positions before them. Their accuracy is in percent of these."
    )
    predicted_before: ClassVar[int] = 1

    causal_share: Annotated[float, Range(gt=0, lt=1)] = 1 / 16
    """Share of the sequences of a batch that are causal, at least one and not all; also the weight of their loss."""
    segments: SegmentsName = "packed"
    """How documents are cut into sequences; packed fills every sequence with documents that do not see each other."""
    task: Literal["hybrid"] = "hybrid"
    """What a model learns: hybrid guesses hidden tokens in some sequences and the next token in others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # What frames a document is predicted by nothing before it.
        require(not self.special_tokens_maskable, "special_tokens_maskable", True, "false with task hybrid")

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Share of the positions that something is predicted at."""
        hidden = self.mask_probability if mask_rate is None else mask_rate
        return (1 - self.causal_share) * hidden + self.causal_share

    def sequences_of_kinds(self, batch_size: int) -> tuple[int, ...]:
        """Sequences with hidden tokens, and causal ones: at least one of each."""
        causal = min(batch_size - 1, max(1, round(self.causal_share * batch_size)))
        return batch_size - causal, causal


class HybridObjective(Objective):
    """Hidden tokens at the positions before them, and next tokens."""

    columns = (("loss", "masked_accuracy"), ("next_token_loss", "next_token_accuracy"))
    settings: HybridSettings

    def examples(self, shards: "TokenShards", sequence_length: int) -> "TwoKinds":
        """Both kinds of a split; whoever takes the first `len` of them, as for held-out text, asks hidden tokens."""
        from hatchery.objectives.examples import TwoKinds

        causal = CausalObjective(CausalSettings(segments=self.settings.segments))
        return TwoKinds(self._hidden().examples(shards, sequence_length), causal.examples(shards, sequence_length))

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Hidden tokens, and next tokens."""
        import torch.nn.functional as F

        share = self.settings.causal_share
        following = batch["causal"][output.positions // batch["labels"].shape[1]]
        losses = F.cross_entropy(output.logits, output.targets, reduction="none")
        correct = output.logits.detach().argmax(dim=-1) == output.targets
        return (
            Term(losses.masked_fill(following, 0).sum(), ((correct & ~following).sum(),), 1 - share),
            Term(losses.masked_fill(~following, 0).sum(), ((correct & following).sum(),), share),
        )

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> HeldOutTerms:
        """The likelihood of hidden tokens, which held-out text is asked for alone."""
        return HeldOutTerms(self.terms(output, batch)[0].loss_sum)

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """The tokens of a split that masking can choose: int64 [V]."""
        return self._hidden().target_counts(shards)

    def for_comparison(self, common: Objective) -> Objective:
        """Hidden tokens, as `common` hides them."""
        return HybridObjective(_like(HybridSettings, common.settings))

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """The forward pass of a micro-batch: the two kinds have not as many labels."""
        from hatchery.tokenization.special_tokens import UNLABELLED

        rows, length = part["input_ids"].shape
        return PassShape(rows, length, int((part["labels"] != UNLABELLED).sum()))

    def _hidden(self) -> MaskedObjective:
        """The objective that hides tokens."""
        return MaskedObjective(_like(MaskedSettings, self.settings, short_probability=0.0))


def _like(cls: Any, settings: Any, **changes: Any) -> Any:
    """Settings of the class `cls` that mask and cut text as `settings` do."""
    shared = (*(field.name for field in fields(MaskingSettings)), "segments")
    return cls(**{name: getattr(settings, name) for name in shared}, **changes)


OBJECTIVE = HybridSettings, HybridObjective
