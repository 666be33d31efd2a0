"""The translation objective: batches of sentence pairs with at most a given number of target tokens, label smoothing,
and development text that is also translated.

Source: "A Natural Bias for Language Generation Models", Section 4.1 and Appendices A and B.3;
docs/papers/natural-bias.md, "Data", "Training" and "Away from the unigram distribution". The loss is the cross-entropy
with the target distribution (1 - alpha) * label + alpha * uniform. With `unigram_penalty` lambda, the loss is reduced
by lambda * KL(omega || p), which keeps predictions p away from the unigram distribution omega. The negative
log-likelihood of the labels is also reported; on development text, only the negative log-likelihood is measured.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from hatchery.errors import ConfigError, TrainingError
from hatchery.modeling.flops import PassShape
from hatchery.settings.base import Natural, Range, ShareBelowOne
from hatchery.training.objective import Criterion, HeldOutTerms, ModelKind, Objective, ObjectiveKeys, Term
from hatchery.translation.settings import SearchSettings

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from hatchery.modeling.language_model import LanguageModelOutput
    from hatchery.objectives.translation_pairs import TranslationPairs
    from hatchery.tokenization.token_shards import TokenShards
    from hatchery.tokenization.tokenizer_file import Tokenizer
    from hatchery.training.data_order import EpochSlice, Order
    from hatchery.training.development import DevelopmentSet
    from hatchery.training.step_plan import Step, StepPlan
    from hatchery.training.topology import Topology

HIGHEST_BLEU = Criterion("development_bleu", "development BLEU", higher_is_better=True)


@dataclass(frozen=True)
class TranslationSettings(ObjectiveKeys):
    """Translation of the sentence pairs of a parallel corpus. `batch_size` is the maximum number of target tokens in a
    step; `sequence_length` is the maximum number of tokens of a sentence, including its end token."""

    kinds: ClassVar[tuple[ModelKind, ...]] = ("translation",)
    perplexity_per: ClassVar[str] = "per target token"
    asked_for: ClassVar[str] = (
        "Translation models predict every token and the end of the target, given the source and the correct previous "
        "tokens. Accuracy is in percent of these predictions."
    )

    task: Literal["translation"] = "translation"
    """Objective: `translation` predicts a sentence in another language, token by token."""
    direction: Literal["forward", "backward"] = "forward"
    """Direction of translation. `forward`: from the corpus's first language into its second. `backward`: from the
    second language into the first.
    """
    longest_ratio: Annotated[float, Range(ge=1)] | None = 1.5
    """Maximum ratio of the longer to the shorter sentence of a training pair, in tokens; pairs with a larger ratio are
    skipped. `null` keeps all pairs.
    """
    label_smoothing: ShareBelowOne = 0.1
    """Share of the uniform distribution in the target distribution; the development loss has no smoothing."""
    unigram_penalty: ShareBelowOne = 0.0
    """Weight of the penalty that keeps predictions away from the unigram distribution of the targets (lambda in the
    natural-bias paper); 0 disables this penalty.
    """
    search: SearchSettings = field(default_factory=SearchSettings)
    """Beam search of translations."""
    development_translations: Natural | None = None
    """Maximum number of development pairs that are translated at every evaluation, for BLEU and chrF. `null` translates
    all pairs; 0 translates no pairs.
    """
    early_evaluations: Natural = 2
    """Number of additional evaluations of development text within the first evaluation interval, after 1/2, 1/4 and so
    on of the interval: 2 with an interval of 1,000 adds steps 250 and 500. Development text is then also scored before
    training. 0 disables all of these evaluations."""

    def sequences_of_step(self, batch_size: int, sequence_length: int) -> float:
        """Return an estimate of the number of target sentences in a batch of `batch_size` target tokens. The estimate
        assumes that each sentence has `sequence_length` tokens.
        """
        return batch_size / sequence_length

    @property
    def texts_of_sequence(self) -> int:
        """The number of texts in a sequence: a source and a target."""
        return 2

    def early_evaluations_at(self, interval: int) -> tuple[int, ...]:
        """Return step 0 (before training), and the steps after 1/2, 1/4, ... of `interval`, the number of steps between
        regular evaluations; empty if `early_evaluations` is 0.
        """
        halvings = self.early_evaluations
        return (0, *(interval >> times for times in range(1, halvings + 1) if interval >> times)) if halvings else ()


class TranslationObjective(Objective):
    """Predict the next token of the target from the source and the earlier target tokens."""

    columns = (("loss", "next_token_accuracy", "nll"),)
    settings: TranslationSettings

    def __init__(self, settings: TranslationSettings) -> None:
        super().__init__(settings)
        if settings.development_translations != 0:
            self.criterion = HIGHEST_BLEU
        self._unigram: Tensor | None = None
        self._entropy = 0.0

    def open(self, tokens: Path, split: str) -> "TokenShards":
        """Return the encoded text of a split. If `unigram_penalty` is set, also compute the unigram distribution of the
        targets from the training split.

        Raises ConfigError for a tokenizer with a paragraph token, which would end every translation.
        """
        from hatchery.tokenization.documents import TRAINING_SPLIT

        shards = super().open(tokens, split)
        if shards.special.paragraph is not None:
            raise ConfigError(
                f"{shards.manifest.path}: the tokenizer ends paragraphs with {shards.special.paragraph}, which would "
                "end every translation; expected a tokenizer with `special_tokens: roberta`"
            )
        if split == TRAINING_SPLIT and self.settings.unigram_penalty:
            import torch

            from hatchery.modeling.count_distributions import entropy, smoothed_distribution

            unigram = smoothed_distribution(self.target_counts(shards))
            self._unigram, self._entropy = torch.from_numpy(unigram).float(), entropy(unigram)
        return shards

    def examples(self, shards: "TokenShards", sequence_length: int) -> "TranslationPairs":
        """Return the sentence pairs of a split. Training pairs are left out if a sentence is too long, or if the
        lengths of the sentences differ too much."""
        from hatchery.objectives.translation_pairs import pairs_of
        from hatchery.tokenization.documents import TRAINING_SPLIT

        return pairs_of(shards, sequence_length, self.settings, filtered=shards.split == TRAINING_SPLIT)

    def order(self, plan: "StepPlan", seed: int, examples_of_length: "Callable[[int], TranslationPairs]") -> "Order":
        """Return a function from a step to the sentence pairs of its batch, which together have at most the step's
        `batch_size` target tokens.
        """
        from hatchery.training.data_order import EpochSlice

        def pairs(step: "Step") -> "list[EpochSlice]":
            examples = examples_of_length(step.sequence_length)
            return [EpochSlice(*examples.batch_at(seed, step.number, step.batch_size))]

        return pairs

    def epochs(self, examples: "TranslationPairs", plan: "StepPlan") -> float:
        """Return the number of times that a run reads each sentence pair."""
        return plan.steps / examples.batches_per_epoch(plan.settings.batch_size)

    def terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> tuple[Term, ...]:
        """Return one term: the loss to minimise and, in `sums`, the number of correct predictions and the negative
        log-likelihood."""
        smoothing = self.settings.label_smoothing
        log_mass, likelihood = _log_mass_and_loss(output)
        # `sums` are the log-probabilities of each token id, summed over the positions. Label smoothing and the unigram
        # penalty use `sums`.
        sums = output.logits.sum(dim=0) - log_mass.sum()
        loss = likelihood
        if smoothing:
            loss = (1 - smoothing) * loss - smoothing / len(sums) * sums.sum()
        if self.settings.unigram_penalty:
            if self._unigram is None:
                raise TrainingError("unigram_penalty: the targets of the training split have not been counted")
            self._unigram = self._unigram.to(sums.device)
            divergence = -(self._unigram @ sums[: len(self._unigram)]) - self._entropy * output.n_labelled
            loss = loss - self.settings.unigram_penalty * divergence
        return (Term(loss, (output.n_correct, likelihood)),)

    def held_out_terms(self, output: "LanguageModelOutput", batch: "Mapping[str, Tensor]") -> HeldOutTerms:
        """Return the negative log-likelihood of the targets."""
        return HeldOutTerms(_log_mass_and_loss(output)[1])

    def development(
        self,
        examples: "TranslationPairs",
        sequences: int,
        share: int,
        topology: "Topology",
        tokenizer: "Callable[[], Tokenizer] | None" = None,
    ) -> "DevelopmentSet":
        """Return the development sentence pairs to score. If a tokenizer is given and `development_translations` is not
        0, source sentences are also translated."""
        most = self.settings.development_translations
        if tokenizer is None or most == 0:
            from hatchery.training.development import DevelopmentSet

            return DevelopmentSet(examples, sequences, share, topology, self.held_out_terms)
        from hatchery.training.development_translations import TranslatedSet

        scored = self.held_out_terms
        return TranslatedSet(examples, sequences, share, topology, self.settings.search, most, tokenizer(), scored)

    def target_counts(self, shards: "TokenShards") -> "np.ndarray":
        """Return the number of times that each token id is a target in the target sentences of a split, including the
        end tokens: int64 [vocabulary size].
        """
        from hatchery.objectives.label_counts import next_token_counts
        from hatchery.objectives.special_ids import SpecialIds
        from hatchery.objectives.translation_pairs import WHOLE, pairs_of, target_ids

        special = SpecialIds.of(shards.special)
        targets = target_ids(pairs_of(shards, WHOLE, self.settings, filtered=False))
        return next_token_counts(targets, special.sep, special.cls, shards.vocabulary_size)

    def for_comparison(self, common: Objective) -> Objective:
        """Return this objective, because the targets of translation do not depend on masks."""
        return self

    def smallest_batch(self, examples: "TranslationPairs", batch_size: int) -> int:  # type: ignore[override]
        """Return the number of sentence pairs in the smallest batch, if each batch has at most `batch_size` target
        tokens.
        """
        return examples.smallest_batch(batch_size)

    def measures(self, examples: "TranslationPairs") -> dict[str, object]:  # type: ignore[override]
        """Return the number of training sentence pairs, and the number of sentence pairs that were left out of
        training."""
        return {"pairs": len(examples), "left_out": examples.left_out}

    def pass_shape(self, part: "dict[str, Tensor]", labelled_per_sequence: float) -> PassShape:
        """Return the sizes of a micro-batch's forward pass, including the lengths of sources and targets. The FLOPs of
        the pass are computed from these sizes.
        """
        rows, length = part["input_ids"].shape
        return PassShape(rows, length, labelled_per_sequence * rows, target_length=part["labels"].shape[1])


def _log_mass_and_loss(output: "LanguageModelOutput") -> "tuple[Tensor, Tensor]":
    """Return the log-sum-exp of the logits at each labelled position, fp32 [number of positions], and the summed
    negative log-likelihood of the targets.
    """
    log_mass = output.logits.logsumexp(dim=-1)
    return log_mass, (log_mass - output.logits.gather(1, output.targets[:, None]).squeeze(1)).sum()


OBJECTIVE = TranslationSettings, TranslationObjective
