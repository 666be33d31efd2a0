"""The hybrid objective: masked next-token prediction and causal language modelling in one run.

Source: "GPT or BERT: why not both?" (Charpentier & Samuel, 2024). A masked token is predicted at the position before
it, so masked and causal sequences use the same head. They differ only in the attention mask and in the masked tokens. A
fixed share of each batch consists of causal sequences. Each kind of sequence reads the whole training text in its own
epochs. By default, the loss is the mean causal loss times the share of causal sequences, plus the mean masked loss
times the share of masked sequences.

Hatchery's own choices: documents are framed by `[CLS]` and `[SEP]`, as in all packed sequences; mean losses are
computed over the global batch, so the loss does not depend on the number of processes. `segments: blocks` with `kind:
short_span` packs and masks text as in GPT-BERT's code (`objectives.blocks`).
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from hatchery.modeling.flops import PassShape
from hatchery.objectives.masking import MaskingSettings
from hatchery.settings.base import NonNegative, Range, Share, require
from hatchery.settings.fields import ShiftedSegmentsName
from hatchery.training.objective import Columns, HeldOutTerms, ModelKind, Objective, ObjectiveKeys, Term
from hatchery.training.objectives.causal import CausalObjective, CausalSettings, block_examples
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
    """Hybrid of masked and causal language modelling: `causal_share` of the sequences of a batch are causal, the others
    masked."""

    kinds: ClassVar[tuple[ModelKind, ...]] = ("masked", "causal")
    perplexity_per: ClassVar[str] = "per masked token"
    asked_for: ClassVar[str] = (
        "Hybrid models predict masked tokens at the positions before these tokens. Accuracy is in percent of masked "
        "tokens."
    )
    predicted_before: ClassVar[int] = 1

    causal_share: Share = 1 / 16
    """Share of causal sequences in a batch. A batch has at least one sequence of each kind, unless the share is 0 or
    1."""
    segments: ShiftedSegmentsName = "packed"
    """Method that splits documents into sequences. `packed` fills every sequence with documents that do not attend to
    each other. `blocks` is GPT-BERT's packing: a sequence contains pieces of documents, each with a start token and
    without end token.
    """
    task: Literal["hybrid"] = "hybrid"
    """Objective: `hybrid` predicts masked tokens in masked sequences and the next token in causal sequences."""
    causal_weight: Annotated[float, Range(gt=0, lt=1)] | None = None
    """Weight of the mean causal loss; the weight of the mean masked loss is 1 minus this number. `null` uses
    `causal_share`.
    """
    z_loss: NonNegative = 0.0
    """Weight of the z-loss, the mean squared log-sum-exp of the logits, which is added to the masked and the causal
    loss (GPT-BERT: 1e-4). 0 adds no z-loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # No token precedes a document's [CLS], so [CLS] cannot be predicted.
        expected = "false with task hybrid, because no token precedes [CLS]"
        require(not self.special_tokens_maskable, "special_tokens_maskable", True, expected)
        weighed = self.causal_weight is None or not self.one_kind
        require(
            weighed,
            "causal_weight",
            self.causal_weight,
            "null with causal_share 0 or 1, because there is only one loss",
        )

    @property
    def asked_as(self) -> str:
        """Name of the task by which this objective predicts held-out text: `causal` if all sequences are causal, else
        `hybrid`. A model with only causal sequences was not trained on masked tokens.
        """
        return "causal" if self.causal_share == 1 else self.task

    @property
    def learned(self) -> tuple[ModelKind, ...]:
        """Uses of a model (masked prediction, causal prediction) for which this objective trains the model: both uses,
        unless all sequences are masked or all are causal.
        """
        if not self.one_kind:
            return self.kinds
        return ("causal",) if self.causal_share else ("masked",)

    @property
    def one_kind(self) -> bool:
        """True if all sequences are masked or all are causal."""
        return self.causal_share in (0, 1)

    @property
    def weights(self) -> tuple[float, float]:
        """Weights of the mean masked loss and of the mean causal loss; the two weights sum to 1."""
        causal = self.causal_share if self.causal_weight is None else self.causal_weight
        return 1 - causal, causal

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Return the share of positions with a label if the share of masked tokens in masked sequences is `mask_rate`;
        None uses the share in the settings.
        """
        hidden = self.mask_probability if mask_rate is None else mask_rate
        return (1 - self.causal_share) * hidden + self.causal_share

    def sequences_of_kinds(self, batch_size: int) -> tuple[int, ...]:
        """Return the numbers of masked and of causal sequences in a batch.

        Each number is at least 1, unless all sequences are masked or all are causal.
        """
        if self.one_kind:
            return round((1 - self.causal_share) * batch_size), round(self.causal_share * batch_size)
        causal = min(batch_size - 1, max(1, round(self.causal_share * batch_size)))
        return batch_size - causal, causal


class HybridObjective(Objective):
    """The objective of hybrid training: masked tokens are predicted at the previous position, and causal sequences
    predict next tokens.
    """

    columns: Columns = (("loss", "masked_accuracy"), ("next_token_loss", "next_token_accuracy"))
    settings: HybridSettings

    def __init__(self, settings: HybridSettings) -> None:
        super().__init__(settings)
        if settings.one_kind:
            self.columns = (("loss", "next_token_accuracy" if settings.causal_share else "masked_accuracy"),)

    def examples(self, shards: "TokenShards", sequence_length: int) -> "TwoKinds":
        """Return the masked and the causal sequences of a split, in this order.

        Held-out scores use only the first half of these sequences. If the objective has only causal sequences, causal
        sequences replace the masked sequences in the first half.
        """
        from hatchery.objectives.examples import Shifted, TwoKinds
        from hatchery.objectives.masking import masking_rule
        from hatchery.objectives.special_ids import SpecialIds

        following, one_kind = self._following().examples(shards, sequence_length), self.settings.one_kind
        if self.settings.asked_as == "causal":
            return TwoKinds(following, following, one_kind)
        if self.settings.segments == "blocks":
            special = SpecialIds.of(shards.special)
            rule = masking_rule(self.settings, sequence_length, shards.vocabulary_size, special)
            return TwoKinds(block_examples(shards, sequence_length, rule), following, one_kind)
        return TwoKinds(Shifted(self._hidden().examples(shards, sequence_length)), following, one_kind)

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return two loss terms, first for masked tokens and then for the next tokens of causal sequences. If all
        sequences are masked or all are causal, return only the term of these sequences.
        """
        import torch.nn.functional as F

        kinds = self._kinds(output, batch)
        losses = F.cross_entropy(output.logits, output.targets, reduction="none")
        correct = output.logits.detach().argmax(dim=-1) == output.targets
        squares = output.logits.logsumexp(dim=-1).square() if self.settings.z_loss else None
        found = []
        for others, weight in zip(reversed(kinds), self.settings.weights, strict=True):
            penalty = None if squares is None else self.settings.z_loss * squares.masked_fill(others, 0).sum()
            loss_sum, right = losses.masked_fill(others, 0).sum(), (correct & ~others).sum()
            found.append(Term(loss_sum, (right,), weight, penalty))
        return (found[round(self.settings.causal_share)],) if self.settings.one_kind else tuple(found)

    def label_weights(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "tuple[Tensor, ...]":
        """Return for each loss term (masked, then causal) a mask over the batch's labels: True for the labels in this
        kind of sequence, otherwise False.
        """
        kinds = self._kinds(output, batch)
        return (kinds[round(self.settings.causal_share)],) if self.settings.one_kind else kinds

    def _kinds(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "tuple[Tensor, Tensor]":
        """Return two masks over the labels of a batch, bool [number of labels]: True for labels in masked sequences,
        and True for labels in causal sequences.
        """
        following = batch["causal"][output.positions // batch["labels"].shape[1]]
        return ~following, following

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> HeldOutTerms:
        """Return the negative log-likelihood of the predicted tokens, without the z-loss."""
        import torch.nn.functional as F

        return HeldOutTerms(F.cross_entropy(output.logits, output.targets, reduction="none").sum())

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return the number of times that each token id of a split can be a target in the held-out loss: int64
        [vocabulary size]. The targets are the tokens that can be masked or, if all sequences are causal, the next
        tokens.
        """
        asked = self._following() if self.settings.asked_as == "causal" else self._hidden()
        return asked.target_counts(shards)

    def for_comparison(self, common: Objective) -> Objective:
        """Return the hybrid objective with the masking settings of `common`, the objective of a comparison between
        models; or the causal objective if all sequences are causal.
        """
        if self.settings.asked_as == "causal":
            return self._following().for_comparison(common)
        own = self.settings.segments
        changes = {"segments": own} if own == "blocks" else {}
        return HybridObjective(_like(HybridSettings, common.settings, **changes))

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """Return the sizes of a micro-batch's forward pass. The FLOPs of the pass are computed from these sizes.

        The labels of this micro-batch are counted, and `labelled_per_sequence` is not used.
        """
        from hatchery.tokenization.special_tokens import UNLABELLED

        rows, length = part["input_ids"].shape
        return PassShape(rows, length, int((part["labels"] != UNLABELLED).sum()))

    def _following(self) -> CausalObjective:
        return CausalObjective(CausalSettings(segments=self.settings.segments))

    def _hidden(self) -> MaskedObjective:
        changes = {"segments": "packed"} if self.settings.segments == "blocks" else {}
        return MaskedObjective(_like(MaskedSettings, self.settings, short_probability=0.0, **changes))


def _like(cls: Any, settings: Any, **changes: Any) -> Any:
    """Return settings of the class `cls` with the masking keys and the key `segments` of `settings`; `changes` replace
    these values.
    """
    shared = (*(field.name for field in fields(MaskingSettings)), "segments")
    return cls(**{name: getattr(settings, name) for name in shared} | changes)


OBJECTIVE = HybridSettings, HybridObjective
