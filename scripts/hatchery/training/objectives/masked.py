"""The masked objective: predict masked tokens. If `sentence_pairs` is set, also predict whether two texts belong
together.

Source: LTG-BERT, Section 5, and LTG-BERT's published code (docs/papers/ltg-bert.md, "Masking" and "Examples").
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from hatchery.modeling.flops import PassShape
from hatchery.objectives.mask_rates import MASKABLE, WEIGHTS, MaskRates, TokenPreference
from hatchery.objectives.masking import MaskingSettings
from hatchery.settings.base import RefusedError, Share, ShareAboveZero, conflict, omitted_at_default, refused, require
from hatchery.settings.fields import SegmentsName
from hatchery.tokenization.special_tokens import UNLABELLED
from hatchery.training.objective import HeldOutTerms, ModelKind, Objective, ObjectiveKeys, Term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.objectives.examples import MaskedExamples
    from hatchery.tokenization.token_shards import TokenShards

BOUND = "bound of masked diffusion"
"""Name, in tables and figures, of the held-out loss of models that are trained by masked diffusion."""


@dataclass(frozen=True)
class MaskedSettings(MaskingSettings, ObjectiveKeys):
    """Settings of masked language modelling: how examples are made from the text, which tokens are hidden, and which
    labels are predicted.
    """

    kinds: ClassVar[tuple[ModelKind, ...]] = ("masked",)
    perplexity_per: ClassVar[str] = "per masked token"
    asked_for: ClassVar[str] = (
        "Masks are fixed; common masks are the same for every model with the same tokenizer. Accuracy is in percent of "
        "masked tokens."
    )

    short_probability: Share = 0.1
    """Share of the sequences that are truncated to a random shorter length. Packed sequences are never truncated."""
    segments: SegmentsName = "babylm"
    """Method that splits documents into sequences. `babylm`: sentences until a sentence does not fit; this sentence is
    truncated, and repeated at the beginning of the next sequence. `bnc`: for each sentence, a sequence that begins with
    this sentence. `documents`: the beginning of each document. `packed`: consecutive pieces of documents that fill
    every sequence.
    """
    sentence_pairs: Literal["none", "document", "order"] = "none"
    """Put two texts into a sequence, and train a head that predicts whether the texts belong together. `document`: the
    second text follows the first text, or comes from another document. `order`: two neighbouring texts are in their
    original order, or swapped. `none` puts one text into a sequence.
    """
    padding_in_loss: bool = False
    """Predict padding tokens in addition to masked tokens, as the reduced-vocabulary study does by mistake."""
    padding_attended: bool = False
    """Attend to padding tokens, as the reduced-vocabulary study does by mistake."""
    task: Literal["masked"] = "masked"
    """Objective: `masked` predicts masked tokens."""
    rates: MaskRates | None = omitted_at_default(None)
    """Distribution from which each sequence draws its share of masked tokens, and weights of the labels. This setting
    replaces `mask_probability`. Masked diffusion is `{weights: diffusion}`. `null` uses `mask_probability`.
    """
    preference: TokenPreference | None = omitted_at_default(None)
    """Preference for hiding certain subwords in training; `null` hides all subwords with equal probability."""
    labelled_share: ShareAboveZero = omitted_at_default(1.0)
    """Share of the masked tokens that are predicted in training; all other masked tokens have no label."""

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
                raise refused(key, True, "false, because packed sequences have no padding")

        self._check_rates()

    def _check_rates(self) -> None:
        """Refuse values of `rates`, `preference` and `labelled_share` that contradict other keys."""
        if self.rates is not None:
            for key, default in (("mask_probability", 0.15), ("final_mask_probability", None)):
                if getattr(self, key) != default:
                    reason = "`rates` sets the shares of masked tokens"
                    raise conflict(key, getattr(self, key), "`rates`", reason)
        diffusion = self.rates is not None and self.rates.weights == "diffusion"
        for key, asked in (("rates", diffusion), ("preference", self.preference is not None)):
            if not asked:
                continue
            value = getattr(self, key)
            require(
                self.kind == "subword",
                "kind",
                self.kind,
                f"subword with `{key}`, because each token is hidden separately",
            )
            require(self.sentence_pairs == "none", "sentence_pairs", self.sentence_pairs, f"none with {key}")
            odd = self.padding_in_loss or self.special_tokens_maskable
            require(not odd, key, value, "null with padding_in_loss or special_tokens_maskable")
        if diffusion:
            for key in ("random_probability", "keep_probability"):
                value = getattr(self, key)
                require(value == 0, key, value, "0 with diffusion weights, because every masked token becomes [MASK]")
            require(
                self.preference is None,
                "preference",
                self.preference,
                "null with diffusion weights, because a probability of hiding that depends on the token would give the "
                "model information about the masked token",
            )
        if self.preference is not None and self.preference.adapts and self.labelled_share < 1:
            raise refused("labelled_share", self.labelled_share, "1 with a `preference` by loss or accuracy")

    @property
    def is_bound(self) -> bool:
        """True if the held-out loss is masked diffusion's upper bound of the negative log-likelihood."""
        return self.rates is not None and self.rates.weights == "diffusion" and self.rates.covers_all

    @property
    def hidden_share(self) -> str:
        """Share of masked tokens, as text for tables and figures."""
        if self.rates is None:
            return super().hidden_share
        bound = f", {BOUND}" if self.is_bound else f", {self.rates.weights} weights"
        return f"{100 * self.rates.lowest:g} to {100 * self.rates.highest:g} %{bound},"

    def mask_rate(self, progress: float) -> float:
        """Return the share of masked tokens at `progress`, the share (0 to 1) of finished steps. If each sequence draws
        its own share (`rates`), return the mean of the distribution of these shares.
        """
        return super().mask_rate(progress) if self.rates is None else self.rates.mean

    def labelled_share_at(self, mask_rate: float | None) -> float:
        """Return the share of positions with a label."""
        return (self.mask_rate(1.0) if mask_rate is None else mask_rate) * self.labelled_share

    @property
    def predicts_text_alone(self) -> bool:
        """True if neither padding nor special tokens are predicted."""
        return not (self.padding_in_loss or self.special_tokens_maskable)

    @property
    def model_values(self) -> dict[str, object]:
        """Return the keys that the objective determines in the model configuration, with their values."""
        return {"sentence_pair_head": self.sentence_pairs != "none"}


class MaskedObjective(Objective):
    """Predict masked tokens. If `sentence_pairs` is set, also predict whether two texts belong together."""

    columns = (("loss", "masked_accuracy"), ("pair_loss", "pair_accuracy"))
    settings: MaskedSettings
    seen: "Callable[[Tensor, Tensor, Tensor], None] | None" = None
    """Function that receives the targets of every training batch, their losses, and which predictions were correct."""

    def examples(self, shards: "TokenShards", sequence_length: int) -> "MaskedExamples":
        """Return examples with new masks in every epoch: single segments, pairs of segments, or packed segments."""
        import numpy as np

        from hatchery.objectives.examples import MaskedExamples, sequences_of
        from hatchery.objectives.label_counts import maskable_tokens
        from hatchery.objectives.masking import MaskingRule, masking_rule
        from hatchery.objectives.masking.subword import SubwordMasking
        from hatchery.objectives.padded_examples import Padding
        from hatchery.objectives.sequences import Framer
        from hatchery.objectives.special_ids import SpecialIds
        from hatchery.objectives.token_preferences import PreferredMasking, frequency_preferences
        from hatchery.tokenization.documents import TRAINING_SPLIT

        settings, special = self.settings, SpecialIds.of(shards.special)
        rule: MaskingRule = masking_rule(
            replace(settings, rates=None), sequence_length, shards.vocabulary_size, special
        )
        # Mask preferred tokens more often only in training text, so that the masks of held-out text do not depend on
        # the model.
        trains = shards.split == TRAINING_SPLIT
        preference = settings.preference if trains else None
        if preference is not None:
            assert isinstance(rule, SubwordMasking), (
                "`preference` without subword masking passed the check of the settings"
            )
            known = None if preference.adapts else maskable_tokens(shards)
            equal = np.ones(shards.vocabulary_size)
            values = equal if known is None else frequency_preferences(known, preference.power)
            rule = PreferredMasking(rule.mask_probability, rule.corruption, values)
        framer = Framer(special, rule.needs_word_starts)
        cut = (settings.segments, settings.sentence_pairs, settings.short_probability)
        sequences = sequences_of(shards, sequence_length, framer, *cut)
        padding = Padding(special.pad, sequence_length, settings.padding_in_loss, settings.padding_attended)
        share = settings.labelled_share if trains else 1.0
        adapts = preference is not None and preference.adapts
        return MaskedExamples(sequences, rule, padding, special, settings.rates, share, adapts)

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return the loss term of the masked tokens and, if `sentence_pairs` is set, the loss term of the sentence
        pairs.
        """
        if self.seen is not None or WEIGHTS in batch:
            return (self._token_term(output, batch),)
        tokens = Term(output.loss_sum, (output.n_correct,))
        return (
            (tokens,) if output.pair_logits is None else (tokens, pair_term(output.pair_logits, batch["pair_labels"]))
        )

    def label_weights(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> "tuple[Tensor, ...]":
        """Return the label weights of the batch; 1 for each label if the batch has no weights."""
        if WEIGHTS not in batch:
            return super().label_weights(output, batch)
        return (batch[WEIGHTS].flatten()[output.positions],)

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> HeldOutTerms:
        """Return the summed negative log-likelihood of masked tokens (for masked diffusion, its upper bound), and the
        number of sentence pairs whose label is predicted correctly.
        """
        if WEIGHTS in batch:
            return HeldOutTerms(self._token_term(output, batch).loss_sum, counted=batch[MASKABLE].sum())
        if output.pair_logits is None:
            return HeldOutTerms(output.loss_sum)
        return HeldOutTerms(output.loss_sum, pair_term(output.pair_logits, batch["pair_labels"]).sums[0])

    def _token_term(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> Term:
        """Return the loss term of the masked tokens. If the batch has label weights, the losses and the correct
        predictions are multiplied by these weights before they are summed. If the function `seen` is set, call it with
        the targets, the unweighted losses and the correct predictions.
        """
        import torch.nn.functional as F

        losses = F.cross_entropy(output.logits, output.targets, reduction="none")
        right = output.logits.detach().argmax(dim=-1) == output.targets
        if self.seen is not None:
            self.seen(output.targets, losses, right)
        if WEIGHTS not in batch:
            return Term(losses.sum(), (right.sum(),))
        weights = batch[WEIGHTS].flatten()[output.positions]
        return Term((weights * losses).sum(), ((weights * right).sum(),))

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """Return the sizes of a micro-batch's forward pass. The FLOPs of the pass are computed from these sizes.

        In masked diffusion, labels have weights. Then the labels are counted in the micro-batch, because
        `labelled_per_sequence` is the number of maskable tokens per sequence.
        """
        if WEIGHTS not in part:
            return super().pass_shape(part, labelled_per_sequence)
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, int((part["labels"] != UNLABELLED).sum()))

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return, for each token id that masking can hide, the number of tokens with this id in a split: int64
        [vocabulary size].
        """
        from hatchery.objectives.label_counts import maskable_tokens

        return maskable_tokens(shards)


def pair_term(logits: "Tensor", labels: "Tensor") -> Term:
    """Return the term of sentence pairs: summed binary cross-entropy (nats), and number of pairs whose label is
    predicted correctly.

    `logits` are fp32 [B]; `labels` are int64 [B], 1 or 0.
    """
    import torch.nn.functional as F

    loss = F.binary_cross_entropy_with_logits(logits, labels.to(logits), reduction="sum")
    return Term(loss, (((logits.detach() > 0) == labels.bool()).sum(),))


OBJECTIVE = MaskedSettings, MaskedObjective
